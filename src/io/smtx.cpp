#include "io/smtx.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <charconv>
#include <limits>

#include "core/numbered.hpp"
#include "io/csr_assembly.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

bool is_separator(char c) { return c == ' ' || c == ',' || c == '\t' || c == '\r' || c == '\n'; }

class Numbers {
 public:
  Numbers(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  // The next number, in [low, high].
  std::int64_t next(std::string_view what, std::int64_t low, std::int64_t high) {
    skip();
    std::int64_t value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [last, error] = std::from_chars(rest_.data(), end, value);
    const bool whole = error == std::errc{} && (last == end || is_separator(*last));
    if (!whole || value < low || value > high)
      throw Error(fmt::format("{}:{}: expected {} from {} to {}, got {}", path_, line_, what, low,
                              high, rest_.empty() ? "the end of the file" : quote(word())));
    rest_.remove_prefix(last - rest_.data());
    return value;
  }

  void require_end() {
    skip();
    if (!rest_.empty())
      throw Error(fmt::format("{}:{}: expected the end of the file after the last column, got {}",
                              path_, line_, quote(word())));
  }

 private:
  void skip() {
    std::size_t at = 0;
    for (; at < rest_.size() && is_separator(rest_[at]); ++at) line_ += rest_[at] == '\n';
    rest_.remove_prefix(at);
  }
  std::string_view word() const {
    std::size_t length = 0;
    while (length < rest_.size() && !is_separator(rest_[length])) ++length;
    return rest_.substr(0, length);
  }

  std::string_view rest_;
  const std::string& path_;
  std::int64_t line_ = 1;
};

}  // namespace

CsrMatrix parse_smtx(std::string_view text, const std::string& path) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (const std::string foreign = describe_foreign_content(text); !foreign.empty())
    throw Error(fmt::format("{}:1: expected 'rows, cols, nonzeros', got {}", path, foreign));
  Numbers numbers(text, path);
  // Every number takes a digit and, but for the last, a separator.
  const auto most_numbers = static_cast<std::int64_t>(text.size() / 2 + 1);
  CsrMatrix csr;
  csr.rows = numbers.next("rows", 0, kMost);
  csr.cols = numbers.next("columns", 0, kMost);
  const std::int64_t nnz = numbers.next("nonzeros", 0, std::numeric_limits<std::int64_t>::max());
  if (csr.rows >= most_numbers || nnz >= most_numbers || csr.rows + nnz >= most_numbers)
    throw Error(fmt::format("{}:1: expected {} and {}, got a file of {}", path,
                            numbered(csr.rows + 1, "offset"), numbered(nnz, "column"),
                            numbered(text.size(), "byte")));
  csr.row_ptr.resize(csr.rows + 1);
  std::int64_t before = 0;
  for (std::int64_t row = 0; row <= csr.rows; ++row)
    before = csr.row_ptr[row] = numbers.next(row == 0 ? "the first offset" : "a rising offset",
                                             row == csr.rows ? nnz : before, row == 0 ? 0 : nnz);
  csr.col_idx.resize(nnz);
  for (std::int32_t& col : csr.col_idx)
    col = static_cast<std::int32_t>(numbers.next("a column", 0, csr.cols - 1));
  numbers.require_end();
  sort_rows(csr, omp_get_max_threads());
  return csr;
}

CsrMatrix read_smtx(const std::string& path) { return parse_smtx(MappedFile(path).bytes(), path); }

}  // namespace spmmbench
