#pragma once
// What the ESMM adapters share: A made dense on the device, both operands' patterns extracted
// there, and what the patterns say about the work.

#include <fmt/format.h>

#include <limits>
#include <string>

#include "common/dense_copy.hpp"
#include "esmm/extract.cuh"
#include "esmm/format.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/kernel.hpp"

namespace spmmbench::esmm {

struct Sizes {
  std::int64_t m, n, k;
  std::int64_t strips_a, strips_b, words;
  DenseView dense;  // A with its zeros, without data

  explicit Sizes(const Problem& p)
      : m(p.m()),
        n(p.n),
        k(p.k()),
        strips_a((m + kStrip - 1) / kStrip),
        strips_b((n + kStrip - 1) / kStrip),
        words((k + kChunk - 1) / kChunk * kChunkWords),
        dense(dense_shape(p)) {}

  std::size_t lines_bytes() const {
    return static_cast<std::size_t>(strips_a * k * kStrip) * bytes_of(dense.type);
  }
  std::size_t bits_bytes() const {
    return static_cast<std::size_t>((strips_a + strips_b) * words) * sizeof(std::uint32_t);
  }
};

// The dense copies of A are what limits these kernels; tiles and words are counted in 32 bits.
inline Support supports_dense_a(const Problem& problem, const DeviceInfo& device) {
  const Sizes s(problem);
  const std::size_t csr_bytes =
      static_cast<std::size_t>(problem.nnz()) * (4 + bytes_of(s.dense.type)) +
      static_cast<std::size_t>(problem.m() + 1) * 8;
  const std::size_t bytes = s.dense.bytes() + s.lines_bytes() + s.bits_bytes() + csr_bytes;
  constexpr std::int64_t kLimit = std::numeric_limits<int>::max();
  if (bytes > device.memory_bytes) {
    return Support::no(
        fmt::format("A stored densely needs {:.1f} GB", static_cast<double>(bytes) / 1e9));
  }
  if (s.k > kLimit - kChunk || s.strips_a * s.strips_b > kLimit || s.strips_a * s.words > kLimit ||
      s.strips_b * s.words > kLimit || s.m > kLimit || s.n > kLimit) {
    return Support::no("more than 2^31 tiles of 32 x 32 or pattern words");
  }
  // The bytes from a row of B to the next are counted in 32 bits.
  const DenseView b = make_b_view(s.k, s.n, Layout::row_major, s.dense.type);
  if (static_cast<std::size_t>(b.ld) * bytes_of(b.type) > std::numeric_limits<unsigned>::max())
    return Support::no("rows of B of 4 GiB and more");
  return Support::yes(bytes);
}

// What a launch of one plan needs: A dense and in lines, both patterns, and what they say.
class PatternedOperands {
 public:
  // Stage "upload": A made dense on the device.
  PatternedOperands(const Problem& problem, Device& device, StageTimer& stages)
      : sizes_(problem),
        device_(&device),
        dense_(upload_dense(problem, sizes_.dense, device, stages)) {
    lines_ = device.allocate(sizes_.lines_bytes());
    a_bits_ = device.allocate(static_cast<std::size_t>(sizes_.strips_a * sizes_.words) * 4);
    b_bits_ = device.allocate(static_cast<std::size_t>(sizes_.strips_b * sizes_.words) * 4);
  }

  // Stage "tune": the patterns of A and of this B, read back for the choice of a path.
  void read_patterns(const DenseView& b, StageTimer& stages) {
    b_ = b;
    launch_extract_a(false, device_->stream());
    launch_extract_b(b_, device_->stream());
    auto timed = stages.scope("tune");
    a_pattern_ = download(a_bits_, sizes_.strips_a);
    b_pattern_ = download(b_bits_, sizes_.strips_b);
    shares_.clear();
  }

  // Extracts both patterns as launches will find them; stages "a_pattern" and "b_pattern".
  void extract(bool all_lines, StageTimer& stages) {
    const Stream stream = device_->stream();
    const auto once = [&](const char* name, auto&& launch) {
      {
        auto timed = stages.scope(name);
        launch();
        device_->synchronize();
      }
      constexpr int kRepeats = 10;
      metrics_[fmt::format("{}_us", name)] = device_->time_us(launch, kRepeats) / kRepeats;
    };
    once("a_pattern", [&] { launch_extract_a(all_lines, stream); });
    once("b_pattern", [&] { launch_extract_b(b_, stream); });
  }

