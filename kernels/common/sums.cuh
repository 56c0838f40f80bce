#pragma once
// What products are added up in: fp64 where they are of fp64, else fp32. Here is what
// common/dense_io.cuh and common/arrive_and_sum.cuh do for fp32, done for both.

#include <cstdint>
#include <type_traits>

#include "common/arrive_and_sum.cuh"
#include "common/dense_io.cuh"

namespace spmmbench {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr ElementType sum_type(Precision precision) {
  return type_of_c(precision, ElementType::f32);
}

// Calls `function` with null pointers of the types of B and C; C is fp64 where B is. kLeastBytesOfB
// 1: fp8 too.
template <std::size_t kLeastBytesOfB = sizeof(__half), class Function>
void visit_b_and_c(ElementType b, ElementType c, Function&& function) {
  if (b == ElementType::f64)
    return function(static_cast<double*>(nullptr), static_cast<double*>(nullptr));
  visit_element_type<kLeastBytesOfB>(
      b, [&](auto* b_tag) { visit_element_type(c, [&](auto* c_tag) { function(b_tag, c_tag); }); });
}

__device__ inline double to_sum(double x) { return x; }
template <class T>
__device__ float to_sum(T x) {
  return to_float(x);
}
template <class C, class Sum>
__device__ C from_sum(Sum x) {
  if constexpr (std::is_same_v<Sum, double>) return x;
  else return from_float<C>(x);
}

// 16 bytes of B.
__device__ inline void unpack(const uint4& raw, double (&out)[2], double /*type of B*/) {
  out[0] = __hiloint2double(static_cast<int>(raw.y), static_cast<int>(raw.x));
  out[1] = __hiloint2double(static_cast<int>(raw.w), static_cast<int>(raw.z));
}

// Two columns of a row of C that has n, from `column` on.
__device__ inline void store_streaming(double* row, std::int64_t column, std::int64_t n,
                                       const double (&x)[2], unsigned /*lanes*/) {
  if (column < n) __stcs(reinterpret_cast<double2*>(row + column), make_double2(x[0], x[1]));
}

// Neighbouring sums to and from memory, past the L1 cache, 16 bytes at a time or one alone.
template <class Sum>
using SumVector = std::conditional_t<std::is_same_v<Sum, double>, double2, float4>;

template <class Sum, int kCount>
__device__ void store_sums(Sum* to, const Sum (&sums)[kCount]) {
  constexpr int kEach = kPerVector<Sum>;
  if constexpr (kCount == 1) {
    __stcg(to, sums[0]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kEach) {
      alignas(SumVector<Sum>) Sum packed[kEach];
#pragma unroll
      for (int j = 0; j < kEach; ++j) packed[j] = sums[i + j];
      __stcg(reinterpret_cast<SumVector<Sum>*>(to + i),
             reinterpret_cast<const SumVector<Sum>&>(packed));
    }
  }
}
template <class Sum, int kCount>
__device__ void add_sums(const Sum* from, Sum (&sums)[kCount]) {
  constexpr int kEach = kPerVector<Sum>;
  if constexpr (kCount == 1) {
    sums[0] += __ldcg(from);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kEach) {
      const auto x = __ldcg(reinterpret_cast<const SumVector<Sum>*>(from + i));
#pragma unroll
      for (int j = 0; j < kEach; ++j) sums[i + j] += reinterpret_cast<const Sum*>(&x)[j];
    }
  }
}

// Adds up the parts of several warps or groups of lanes in one slot of memory: kCount sums of each
// lane, zero between launches, as `arrivals` is. True in the last of `parts`, whose `sums` then are
// those of all. What lanes add together is contiguous: half a sector costs as much as a whole one.
// `adds`: false in a lane whose sums are of no column.
template <int kLanes, class Sum, int kCount>
__device__ bool add_in_slot(Sum* slot, unsigned* arrivals, int parts, unsigned lane, bool adds,
                            Sum (&sums)[kCount]) {
  if constexpr (std::is_same_v<Sum, float>) {
    const PartialSums partial = {
        .own = slot + lane * 4, .arrivals = arrivals, .parts = parts, .adds = adds};
    return arrive_and_sum<4 * kLanes, kLanes>(partial, lane, sums);
  } else {
    Sum* const own = slot + lane;
    if (adds)
#pragma unroll
      for (int i = 0; i < kCount; ++i) atomicAdd(own + i * kLanes, sums[i]);
    if (!arrives_last<kLanes>(arrivals, parts, lane)) return false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[i] = __ldcg(own + i * kLanes);
      own[i * kLanes] = 0;
    }
    return true;
  }
}

}  // namespace spmmbench
