#include "io/csr_cache.hpp"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "io/file.hpp"
#include "io/output.hpp"
#include "io/sha256.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's arrays are memory");

constexpr char kMagic[8] = {'S', 'P', 'M', 'M', 'C', 'S', 'R', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kPatternFlag = 1;
constexpr std::size_t kShaDigits = 64;

struct CacheHeader {
  char magic[8];
  std::uint32_t version, flags;
  std::int64_t rows, cols, nnz;
  std::uint64_t array_checksum[3];  // row_ptr, col_idx, values
  char sha256[kShaDigits];
  std::uint64_t header_checksum;  // of the bytes before it
};
static_assert(sizeof(CacheHeader) == 136);

// Four multiply-rotate lanes over 32 bytes at a time (the round of xxHash64), each block apart so
// that threads share the work.
std::uint64_t hash_block(const char* data, std::size_t bytes) {
  constexpr std::uint64_t kP1 = 0x9E3779B185EBCA87ULL, kP2 = 0xC2B2AE3D27D4EB4FULL;
  std::uint64_t lane[4] = {1, 2, 3, 4};
  const auto round = [&](const char* from) {
    std::uint64_t words[4];
    std::memcpy(words, from, sizeof words);
    for (int i = 0; i < 4; ++i) lane[i] = std::rotl(lane[i] + words[i] * kP2, 31) * kP1;
  };
  std::size_t at = 0;
  for (; at + 32 <= bytes; at += 32) round(data + at);
  char tail[32] = {};
  if (at < bytes) std::memcpy(tail, data + at, bytes - at);
  round(tail);
  std::uint64_t hash = bytes;
  for (const std::uint64_t l : lane) hash = mix64(hash ^ l);
  return hash;
}

// Copies to `copy_to` on the way unless that is null.
std::uint64_t checksum(const void* data, std::size_t bytes, void* copy_to = nullptr) {
  constexpr std::size_t kBlock = std::size_t{1} << 18;
  const char* const from = static_cast<const char*>(data);
  char* const to = static_cast<char*>(copy_to);
  std::uint64_t sum = mix64(bytes);
  const std::size_t blocks = (bytes + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (blocks > 16)
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t at = b * kBlock, length = std::min(kBlock, bytes - at);
    if (to != nullptr) std::memcpy(to + at, from + at, length);
    sum += mix64(hash_block(from + at, length) + b);
  }
  return sum;
}

template <class T>
std::size_t bytes_of_array(const std::vector<T>& array) {
  return array.size() * sizeof(T);
}

// Copies one array out of the file and checks it.
template <class T>
void take_array(const std::string& path, std::string_view& rest, std::int64_t length,
                std::uint64_t expected, const char* what, std::vector<T>& out) {
  out.resize(length);
  if (checksum(rest.data(), bytes_of_array(out), out.data()) != expected)
    throw Error(fmt::format("{}: corrupt: the checksum of {} does not match", path, what));
  rest.remove_prefix(bytes_of_array(out));
}

// A valid checksum proves that the file is as written, not that its writer was this program.
void check_structure(const std::string& path, const CsrMatrix& m) {
  std::atomic<bool> ok = m.row_ptr.front() == 0 && m.row_ptr.back() == std::ssize(m.col_idx);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t first = m.row_ptr[row], last = m.row_ptr[row + 1];
    if (first < 0 || last < first || last > std::ssize(m.col_idx)) {
      ok = false;
      continue;
    }
    std::int64_t previous = -1;
    bool ascending = true;
    for (std::int64_t e = first; e < last; ++e) {
      ascending &= m.col_idx[e] > previous;
      previous = m.col_idx[e];
    }
    if (!ascending || previous >= m.cols) ok = false;
  }
  if (!ok)
    throw Error(fmt::format("{}: corrupt: expected ascending row pointers and columns", path));
}

}  // namespace

CachedMatrix read_csr_cache(const std::string& path) {
  const MappedFile file(path);
  std::string_view rest = file.bytes();
  CacheHeader header{};
  if (!rest.starts_with(std::string_view(kMagic, sizeof kMagic)))
    throw Error(fmt::format("{}: expected a CSR cache written by 'spmmbench convert', got {}", path,
                            describe_content(rest)));
  if (rest.size() < sizeof header)
    throw Error(fmt::format("{}: truncated: expected a header of {} bytes, got {}", path,
                            sizeof header, rest.size()));
  std::memcpy(&header, rest.data(), sizeof header);
  if (header.version != kVersion)
    throw Error(fmt::format("{}: expected version {} of the CSR cache, got {}: convert it again",
                            path, kVersion, header.version));
  const std::string_view sha256(header.sha256, kShaDigits);
  if (sha256.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    throw Error(fmt::format("{}: corrupt: expected a SHA-256 of {} lowercase hex digits, got {}",
                            path, kShaDigits, quote(sha256)));
  if (header.header_checksum != checksum(&header, offsetof(CacheHeader, header_checksum)))
    throw Error(fmt::format("{}: corrupt: the checksum of the header does not match", path));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (header.rows < 0 || header.rows > kMost || header.cols < 0 || header.cols > kMost ||
      header.nnz < 0 || header.nnz > kMost * kMost / 4)
    throw Error(fmt::format("{}: corrupt: {} x {} with {} entries", path, header.rows, header.cols,
                            header.nnz));
  const bool pattern = (header.flags & kPatternFlag) != 0;
  const std::size_t size = sizeof header + (header.rows + 1) * sizeof(std::int64_t) +
                           header.nnz * (sizeof(std::int32_t) + (pattern ? 0 : sizeof(float)));
  if (rest.size() != size)
    throw Error(fmt::format("{}: expected {} bytes, got {}: truncated or appended to", path, size,
                            rest.size()));
  rest.remove_prefix(sizeof header);

  CachedMatrix out;
  out.pattern = pattern;
  out.sha256 = sha256;
  out.csr.rows = header.rows;
  out.csr.cols = header.cols;
  take_array(path, rest, header.rows + 1, header.array_checksum[0], "row_ptr", out.csr.row_ptr);
  take_array(path, rest, header.nnz, header.array_checksum[1], "col_idx", out.csr.col_idx);
  take_array(path, rest, pattern ? 0 : header.nnz, header.array_checksum[2], "values",
             out.csr.values);
  check_structure(path, out.csr);
  return out;
}

void write_csr_cache(const std::string& path, const CsrMatrix& matrix, bool pattern) {
  OutputFile file(path);  // before the hashing, so that an unwritable path fails at once
  const std::size_t value_bytes = pattern ? 0 : bytes_of_array(matrix.values);
  CacheHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.flags = pattern ? kPatternFlag : 0;
  header.rows = matrix.rows, header.cols = matrix.cols, header.nnz = matrix.nnz();
  header.array_checksum[0] = checksum(matrix.row_ptr.data(), bytes_of_array(matrix.row_ptr));
  header.array_checksum[1] = checksum(matrix.col_idx.data(), bytes_of_array(matrix.col_idx));
  header.array_checksum[2] = checksum(matrix.values.data(), value_bytes);
  std::memcpy(header.sha256, matrix_sha256(matrix, pattern).data(), kShaDigits);
  header.header_checksum = checksum(&header, offsetof(CacheHeader, header_checksum));
  file.write(&header, sizeof header);
  file.write(matrix.row_ptr.data(), bytes_of_array(matrix.row_ptr));
  file.write(matrix.col_idx.data(), bytes_of_array(matrix.col_idx));
  file.write(matrix.values.data(), value_bytes);
  file.commit();
}

}  // namespace spmmbench