  Operands operands(const DenseView& b, const DenseView& c) const {
    Operands op{};
    op.a_lines = lines_.data();
    op.a_bits = a_bits_.as<std::uint32_t>();
    op.b = b.data;
    op.b_bits = b_bits_.as<std::uint32_t>();
    op.c = c.data;
    op.ldb_bytes = static_cast<unsigned>(b.ld * bytes_of(b.type));
    op.ldc = c.ld;
    op.m = static_cast<int>(sizes_.m);
    op.n = static_cast<int>(sizes_.n);
    op.k = static_cast<int>(sizes_.k);
    op.strips_a = static_cast<int>(sizes_.strips_a);
    op.strips_b = static_cast<int>(sizes_.strips_b);
    op.words = static_cast<int>(sizes_.words);
    return op;
  }

  void launch_extract_a(bool all_lines, Stream stream) const {
    const auto blocks = static_cast<unsigned>(sizes_.strips_a * (sizes_.words / kExtractWarps));
    visit_element_type(sizes_.dense.type, [&]<class T>(T*) {
      extract_a<T><<<blocks, kExtractWarps * 32, 0, static_cast<cudaStream_t>(stream.handle)>>>(
          dense_.as<T>(), sizes_.dense.ld, static_cast<int>(sizes_.m), static_cast<int>(sizes_.k),
          static_cast<int>(sizes_.words), all_lines, a_bits_.as<std::uint32_t>(), lines_.as<T>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }
  void launch_extract_b(const DenseView& b, Stream stream) const {
    visit_element_type(sizes_.dense.type, [&]<class T>(T*) {
      const auto blocks = static_cast<unsigned>((sizes_.strips_b + kExtractStrips<T> - 1) /
                                                kExtractStrips<T> * (sizes_.words / kExtractWarps));
      extract_b<T><<<blocks, kExtractWarps * 32, 0, static_cast<cudaStream_t>(stream.handle)>>>(
          static_cast<const T*>(b.data), b.ld, static_cast<int>(sizes_.k),
          static_cast<int>(sizes_.n), static_cast<int>(sizes_.strips_b),
          static_cast<int>(sizes_.words), b_bits_.as<std::uint32_t>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }

  double needed(int group_a, int group_b, int step) const {
    return needed_fraction(a_pattern_, b_pattern_, group_a, group_b, step);
  }

  // Density of the patterns, and the fractions of the work that each level of skipping leaves out
  // for the source's blocks of 64 x 128 x 8 and warps of 32 x 32.
  std::map<std::string, double> metrics() const {
    if (shares_.empty()) shares_ = shares();
    std::map<std::string, double> m = metrics_;
    m.insert(shares_.begin(), shares_.end());
    return m;
  }

  const Sizes& sizes() const { return sizes_; }
  const float* dense() const { return dense_.as<float>(); }
  void drop_dense() { Buffer().swap(dense_); }
  void drop_lines() { Buffer().swap(lines_); }
  std::size_t device_bytes() const {
    return dense_.bytes() + lines_.bytes() + a_bits_.bytes() + b_bits_.bytes();
  }
  FormatStats format(std::int64_t nnz) const { return a_pattern_.stats(nnz); }

 private:
  std::map<std::string, double> shares() const {
    std::map<std::string, double> m;
    const auto density = [](const OperandPattern& p) {
      return static_cast<double>(p.set_bits()) /
             (static_cast<double>(p.strips) * static_cast<double>(p.length));
    };
    m["a_pattern_density"] = density(a_pattern_);
    m["b_pattern_density"] = density(b_pattern_);
    m["block_skip_fraction"] = 1 - needed(2, 4, OperandPattern::kByte);
    m["warp_skip_fraction"] = 1 - needed(1, 1, OperandPattern::kByte);
    m["k_skip_fraction"] = 1 - needed(1, 1, 1);
    return m;
  }

  OperandPattern download(const Buffer& bits, std::int64_t strips) const {
    OperandPattern p;
    p.length = sizes_.k;
    p.strips = strips;
    p.words = sizes_.words;
    p.bits.resize(static_cast<std::size_t>(strips * sizes_.words));
    device_->download(p.bits.data(), bits.data(), bits.bytes());
    return p;
  }

  Sizes sizes_;
  Device* device_;
  DenseView b_;
  Buffer dense_, lines_, a_bits_, b_bits_;
  OperandPattern a_pattern_, b_pattern_;
  std::map<std::string, double> metrics_;
  mutable std::map<std::string, double> shares_;  // of both patterns, once they are asked for
};

}  // namespace spmmbench::esmm
