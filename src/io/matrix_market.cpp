#include "io/matrix_market.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/numbered.hpp"
#include "core/parallel.hpp"
#include "io/csr_assembly.hpp"
#include "io/file.hpp"
#include "io/matrix_market_header.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using mm::Field;
using mm::Header;

// Where and how a chunk broke; lines count from 0 at the start of the chunk.
struct Fault {
  std::int64_t line = 0;
  std::string expected, got;
};

// What one chunk gave. `lines` is the number of line ends in it.
template <class Block>
struct Parsed {
  Block block;
  std::int64_t lines = 0;
  std::optional<Fault> fault;
};

// The values of an array file, in file order, in fp32 or fp64.
template <class Value>
struct ArrayBlock {
  std::vector<Value> entries;
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Reads the tokens of one line. Every line ends in '\n', so no step needs to look for the end of
// the text; `end` is for from_chars alone.
class LineScanner {
 public:
  LineScanner(const char* p, const char* end, bool fp64) : p_(p), end_(end), fp64_(fp64) {}

  const char* position() const { return p_; }
  void skip_blanks() {
    while (is_blank(*p_)) ++p_;
  }
  bool at_line_end() const { return *p_ == '\n'; }
  void next_line() { ++p_; }

  // 1-based index in [1, limit] to 0-based; false leaves the position at the token.
  bool index(std::int64_t limit, std::int32_t& out) {
    skip_blanks();
    const char* q = p_ + (*p_ == '+');
    const char* const first = q;
    std::uint64_t value = 0;  // wraps around beyond 19 digits, which only zeros in front may fill
    for (; is_digit(*q); ++q) value = value * 10 + static_cast<std::uint64_t>(*q - '0');
    if (q == first || !(is_blank(*q) || *q == '\n')) return false;
    if (q - first > 19 && std::count(first, q - 19, '0') != q - 19 - first) return false;
    if (value - 1 >= static_cast<std::uint64_t>(limit)) return false;
    out = static_cast<std::int32_t>(value - 1);
    p_ = q;
    return true;
  }

  // A real number, or an integer in the range of int64 or uint64 when `integer`. It is what the
  // text rounds to in fp64; where that is not wanted, rounded to fp32 it is what the text rounds
  // to.
  bool value(bool integer, double& out) {
    skip_blanks();
    const char* first = p_ + (*p_ == '+' && p_[1] != '-');
    const char* last = nullptr;
    if (integer) {
      std::int64_t whole = 0;
      std::uint64_t large = 0;
      const auto narrow = std::from_chars(first, end_, whole);
      const bool fits = narrow.ec != std::errc::result_out_of_range;
      const auto [end, error] = fits ? narrow : std::from_chars(first, end_, large);
      if (error != std::errc{}) return false;
      out = fits ? off_tie(static_cast<double>(whole), [&] { return static_cast<float>(whole); })
                 : off_tie(static_cast<double>(large), [&] { return static_cast<float>(large); });
      last = end;
    } else {
      const auto [end, error] = std::from_chars(first, end_, out);
      if (error == std::errc::invalid_argument) return false;
      out = error == std::errc::result_out_of_range
                ? saturated(first, end)
                : off_tie(out, [&, stop = end] { return rounded(first, stop); });
      last = end;
    }
    if (!(is_blank(*last) || *last == '\n')) return false;
    p_ = last;
    return true;
  }

  std::string token() {
    skip_blanks();
    if (at_line_end()) return "the end of the line";
    const char* last = p_;
    while (!(is_blank(*last) || *last == '\n')) ++last;
    return quote({p_, static_cast<std::size_t>(last - p_)});
  }

 private:
  // from_chars returns no value on overflow or underflow; these return infinity, zero or a
  // subnormal number.
  static double saturated(const char* first, const char* last) {
    return std::strtod(std::string(first, last).c_str(), nullptr);
  }
  static float rounded(const char* first, const char* last) {
    return std::strtof(std::string(first, last).c_str(), nullptr);
  }

  // `value`, or its neighbour where it lies in the middle between two numbers of fp32 and would not
  // be rounded to `nearest()`, the one that is nearer to what it stands for.
  template <class Nearest>
  double off_tie(double value, const Nearest& nearest) const {
    if (fp64_) return value;
    const auto here = static_cast<float>(value);
    const double mirrored = 2 * value - here;
    if (mirrored == here || static_cast<float>(mirrored) != mirrored) return value;
    const float right = nearest();
    return right == here ? value : std::nextafter(value, right);
  }

