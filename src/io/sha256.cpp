#include "io/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace spmmbench {
namespace {

static_assert(std::endian::native == std::endian::little, "hashed and stored arrays are memory");

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress(std::array<std::uint32_t, 8>& state, const unsigned char* data, std::size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, data + 4 * i, 4);
      w[i] = __builtin_bswap32(word);
    }
    for (int i = 16; i < 64; ++i) {
      const std::uint32_t s0 =
          std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += add[i];
  }
}

}  // namespace

void Sha256::update(const void* data, std::size_t bytes) {
  const auto* in = static_cast<const unsigned char*>(data);
  const std::size_t held = bytes_ % kBlockBytes;
  bytes_ += bytes;
  if (held > 0) {
    const std::size_t take = std::min(bytes, kBlockBytes - held);
    std::memcpy(pending_.data() + held, in, take);
    if (held + take < kBlockBytes) return;
    compress(state_, pending_.data(), 1);
    in += take, bytes -= take;
  }
  compress(state_, in, bytes / kBlockBytes);
  if (bytes % kBlockBytes > 0)
    std::memcpy(pending_.data(), in + bytes / kBlockBytes * kBlockBytes, bytes % kBlockBytes);
}

std::string Sha256::hex() {
  const std::uint64_t bits = bytes_ * 8;
  unsigned char padding[2 * kBlockBytes] = {0x80};
  const std::size_t held = bytes_ % kBlockBytes;
  const std::size_t zeros_end = (held < 56 ? 56 : 120) - held;
  for (int i = 0; i < 8; ++i)
    padding[zeros_end + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(padding, zeros_end + 8);
  std::string text;
  for (const std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

std::string matrix_sha256(const CsrMatrix& m, bool pattern) {
  Sha256 hash;
  const std::int64_t sizes[] = {m.rows, m.cols};
  hash.update(sizes, sizeof sizes);
  hash.update(m.row_ptr.data(), m.row_ptr.size() * sizeof m.row_ptr[0]);
  if (m.nnz() > 0) hash.update(m.col_idx.data(), m.col_idx.size() * sizeof m.col_idx[0]);
  if (m.nnz() > 0 && !pattern) hash.update(m.values.data(), m.values.size() * sizeof m.values[0]);
  return hash.hex();
}

}  // namespace spmmbench
