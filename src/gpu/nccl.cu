#include "gpu/nccl.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "core/shared_library.hpp"
#include "gpu/copy_lines.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// NCCL's interface as its documentation has it, so that no header is needed to build. Functions
// return 0 for success. Bytes are its data type 0, ncclInt8.
struct NcclId {
  char bytes[128];
};
using NcclComm = void*;
constexpr int kBytes = 0;

struct Nccl {
  int (*get_version)(int*);
  int (*get_unique_id)(NcclId*);
  const char* (*get_error_string)(int);
  const char* (*get_last_error)(NcclComm);  // null before 2.13
  int (*comm_init_rank)(NcclComm*, int, NcclId, int);
  int (*comm_destroy)(NcclComm);
  int (*all_gather)(const void*, void*, std::size_t, int, NcclComm, cudaStream_t);
  int (*send)(const void*, std::size_t, int, int, NcclComm, cudaStream_t);
  int (*recv)(void*, std::size_t, int, int, NcclComm, cudaStream_t);
  int (*group_start)();
  int (*group_end)();
};

const SharedLibrary& nccl_library() {
  static const SharedLibrary library("libnccl.so.2");
  return library;
}

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(nccl_library().require(name));
}

const Nccl& nccl() {
  static const Nccl functions = [] {
    Nccl found{};
    find(found.get_version, "ncclGetVersion");
    find(found.get_unique_id, "ncclGetUniqueId");
    find(found.get_error_string, "ncclGetErrorString");
    found.get_last_error =
        reinterpret_cast<const char* (*)(NcclComm)>(nccl_library().find("ncclGetLastError"));
    find(found.comm_init_rank, "ncclCommInitRank");
    find(found.comm_destroy, "ncclCommDestroy");
    find(found.all_gather, "ncclAllGather");
    find(found.send, "ncclSend");
    find(found.recv, "ncclRecv");
    find(found.group_start, "ncclGroupStart");
    find(found.group_end, "ncclGroupEnd");
    return found;
  }();
  return functions;
}

// What NCCL says about its last warning, and how much memory is free where that is too little.
std::string more_about_failure() {
  // 0.6 GiB when it opens and 1.3 with the first transfers: two ranks with 64 channels.
  constexpr std::size_t kGib = std::size_t{1} << 30, kTakenByNccl = 2 * kGib;
  const char* const last =
      nccl().get_last_error == nullptr ? nullptr : nccl().get_last_error(nullptr);
  std::string more;
  if (last != nullptr && *last != '\0') more = fmt::format(" ({})", last);
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess && free < kTakenByNccl)
    more += fmt::format("; NCCL takes up to {} GiB of a GPU, of which {:.2f} GiB are free",
                        kTakenByNccl / kGib, static_cast<double>(free) / kGib);
  return more;
}