  const char* p_;
  const char* end_;
  bool fp64_;  // what is wanted
};

template <class Entry>
bool parse_entry(LineScanner& line, const Header& header, EntryBlock<Entry>& out, Fault& fault) {
  Entry entry{};
  if (!line.index(header.rows, entry.row)) {
    fault = {0, fmt::format("a row from 1 to {}", header.rows), line.token()};
    return false;
  }
  if (!line.index(header.cols, entry.col)) {
    fault = {0, fmt::format("a column from 1 to {}", header.cols), line.token()};
    return false;
  }
  if constexpr (std::is_same_v<Entry, ValueEntry>) {
    if (!line.value(header.field == Field::integer, entry.value)) {
      fault = {0, header.field == Field::integer ? "a 64-bit integer value" : "a real value",
               line.token()};
      return false;
    }
  }
  if (header.symmetry == Symmetry::skew_symmetric && entry.row == entry.col) {
    fault = {0, "no entry on the diagonal of a skew-symmetric matrix",
             fmt::format("row {0} column {0}", entry.row + 1)};
    return false;
  }
  out.add(entry, header.symmetry);
  return true;
}

template <class Value>
bool parse_entry(LineScanner& line, const Header& header, ArrayBlock<Value>& out, Fault& fault) {
  double value = 0;
  if (!line.value(header.field == Field::integer, value)) {
    fault = {0, header.field == Field::integer ? "a 64-bit integer value" : "a real value",
             line.token()};
    return false;
  }
  out.entries.push_back(static_cast<Value>(value));
  return true;
}

// Stops at the first fault, an entry beyond `most_entries` included.
template <class Block>
Parsed<Block> parse_chunk(std::string_view text, const Header& header, bool fp64,
                          std::int64_t most_entries, std::size_t expected_entries) {
  Parsed<Block> out;
  out.block.entries.reserve(expected_entries);
  const char* const end = text.data() + text.size();
  LineScanner line(text.data(), end, fp64);
  Fault fault;
  for (; line.position() < end; line.next_line(), ++out.lines) {
    line.skip_blanks();
    if (line.at_line_end()) continue;
    if (static_cast<std::int64_t>(out.block.entries.size()) == most_entries)
      fault = {0, "the end of the file after " + numbered(header.entries, "entry", "entries"),
               line.token()};
    else if (parse_entry(line, header, out.block, fault)) {
      line.skip_blanks();
      if (line.at_line_end()) continue;
      fault = {0, "the end of the line", line.token()};
    }
    fault.line = out.lines;
    out.fault = std::move(fault);
    return out;
  }
  return out;
}

// Cuts after line ends, about every chunk_bytes. `text` ends in '\n' or is empty.
std::vector<std::string_view> cut_into_chunks(std::string_view text, std::size_t chunk_bytes) {
  std::vector<std::string_view> chunks;
  while (text.size() > chunk_bytes) {
    const std::size_t length = text.find('\n', std::max<std::size_t>(chunk_bytes, 1) - 1) + 1;
    chunks.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  if (!text.empty()) chunks.push_back(text);
  return chunks;
}

[[noreturn]] void fail(const std::string& name, std::int64_t line, const std::string& expected,
                       const std::string& got) {
  throw Error(fmt::format("{}:{}: expected {}, got {}", name, line, expected, got));
}

// All entries below the header, as blocks in file order, checked against the declared count.
template <class Block>
std::vector<Block> parse_body(std::string_view text, const std::string& name, const Header& header,
                              const MatrixMarketOptions& options, int threads, bool mapped) {
  const std::string_view body = text.substr(header.bytes);
  const std::size_t last_line = body.rfind('\n') + 1;  // 0 without any line end
  std::vector<std::string_view> chunks =
      cut_into_chunks(body.substr(0, last_line), options.chunk_bytes);
  const std::size_t chunks_in_file = chunks.size();
  const std::string unterminated = std::string(body.substr(last_line)) + '\n';
  if (unterminated.size() > 1) chunks.push_back(unterminated);

  const double entries_per_byte = static_cast<double>(header.entries) /
                                  static_cast<double>(std::max<std::size_t>(body.size(), 1));
  std::vector<Parsed<Block>> parsed(chunks.size());
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::size_t i = 0; i < chunks.size(); ++i)
    trap.run([&] {
      const double guess = 1.02 * entries_per_byte * static_cast<double>(chunks[i].size());
      parsed[i] = parse_chunk<Block>(chunks[i], header, options.fp64, header.entries,
                                     static_cast<std::size_t>(guess) + 1);
      if (mapped && i < chunks_in_file) release_pages(chunks[i]);
    });
  trap.rethrow();

  std::int64_t entries = 0, line = header.lines + 1;
  std::vector<Block> blocks;
  blocks.reserve(parsed.size());
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    Parsed<Block>& part = parsed[i];
    const std::int64_t room = header.entries - entries;
    const auto found = static_cast<std::int64_t>(part.block.entries.size());
    // Text after the last declared entry is reported as surplus, even if it is also malformed.
    if (found > room || (found == room && part.fault))
      part = parse_chunk<Block>(chunks[i], header, options.fp64, room, 0);
    if (part.fault) fail(name, line + part.fault->line, part.fault->expected, part.fault->got);
    entries += static_cast<std::int64_t>(part.block.entries.size());
    line += part.lines;
    blocks.push_back(std::move(part.block));
  }
  if (entries < header.entries)
    fail(name, line - 1, numbered(header.entries, "entry", "entries"),
         fmt::format("the end of the file after {}", entries));
  return blocks;
}

