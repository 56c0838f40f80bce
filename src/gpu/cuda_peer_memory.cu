#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <cstdint>
#include <cuda/atomic>
#include <vector>

#include "gpu/driver_function.hpp"
#include "gpu/launch_dependent.cuh"
#include "gpu/peer_memory.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct Driver {
  PFN_cuMemGetAllocationGranularity_v10020 granularity;
  PFN_cuMemCreate_v10020 create;
  PFN_cuMemRelease_v10020 release;
  PFN_cuMemExportToShareableHandle_v10020 to_descriptor;
  PFN_cuMemImportFromShareableHandle_v10020 from_descriptor;
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuMemAddressFree_v10020 free;
  PFN_cuMemMap_v10020 map;
  PFN_cuMemUnmap_v10020 unmap;
  PFN_cuMemSetAccess_v10020 set_access;
};

template <class Function>
void find(Function& function, const char* name) {
  function = driver_function<Function>(name);
}

const Driver& driver() {
  static const Driver functions = [] {
    Driver found{};
    find(found.granularity, "cuMemGetAllocationGranularity");
    find(found.create, "cuMemCreate");
    find(found.release, "cuMemRelease");
    find(found.to_descriptor, "cuMemExportToShareableHandle");
    find(found.from_descriptor, "cuMemImportFromShareableHandle");
    find(found.reserve, "cuMemAddressReserve");
    find(found.free, "cuMemAddressFree");
    find(found.map, "cuMemMap");
    find(found.unmap, "cuMemUnmap");
    find(found.set_access, "cuMemSetAccess");
    return found;
  }();
  return functions;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(fmt::format("{}: no memory", what));
  throw Unsupported(fmt::format("memory of other GPUs cannot be mapped: {}: {}", what,
                                cudaGetErrorName(static_cast<cudaError_t>(result))));
}

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

class CudaPeerMemory final : public PeerMemory {
 public:
  explicit CudaPeerMemory(Device& device) : device_(device) {
    own_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    own_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.info().index};
    own_.requestedHandleTypes = kDescriptor;
    check(driver().granularity(&page_bytes_, &own_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
  }
  ~CudaPeerMemory() override {
    for (const Mapped& part : mapped_) (void)driver().unmap(part.at, part.bytes);
    if (reserved_bytes_ > 0) (void)driver().free(reserved_, reserved_bytes_);
    if (has_made_) (void)driver().release(made_);
  }

  std::size_t page_bytes() const override { return page_bytes_; }

  int make(std::size_t bytes) override {
    check(driver().create(&made_, bytes, &own_, 0), "cuMemCreate");
    has_made_ = true;
    int descriptor = -1;
    check(driver().to_descriptor(&descriptor, made_, kDescriptor, 0),
          "cuMemExportToShareableHandle");
    return descriptor;
  }

  void* map(std::span<const PeerPart> parts) override {
    std::size_t all = 0;
    for (const PeerPart& part : parts) all += part.bytes;
    check(driver().reserve(&reserved_, all, 0, 0, 0), "cuMemAddressReserve");
    reserved_bytes_ = all;
    CUdeviceptr at = reserved_;
    for (const PeerPart& part : parts) {
      CUmemGenericAllocationHandle handle{};
      auto* const descriptor =
          reinterpret_cast<void*>(static_cast<std::uintptr_t>(part.descriptor));
      check(driver().from_descriptor(&handle, descriptor, kDescriptor),
            "cuMemImportFromShareableHandle");
      const CUresult result = driver().map(at, part.bytes, 0, handle, 0);
      (void)driver().release(handle);  // the mapping keeps the memory
      check(result, "cuMemMap");
      mapped_.push_back({at, part.bytes});
      at += part.bytes;
    }
    const CUmemAccessDesc access = {.location = own_.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check(driver().set_access(reserved_, all, &access, 1), "cuMemSetAccess");
    return reinterpret_cast<void*>(reserved_);
  }

 private:
  struct Mapped {
    CUdeviceptr at;
    std::size_t bytes;
  };

  Device& device_;
  CUmemAllocationProp own_{};
  std::size_t page_bytes_ = 0;
  CUmemGenericAllocationHandle made_{};
  bool has_made_ = false;
  CUdeviceptr reserved_ = 0;
  std::size_t reserved_bytes_ = 0;
  std::vector<Mapped> mapped_;
};

// How often rank r has come here stands at place r of the memory of every rank. What kernels wrote
// before lies in memory when cudaGridDependencySynchronize returns, so the store is no release: its
// fence for the whole system takes 0.6 us.
__global__ void meet_kernel(char* base, std::size_t stride, int rank) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may begin to wait for this one
  cudaGridDependencySynchronize();
#endif
  using Place = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
  const auto place = [&](int of_rank, int in_memory_of) {
    return Place(reinterpret_cast<unsigned*>(base + in_memory_of * stride)[of_rank]);
  };
  const int other = static_cast<int>(threadIdx.x);
  const unsigned times = place(rank, rank).load(cuda::memory_order_relaxed) + 1;
  __syncthreads();
  place(rank, other).store(times, cuda::memory_order_relaxed);
  while (place(other, rank).load(cuda::memory_order_acquire) < times) {
  }
}

}  // namespace

std::unique_ptr<PeerMemory> open_cuda_peer_memory(Device& device) {
  return std::make_unique<CudaPeerMemory>(device);
}

void cuda_meet(void* base, std::size_t stride, int rank, int ranks, Stream stream) {
  launch_dependent(meet_kernel, 1, ranks, stream, static_cast<char*>(base), stride, rank);
}

}  // namespace spmmbench
