#include "tensor_core_tiles.hpp"

#include <type_traits>

#include "gpu/cuda_check.hpp"
#include "ptx/cuda_ptx.cuh"
#include "ptx/keep.cuh"
#include "ptx/mma.cuh"
#include "ptx/sm90a.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_sp_e4m3.cuh"

namespace spmmbench::test {
namespace {

constexpr int kThreads = 128;
constexpr int kGroupRows = 8;  // of the swizzle of a shared tile
constexpr std::uint32_t kFirstTwoOfFour = 0x44444444;

// Of the fragments of mma and of the accumulators of wgmma, of which each warp has 16 rows.
struct Lane {
  int warp = static_cast<int>(threadIdx.x) / 32, g = static_cast<int>(threadIdx.x) % 32 / 4,
      t = static_cast<int>(threadIdx.x) % 4;

  __device__ std::uint32_t word(const char* lines, int line, int byte) const {
    return *reinterpret_cast<const std::uint32_t*>(lines + line * kTileBytes + byte);
  }
  __device__ void a(const char* tile, std::uint32_t (&out)[4]) const {
    for (int i = 0; i < 4; ++i)
      out[i] = word(tile, 16 * warp + g + 8 * (i % 2), 4 * t + kTileBytes / 2 * (i / 2));
  }
  __device__ int place(int i) const {  // of accumulator i in the tile
    return (16 * warp + g + 8 * (i / 2 % 2)) * kTileColumns + i / 4 * 8 + 2 * t + i % 2;
  }
};

template <class Input, Instruction kInstruction>
__device__ void multiply_by_wgmma(const char* a, const char* b, float (&acc)[kTileColumns / 2]) {
  constexpr bool kSparse = kInstruction == Instruction::wgmma_sp;
  constexpr int kLineB = kSparse ? 2 * kTileBytes : kTileBytes;  // bytes of a column
  __shared__ alignas(1024) char a_tile[kTileRows * kTileBytes], b_tile[kTileColumns * kLineB];
  const auto swizzled = [](int byte, int line_bytes) {
    return byte ^ (byte >> 7 & (line_bytes / 16 - 1)) << 4;
  };
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileBytes; i += kThreads)
    a_tile[swizzled(i, kTileBytes)] = a[i];
  for (int i = static_cast<int>(threadIdx.x); i < kTileColumns * kLineB; i += kThreads)
    b_tile[swizzled(i, kLineB)] = b[i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  const std::uint64_t of_a = ptx::wgmma_descriptor<kTileBytes>(a_tile, 0, kGroupRows * kTileBytes);
  const std::uint64_t of_b = ptx::wgmma_descriptor<kLineB>(b_tile, 0, kGroupRows * kLineB);
  std::uint32_t r[4];
  Lane().a(a, r);
  ptx::keep_in_registers(acc);
  ptx::wgmma_fence();
  if constexpr (kSparse && sizeof(Input) == 1)
    ptx::wgmma_mma_async_sp_e4m3<kTileColumns>(acc, of_a, of_b, kFirstTwoOfFour, 1);
  else if constexpr (kSparse)
    ptx::wgmma_mma_async_sp<Input, ptx::Major::k, kTileColumns, 0>(acc, of_a, of_b,
                                                                   kFirstTwoOfFour);
  else if constexpr (kInstruction == Instruction::wgmma)
    ptx::wgmma_mma_async<Input, ptx::Major::k, kTileColumns>(acc, of_a, of_b, 1);
  else ptx::wgmma_mma_async<Input, ptx::Major::k, kTileColumns>(acc, r[0], r[1], r[2], r[3], of_b);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::keep_in_registers(acc);
}

template <class Input>
__device__ void multiply_by_mma(const char* a, const char* b, float (&acc)[kTileColumns / 2]) {
  const Lane lane;
  std::uint32_t r[4];
  lane.a(a, r);
  for (int j = 0; j < kTileColumns / 8; ++j) {
    float d[4];
    for (int i = 0; i < 4; ++i) d[i] = acc[4 * j + i];
    const std::uint32_t b0 = lane.word(b, 8 * j + lane.g, 4 * lane.t);
    const std::uint32_t b1 = lane.word(b, 8 * j + lane.g, 4 * lane.t + kTileBytes / 2);
    if constexpr (std::is_same_v<Input, ptx::Tf32>)
      ptx::mma_m16n8k8(Input{}, d, r[0], r[1], r[2], r[3], b0, b1);
    else ptx::mma_m16n8k16(Input{}, d, r[0], r[1], r[2], r[3], b0, b1);
    for (int i = 0; i < 4; ++i) acc[4 * j + i] = d[i];
  }
}

template <class Input, Instruction kInstruction>
__global__ void multiply(const char* a, const char* b, float* sums) {
  const Lane lane;
  a += blockIdx.x * kTileRows * kTileBytes;
  b += blockIdx.x * kTileColumns * kTileBytes * (kInstruction == Instruction::wgmma_sp ? 2 : 1);
  sums += blockIdx.x * kTileRows * kTileColumns;
  float acc[kTileColumns / 2];
#pragma unroll
  for (int i = 0; i < kTileColumns / 2; ++i) acc[i] = sums[lane.place(i)];
  if constexpr (kInstruction == Instruction::mma) multiply_by_mma<Input>(a, b, acc);
  else multiply_by_wgmma<Input, kInstruction>(a, b, acc);
#pragma unroll
  for (int i = 0; i < kTileColumns / 2; ++i) sums[lane.place(i)] = acc[i];
}

using Launched = void (*)(const char*, const char*, float*);

template <class Input>
Launched sixteen_bits(Instruction instruction) {
  switch (instruction) {
    case Instruction::wgmma: return multiply<Input, Instruction::wgmma>;
    case Instruction::wgmma_a_in_registers:
      return multiply<Input, Instruction::wgmma_a_in_registers>;
    case Instruction::wgmma_sp: return multiply<Input, Instruction::wgmma_sp>;
    case Instruction::mma: return multiply<Input, Instruction::mma>;
  }
  return nullptr;
}

Launched kernel_of(Instruction instruction, Precision precision) {
  if (precision == Precision::fp16) return sixteen_bits<__half>(instruction);
  if (precision == Precision::bf16) return sixteen_bits<__nv_bfloat16>(instruction);
  using E4m3 = __nv_fp8_e4m3;
  if (precision == Precision::fp8_e4m3) switch (instruction) {
      case Instruction::wgmma: return multiply<E4m3, Instruction::wgmma>;
      case Instruction::wgmma_sp: return multiply<E4m3, Instruction::wgmma_sp>;
      default: return nullptr;
    }
  if (precision == Precision::fp8_e5m2)
    return instruction == Instruction::wgmma ? multiply<__nv_fp8_e5m2, Instruction::wgmma>
                                             : nullptr;
  using ptx::Tf32;
  switch (instruction) {
    case Instruction::wgmma: return multiply<Tf32, Instruction::wgmma>;
    case Instruction::mma: return multiply<Tf32, Instruction::mma>;
    default: return nullptr;
  }
}

}  // namespace

bool multiply_tiles(Instruction instruction, Precision precision, const void* a, const void* b,
                    float* sums, int tiles, Stream stream) {
  const Launched kernel = kernel_of(instruction, precision);
  if (kernel == nullptr) return false;
  kernel<<<tiles, kThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(
      static_cast<const char*>(a), static_cast<const char*>(b), sums);
  SPMMBENCH_CUDA_LAUNCHED();
  return true;
}

}  // namespace spmmbench::test