// Array files store columns one after the other, of symmetric matrices only the part from the
// diagonal down, of skew-symmetric ones from below the diagonal. All become entries, zeros too.
template <class Value>
CsrMatrix assemble_array(const Header& header, const std::vector<ArrayBlock<Value>>& blocks) {
  const std::int64_t rows = header.rows, cols = header.cols;
  const bool skew = header.symmetry == Symmetry::skew_symmetric;
  const std::int64_t per_row = skew ? std::max<std::int64_t>(cols - 1, 0) : cols;
  CsrMatrix csr{rows, cols, std::vector<std::int64_t>(rows + 1), {}, {}};
  csr.col_idx.resize(rows * per_row);
  std::vector<Value> values(rows * per_row);
  for (std::int64_t row = 0; row < rows; ++row) {
    csr.row_ptr[row + 1] = (row + 1) * per_row;
    for (std::int64_t e = 0; e < per_row; ++e)
      csr.col_idx[row * per_row + e] = static_cast<std::int32_t>(skew && e >= row ? e + 1 : e);
  }
  const auto at = [&](std::int64_t row, std::int64_t col) -> Value& {
    return values[row * per_row + col - (skew && col > row ? 1 : 0)];
  };
  const auto first_of = [&](std::int64_t col) {
    return header.symmetry == Symmetry::general ? 0 : skew ? col + 1 : col;
  };
  std::int64_t row = first_of(0), col = 0;
  for (const ArrayBlock<Value>& block : blocks)
    for (const Value value : block.entries) {
      while (row >= rows) row = first_of(++col);
      at(row, col) = value;
      if (header.symmetry != Symmetry::general && row != col) at(col, row) = skew ? -value : value;
      ++row;
    }
  if constexpr (std::is_same_v<Value, double>) {
    csr.values.assign(values.begin(), values.end());
    csr.values64 = std::move(values);
  } else {
    csr.values = std::move(values);
  }
  return csr;
}

void check_memory(const std::string& name, const Header& header,
                  const MatrixMarketOptions& options) {
  const std::size_t available =
      options.memory_bytes != 0 ? options.memory_bytes : available_memory_bytes();
  const double expansion = header.symmetry == Symmetry::general ? 1 : 2;
  const double entry_bytes = header.field == Field::pattern  ? sizeof(PatternEntry)
                             : header.array && !options.fp64 ? sizeof(float)
                             : header.array                  ? sizeof(double)
                                                             : sizeof(ValueEntry);
  const double place_bytes = options.fp64 ? 16 : 8;  // of an entry of the matrix
  const double needed =
      8.0 * (static_cast<double>(header.rows) + 1) +
      static_cast<double>(header.entries) * (entry_bytes + place_bytes * expansion);
  if (needed > static_cast<double>(available))
    fail(name, header.lines, "a matrix that fits in memory",
         fmt::format("{} x {} with {}: needs {}, {} available", header.rows, header.cols,
                     numbered(header.entries, "entry", "entries"), format_bytes(needed),
                     format_bytes(static_cast<double>(available))));
}

MatrixMarketMatrix parse(std::string_view text, const std::string& name,
                         const MatrixMarketOptions& options, bool mapped) {
  const Header header = mm::parse_header(text, name);
  check_memory(name, header, options);
  const std::size_t pieces = (text.size() - header.bytes) / options.chunk_bytes + 1;
  const int threads = static_cast<int>(
      std::min<std::size_t>(pieces, options.threads > 0 ? options.threads : omp_get_max_threads()));
  const auto body = [&]<class Block>(Block) {
    return parse_body<Block>(text, name, header, options, threads, mapped);
  };
  if (header.array && options.fp64)
    return {assemble_array(header, body(ArrayBlock<double>{})), false};
  if (header.array) return {assemble_array(header, body(ArrayBlock<float>{})), false};
  if (header.field == Field::pattern)
    return {assemble_csr(header.rows, header.cols, header.symmetry,
                         body(EntryBlock<PatternEntry>{}), threads),
            true};
  return {assemble_csr(header.rows, header.cols, header.symmetry, body(EntryBlock<ValueEntry>{}),
                       threads, options.fp64),
          false};
}

}  // namespace

MatrixMarketMatrix parse_matrix_market(std::string_view text, const std::string& name,
                                       const MatrixMarketOptions& options) {
  return parse(text, name, options, false);
}

MatrixMarketMatrix read_matrix_market(const std::string& path, const MatrixMarketOptions& options) {
  const MappedFile file(path);
  return parse(file.bytes(), path, options, true);
}

}  // namespace spmmbench
