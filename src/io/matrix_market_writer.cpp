#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "io/gzip.hpp"
#include "io/matrix_market.hpp"
#include "io/output.hpp"

namespace spmmbench {
namespace {

// "ROW COL VALUE\n": two indices below 2^31, and to_chars' longest shortest fp32 and fp64,
// "-1.17549435e-38" and "-2.2250738585072014e-308".
constexpr std::size_t longest_line(bool fp64) { return 10 + 1 + 10 + 1 + (fp64 ? 24 : 15) + 1; }

// Rows [first, last) as text.
void format_rows(const CsrMatrix& m, bool pattern, std::int64_t first, std::int64_t last,
                 std::string& out) {
  out.resize((m.row_ptr[last] - m.row_ptr[first]) * longest_line(!m.values64.empty()));
  char* p = out.data();
  char* const end = p + out.size();
  for (std::int64_t row = first; row < last; ++row)
    for (std::int64_t e = m.row_ptr[row]; e < m.row_ptr[row + 1]; ++e) {
      p = std::to_chars(p, end, row + 1).ptr;
      *p++ = ' ';
      p = std::to_chars(p, end, std::int64_t{m.col_idx[e]} + 1).ptr;
      if (!pattern) {
        *p++ = ' ';
        p = m.values64.empty() ? std::to_chars(p, end, m.values[e]).ptr
                               : std::to_chars(p, end, m.values64[e]).ptr;
      }
      *p++ = '\n';
    }
  out.resize(p - out.data());
}

template <class File>
void write_to(File& file, const CsrMatrix& m, bool pattern) {
  constexpr std::int64_t kEntriesPerPiece = 1 << 16;
  file.write(fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                         pattern ? "pattern" : "real", m.rows, m.cols, m.nnz()));
  std::vector<std::string> pieces(omp_get_max_threads());
  std::vector<std::int64_t> cut(pieces.size() + 1);
  for (std::int64_t row = 0; row < m.rows; row = cut.back()) {
    cut[0] = row;  // whole rows, about kEntriesPerPiece entries each
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto next = std::upper_bound(m.row_ptr.begin() + cut[i], m.row_ptr.end(),
                                         m.row_ptr[cut[i]] + kEntriesPerPiece);
      cut[i + 1] = std::clamp<std::int64_t>(next - m.row_ptr.begin() - 1, cut[i] + 1, m.rows);
      if (cut[i] == m.rows) cut[i + 1] = m.rows;
    }
    ExceptionTrap trap;
#pragma omp parallel for schedule(static, 1)
    for (std::size_t i = 0; i < pieces.size(); ++i)
      trap.run([&] { format_rows(m, pattern, cut[i], cut[i + 1], pieces[i]); });
    trap.rethrow();
    for (const std::string& piece : pieces) file.write(piece);
  }
  file.commit();
}

}  // namespace

void write_matrix_market(const std::string& path, const CsrMatrix& matrix, bool pattern) {
  if (path.ends_with(".gz")) {
    GzipOutput file(path);
    write_to(file, matrix, pattern);
  } else {
    OutputFile file(path);
    write_to(file, matrix, pattern);
  }
}

}  // namespace spmmbench
