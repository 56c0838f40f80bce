#pragma once
// The table for people: one block per matrix, N and layout, with a winner per precision and
// type of C. A row that is too noisy to tell, or that is `auto` beside the kernel which it picked,
// is no winner.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/table_columns.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

struct TableStyle {
  int width = 0;  // of the terminal; 0: of a file, where nothing is left out, cut or broken
  bool color = false;
  std::vector<std::string> columns = {};  // keys of table_column; empty: those that fit
  std::string sort = {};   // key of table_column, or KEY:desc; empty: the fastest first
  std::int64_t calls = 0;  // what Baselines was given: told in the title
  bool why = false;        // after the rows, why `auto` picked and why kernels were skipped
  // Which rows are printed; empty: all. The star and the answer are among all rows in any case.
  std::function<bool(const ResultRow&)> shows = {};
};

// Throws Error for a key that no column has.
void check_style(const TableStyle& style);

// Rows of one matrix, any N and order; speed-ups already filled.
std::string format_table(std::span<const ResultRow> rows, const TableStyle& style);
std::string format_markdown(std::span<const ResultRow> rows, const TableStyle& style);

// Escapes `|`, which would end a cell, and `<`, which would begin HTML: `<!--` hides what follows.
std::string markdown_text(const std::string& text);

// Geometric means over a whole run, from running sums: memory does not grow with the number of
// matrices.
class Summary {
 public:
  void add(std::span<const ResultRow> rows_of_one_matrix, const TableStyle& style);
  std::string format(const TableStyle& style) const;  // empty until a second matrix was added
 private:
  struct Mean {
    double log_sum = 0;
    int n = 0;
  };
  struct Sums {
    int cases = 0, wins = 0, wrong = 0;
    Mean bound;
    std::map<Reference, std::array<Mean, 2>> speedups;  // over the default, over the best
  };
  int matrices_ = 0;
  Reference reference_ = Reference::none;  // of the speed-ups that are shown
  std::map<std::string, Sums> kernels_;    // key: precision, type of C and kernel
};

}  // namespace spmmbench
