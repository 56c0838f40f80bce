// Stands in for libcusparseLt.so.0: it has the functions that the program looks for and fails in
// each. TOO_OLD leaves out the one that version 0.8 brought.

#define FAKE(name) \
  extern "C" int cusparseLt##name() { return 10; } /* CUSPARSE_STATUS_NOT_SUPPORTED */

FAKE(Init)
FAKE(GetProperty)
FAKE(GetErrorString)
FAKE(DenseDescriptorInit)
FAKE(StructuredDescriptorInit)
FAKE(MatDescriptorDestroy)
FAKE(MatmulDescriptorInit)
FAKE(MatmulAlgSelectionInit)
#ifndef TOO_OLD
FAKE(MatmulAlgSelectionDestroy)
#endif
FAKE(MatmulAlgGetAttribute)
FAKE(MatmulAlgSetAttribute)
FAKE(MatmulPlanInit)
FAKE(MatmulPlanDestroy)
FAKE(MatmulGetWorkspace)
FAKE(MatmulSearch)
FAKE(Matmul)
FAKE(SpMMACompressedSize2)
FAKE(SpMMACompress2)
