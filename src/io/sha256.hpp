#pragma once
// SHA-256 (FIPS 180-4) and the identity of a matrix made with it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

class Sha256 {
 public:
  // True: uses the SHA instructions of the processor where it has them. False: portable code only.
  explicit Sha256(bool allow_instructions = true);
  void update(const void* data, std::size_t bytes);
  std::string hex();  // 64 digits; finishes the hash

 private:
  static constexpr std::size_t kBlockBytes = 64;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlockBytes> pending_{};
  void (*compress_)(std::array<std::uint32_t, 8>& state, const unsigned char*, std::size_t blocks);
  std::uint64_t bytes_ = 0;
};

// Over the little-endian arrays int64 {rows, cols}, int64 row_ptr, int32 col_idx, and fp32 values
// unless `pattern`.
std::string matrix_sha256(const CsrMatrix& matrix, bool pattern);

// The SHA-256 of the file's content; empty if it is no file or cannot be read.
std::string file_sha256(const std::string& path);

}  // namespace spmmbench
