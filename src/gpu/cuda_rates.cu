// The rates that predictions divide by, measured on a CUDA device.

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>

#include "gpu/cublas.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/rates.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

// The median time of a few launches, after one that loads the kernel and fills the cache.
double median_us(Device& device, const std::function<void()>& launch) {
  constexpr int kRepetitions = 5;
  launch();
  std::array<double, kRepetitions> us{};
  for (double& sample : us) sample = device.time_us(launch, 1);
  std::nth_element(us.begin(), us.begin() + kRepetitions / 2, us.end());
  return us[kRepetitions / 2];
}

constexpr int kLanes = 16;                               // that gather a row of B together
constexpr std::size_t kRowBytes = 16 * kLanes;           // 128 columns in fp16
constexpr std::size_t kMostRows = std::size_t{1} << 16;  // 16 MiB; 16 bits of a hash name one
constexpr int kAhead = 4;                                // rows that a hash of 64 bits names
constexpr int kRounds = 256;                             // hashes of each group of lanes
constexpr int kRateThreads = 256;

// The store never happens (every byte of the table is 1), which the compiler cannot know.
__global__ void gather_kernel(const uint4* table, unsigned row_mask, unsigned* sink) {
  const unsigned group = (blockIdx.x * kRateThreads + threadIdx.x) / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  unsigned all = ~0U;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t hash = hash_position(1, group, round);
    std::array<uint4, kAhead> piece;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const unsigned row = static_cast<unsigned>(hash >> (16 * i)) & row_mask;
      piece[i] = __ldg(table + row * kLanes + lane);
    }
#pragma unroll
    for (const uint4& p : piece) all &= p.x & p.y & p.z & p.w;
  }
  if (all == 0U) *sink = 1U;
}

constexpr int kTile = 16;         // rows, columns and depth of a product of tiles
constexpr int kChains = 4;        // of products of a warp, each of which waits for itself alone
constexpr int kTileRounds = 512;  // products of a chain

// The store never happens (the sums are positive), which the compiler cannot know.
__global__ void __launch_bounds__(kRateThreads) tensor_core_kernel(float* sink) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, kTile, kTile, kTile, __half, row_major> a;
  fragment<matrix_b, kTile, kTile, kTile, __half, col_major> b;
  std::array<fragment<accumulator, kTile, kTile, kTile, float>, kChains> sums;
  fill_fragment(a, __float2half(0.5F));
  fill_fragment(b, __float2half(0.25F));
  for (auto& sum : sums) fill_fragment(sum, static_cast<float>(threadIdx.x / 32));
  for (int round = 0; round < kTileRounds; ++round)
#pragma unroll
    for (auto& sum : sums) mma_sync(sum, a, b, sum);
  float least = 0;
  for (const auto& sum : sums) least = fminf(least, sum.x[0]);
  if (least < 0) *sink = least;
}

}  // namespace

double measure_tensor_cores(Device& device) {
  constexpr int kBlocksPerSm = 2;
  const Buffer sink = device.allocate(sizeof(float));
  const int blocks = kBlocksPerSm * device.info().sm_count;
  const auto multiply = [&] {
    tensor_core_kernel<<<blocks, kRateThreads, 0,
                         static_cast<cudaStream_t>(device.stream().handle)>>>(sink.as<float>());
    SPMMBENCH_CUDA_LAUNCHED();
  };
  constexpr double kOperations =
      2.0 * kTile * kTile * kTile * kChains * kTileRounds * (kRateThreads / 32);
  return kOperations * blocks / (median_us(device, multiply) * 1e-6);
}

double measure_gather(Device& device) {
  // The H200's cache has two halves, each with a copy of what its multiprocessors read: a third of
  // the cache fits into both.
  constexpr std::size_t kShareOfCache = 3;
  constexpr int kBlocksPerSm = 8;
  const DeviceInfo& info = device.info();
  const std::size_t rows = std::clamp(std::bit_floor(info.l2_bytes / kShareOfCache / kRowBytes),
                                      std::size_t{1}, kMostRows);
  const Buffer table = device.allocate(rows * kRowBytes);
  device.fill_bytes(table.data(), 1, table.bytes());
  const int blocks = kBlocksPerSm * info.sm_count;
  const auto gather = [&] {
    gather_kernel<<<blocks, kRateThreads, 0, static_cast<cudaStream_t>(device.stream().handle)>>>(
        table.as<const uint4>(), static_cast<unsigned>(rows - 1), table.as<unsigned>());
    SPMMBENCH_CUDA_LAUNCHED();
  };
  constexpr double kBytesPerBlock = 16.0 * kRateThreads * kRounds * kAhead;
  return kBytesPerBlock * blocks / (median_us(device, gather) * 1e-6);
}

// Measured with cuBLAS, since a loop of our own would not say what a product reaches: operands in
// registers or shared memory alone run faster, and mma.sync reaches 0.62 of cuBLAS's rate. Loading
// cuBLAS is the price, once per process, or once per device where a folder keeps the rate. Without
// cuBLAS the rate stays unknown (0).
double measure_dense(Device& device) {
  if (!cublas_library().error().empty()) return 0;
  constexpr int kMostSide = 8192, kLeastSide = 256;
  int side = kMostSide;
  const auto bytes = [&] { return static_cast<std::size_t>(side) * side * sizeof(__half); };
  while (side > kLeastSide && 3 * bytes() > device.free_bytes() / 4) side /= 2;
  const Buffer a = device.allocate(bytes()), b = device.allocate(bytes()),
               c = device.allocate(bytes());
  // Multiplying zeros takes less power, and so less time.
  for (const Buffer* operand : {&a, &b}) {
    DenseView view = make_dense_view(side, side, Layout::row_major, ElementType::f16);
    view.data = operand->data();
    device.fill_uniform(view, operand == &a ? kStreamA : kStreamB, Precision::fp16);
  }
  cublasHandle_t handle = nullptr;
  SPMMBENCH_CUBLAS(cublasCreate, &handle);
  const std::unique_ptr<cublasContext, void (*)(cublasHandle_t)> owner(
      handle,
      [](cublasHandle_t made) { (void)SPMMBENCH_FUNCTION(cublas_library(), cublasDestroy)(made); });
  SPMMBENCH_CUBLAS(cublasSetStream, handle, static_cast<cudaStream_t>(device.stream().handle));
  const float one = 1, zero = 0;
  const auto multiply = [&] {
    check_cublas(gemm_ex()(handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, a.data(),
                           CUDA_R_16F, side, b.data(), CUDA_R_16F, side, &zero, c.data(),
                           CUDA_R_16F, side, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  };
  return 2.0 * side * side * side / (median_us(device, multiply) * 1e-6);
}

}  // namespace spmmbench