void check(int result, const char* function) {
  if (result == 0) return;
  const cudaError_t cuda = cudaGetLastError();
  throw DeviceError(fmt::format("NCCL: {}: {}{}", function, nccl().get_error_string(result),
                                more_about_failure()),
                    is_sticky(cuda));
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(const std::string& id_text, int rank, int ranks, Device& device)
      : rank_(rank), device_(device) {
    NcclId id{};
    if (id_text.size() != sizeof id.bytes) throw Error("NCCL: this is no unique ID");
    std::memcpy(id.bytes, id_text.data(), sizeof id.bytes);
    aligned_ = device.allocate(kAlignBytes * ranks);
    // Transfers first: what they run beside has more blocks than the GPU holds.
    int least = 0, greatest = 0;
    SPMMBENCH_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    SPMMBENCH_CUDA(cudaStreamCreateWithPriority(&beside_, cudaStreamNonBlocking, greatest));
    SPMMBENCH_CUDA(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming));
    SPMMBENCH_CUDA(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming));
    check(nccl().comm_init_rank(&comm_, ranks, id, rank), "ncclCommInitRank");
  }
  ~NcclTransport() override {
    (void)nccl().comm_destroy(comm_);
    SPMMBENCH_CUDA_NOEXCEPT(cudaEventDestroy(joined_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaEventDestroy(forked_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(beside_));
  }

  void all_gather(void* all, std::size_t part_bytes) override {
    if (part_bytes == 0) return;
    check(nccl().all_gather(static_cast<char*>(all) + rank_ * part_bytes, all, part_bytes, kBytes,
                            comm_, cuda_stream()),
          "ncclAllGather");
  }

  void all_to_all(const std::vector<Block>& send, const std::vector<Block>& receive) override {
    check(nccl().group_start(), "ncclGroupStart");
    for (int peer = 0; peer < static_cast<int>(send.size()); ++peer) {
      if (peer == rank_) continue;
      if (const Block& block = send[peer]; block.bytes > 0)
        check(nccl().send(block.data, block.bytes, kBytes, peer, comm_, cuda_stream()), "ncclSend");
      if (const Block& block = receive[peer]; block.bytes > 0)
        check(nccl().recv(block.data, block.bytes, kBytes, peer, comm_, cuda_stream()), "ncclRecv");
    }
    check(nccl().group_end(), "ncclGroupEnd");
  }

  void pack(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* packed) override {
    cuda_copy_lines(from, lines, count, line_bytes, packed, CopyBeside::nothing, stream());
  }

  void pull(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* pulled) override {
    const CopyBeside beside = is_beside_ ? CopyBeside::a_product : CopyBeside::nothing;
    cuda_copy_lines(from, lines, count, line_bytes, pulled, beside, stream());
  }

  Stream stream() const override { return is_beside_ ? Stream{beside_} : device_.stream(); }

  void fork() override {
    SPMMBENCH_CUDA(cudaEventRecord(forked_, cuda_stream()));
    SPMMBENCH_CUDA(cudaStreamWaitEvent(beside_, forked_));
    is_beside_ = true;
  }
  void join() override {
    SPMMBENCH_CUDA(cudaEventRecord(joined_, beside_));
    is_beside_ = false;
    SPMMBENCH_CUDA(cudaStreamWaitEvent(cuda_stream(), joined_));
  }
  void align() override { all_gather(aligned_.data(), kAlignBytes); }

 private:
  static constexpr std::size_t kAlignBytes = 16;

  cudaStream_t cuda_stream() const { return static_cast<cudaStream_t>(stream().handle); }

  int rank_;
  Device& device_;
  Buffer aligned_;
  NcclComm comm_ = nullptr;
  cudaStream_t beside_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  bool is_beside_ = false;
};

}  // namespace

std::string why_no_nccl() { return why_no_nccl(nccl_library()); }

std::string why_no_nccl(const SharedLibrary& library) {
  constexpr int kSendAndReceive = 2700;  // 2.7.0 is the first that has them
  if (!library.error().empty()) return "NCCL: " + library.error();
  int version = 0;
  auto* const get_version = reinterpret_cast<int (*)(int*)>(library.find("ncclGetVersion"));
  if (get_version == nullptr || get_version(&version) != 0) return "NCCL: it tells no version";
  if (version < kSendAndReceive) return fmt::format("needs NCCL 2.7, found {}", version);
  return {};
}

std::string new_nccl_id() {
  NcclId id{};
  check(nccl().get_unique_id(&id), "ncclGetUniqueId");
  return {id.bytes, sizeof id.bytes};
}

std::unique_ptr<Transport> open_nccl(const std::string& id, int rank, int ranks, Device& device) {
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  // Between two ranks half of the channels send: 32, of which each is a block, instead of 16.
  if (ranks == 2) setenv("NCCL_MIN_P2P_NCHANNELS", "64", 0);
  return std::make_unique<NcclTransport>(id, rank, ranks, device);
}

}  // namespace spmmbench
