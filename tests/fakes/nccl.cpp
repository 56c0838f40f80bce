// Stands in for libnccl.so.2: it tells its version, and nothing else. VERSION 0: not even that.

extern "C" int ncclGetVersion(int* version) {
  *version = VERSION;
  return VERSION == 0 ? 3 : 0; /* ncclInternalError */
}
