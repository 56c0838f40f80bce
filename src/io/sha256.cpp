#include "io/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
// The same with Intel's SHA extensions: four rounds per step, the state as {A,B,E,F} and {C,D,G,H}.
__attribute__((target("sha,sse4.1"))) void compress_with_instructions(
    std::array<std::uint32_t, 8>& state, const unsigned char* data, std::size_t blocks) {
  const auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load(state.data()), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule
    for (int step = 0; step < 16; ++step) {
      __m128i& now = w[step % 4];
      if (step < 4) {
        now = _mm_shuffle_epi8(load(data + 16 * step), big_endian);
      } else {
        const __m128i last = w[(step + 3) % 4], seven_back = w[(step + 2) % 4];
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(step + 1) % 4]),
                            _mm_alignr_epi8(last, seven_back, 4));
        now = _mm_sha256msg2_epu32(now, last);
      }
      const __m128i words = _mm_add_epi32(now, load(kRound + 4 * step));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
  return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}
#endif

}  // namespace

Sha256::Sha256([[maybe_unused]] bool allow_instructions) : compress_(compress) {
#if defined(__x86_64__)
  if (allow_instructions && has_instructions()) compress_ = compress_with_instructions;
#endif
}

void Sha256::update(const void* data, std::size_t bytes) {
  const auto* in = static_cast<const unsigned char*>(data);
  const std::size_t held = bytes_ % kBlockBytes;
  bytes_ += bytes;
  if (held > 0) {
    const std::size_t take = std::min(bytes, kBlockBytes - held);
    std::memcpy(pending_.data() + held, in, take);
    if (held + take < kBlockBytes) return;
    compress_(state_, pending_.data(), 1);
    in += take, bytes -= take;
  }
  compress_(state_, in, bytes / kBlockBytes);
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

std::string file_sha256(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  std::vector<char> part(1 << 20);
  Sha256 hash;
  while (file) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    hash.update(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  return file.eof() ? hash.hex() : std::string();
}

}  // namespace spmmbench
