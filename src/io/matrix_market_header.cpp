#include "io/matrix_market_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <vector>

#include "core/numbered.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::mm {
namespace {

constexpr std::string_view kBanner =
    "'%%MatrixMarket matrix coordinate|array real|double|integer|pattern "
    "general|symmetric|skew-symmetric'";
constexpr std::string_view kBlanks = " \t\r\v\f";

// Walks the lines of the header; `line` is the current one without its end.
class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : text_(text), name_(name) { next(); }

  bool next() {
    at_ = next_;
    if (at_ >= text_.size()) return false;
    const std::size_t end = text_.find('\n', at_);
    next_ = end == std::string_view::npos ? text_.size() : end + 1;
    line = text_.substr(at_, (end == std::string_view::npos ? text_.size() : end) - at_);
    ++number;
    return true;
  }
  std::size_t end_of_line() const { return next_; }

  std::vector<std::string_view> words() const {
    std::vector<std::string_view> out;
    constexpr std::size_t kMost = 8;  // more than any valid line has; a line may be gigabytes long
    for (std::size_t at = line.find_first_not_of(kBlanks);
         at != std::string_view::npos && out.size() < kMost;) {
      const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
      out.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(kBlanks, end);
    }
    return out;
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(fmt::format("{}:{}: expected {}, got {}", name_, std::max<std::int64_t>(number, 1),
                            expected, got));
  }

  std::string_view line;
  std::int64_t number = 0;

 private:
  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0, next_ = 0;
};

std::string lower(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

void parse_banner(std::string_view text, const Lines& lines, Header& header) {
  if (const std::string foreign = describe_foreign_content(text); !foreign.empty())
    lines.fail(kBanner, foreign);
  const std::vector<std::string_view> words = lines.words();
  if (words.size() != 5 || words[0].data() != lines.line.data() ||
      lower(words[0]) != "%%matrixmarket")
    lines.fail(kBanner, quote(lines.line, 80));

  if (lower(words[1]) != "matrix") lines.fail("the object 'matrix'", quote(words[1]));
  const std::string format = lower(words[2]), field = lower(words[3]), symmetry = lower(words[4]);
  if (format == "array") header.array = true;
  else if (format != "coordinate") lines.fail("coordinate or array", quote(words[2]));

  // scipy writes the second, which the format's description lacks, for unsigned types.
  if (field == "integer" || field == "unsigned-integer") header.field = Field::integer;
  else if (field == "pattern") header.field = Field::pattern;
  else if (field == "complex")
    lines.fail("real, double, integer or pattern", "'complex': products are real here");
  else if (field != "real" && field != "double")
    lines.fail("real, double, integer or pattern", quote(words[3]));

  if (symmetry == "symmetric") header.symmetry = Symmetry::symmetric;
  else if (symmetry == "skew-symmetric") header.symmetry = Symmetry::skew_symmetric;
  else if (symmetry == "hermitian")
    lines.fail("general, symmetric or skew-symmetric",
               "'hermitian', which is for complex matrices");
  else if (symmetry != "general")
    lines.fail("general, symmetric or skew-symmetric", quote(words[4]));

  if (header.field == Field::pattern && header.array)
    lines.fail("coordinate with the field pattern", "'array'");
  if (header.field == Field::pattern && header.symmetry == Symmetry::skew_symmetric)
    lines.fail("general or symmetric with the field pattern", "'skew-symmetric'");
}

void parse_size(const Lines& lines, Header& header) {
  const std::string_view expected =
      header.array ? "a size line 'rows columns'" : "a size line 'rows columns entries'";
  const std::vector<std::string_view> words = lines.words();
  if (words.size() != (header.array ? 2 : 3)) lines.fail(expected, quote(lines.line));
  std::int64_t sizes[3] = {};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto [last, error] =
        std::from_chars(words[i].data() + (words[i].front() == '+' ? 1 : 0), end, sizes[i]);
    if (error == std::errc::result_out_of_range) lines.fail("a size in 64 bits", quote(words[i]));
    if (error != std::errc{} || last != end) lines.fail(expected, quote(lines.line));
    if (sizes[i] < 0) lines.fail("sizes from 0 up", quote(words[i]));
  }
  header.rows = sizes[0], header.cols = sizes[1];
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (header.rows > kMost || header.cols > kMost)
    lines.fail(fmt::format("at most {} rows and columns (32-bit indices)", kMost),
               fmt::format("{} x {}", header.rows, header.cols));
  if (header.symmetry != Symmetry::general && header.rows != header.cols)
    lines.fail("a square matrix with this symmetry",
               fmt::format("{} x {}", header.rows, header.cols));
  if (!header.array) header.entries = sizes[2];
  else if (header.symmetry == Symmetry::general) header.entries = header.rows * header.cols;
  else if (header.symmetry == Symmetry::symmetric)
    header.entries = header.rows * (header.rows + 1) / 2;
  else header.entries = header.rows * std::max<std::int64_t>(header.rows - 1, 0) / 2;
}

// The shortest line of data: "1\n" in an array, "1 1\n" otherwise; the last line may lack its end.
// A line that lacks its value is named when it is read.
void check_room(const Lines& lines, const Header& header, std::size_t bytes_left) {
  const std::size_t shortest = header.array ? 2 : 4;
  const std::size_t most = (bytes_left + 1) / shortest;
  if (static_cast<std::uint64_t>(header.entries) > most)
    lines.fail(numbered(header.entries, "entry", "entries") + ", as this line says",
               fmt::format("only {} after it, room for {} at most: truncated?",
                           numbered(bytes_left, "byte"), most));
}

}  // namespace

Header parse_header(std::string_view text, const std::string& name) {
  Header header;
  Lines lines(text, name);
  parse_banner(text, lines, header);
  for (;;) {
    if (!lines.next()) lines.fail("a size line", "the end of the file");
    const std::size_t first = lines.line.find_first_not_of(kBlanks);
    if (first != std::string_view::npos && lines.line[first] != '%') break;
  }
  parse_size(lines, header);
  header.bytes = lines.end_of_line();
  header.lines = lines.number;
  check_room(lines, header, text.size() - header.bytes);
  return header;
}

}  // namespace spmmbench::mm
