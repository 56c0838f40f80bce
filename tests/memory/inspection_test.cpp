// What `inspect` says it needs, before it begins, against what it takes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "../host/matrices.hpp"
#include "cli/inspection_bytes.hpp"
#include "heap.hpp"
#include "io/csr_cache.hpp"
#include "run_words.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct Shape {
  const char* what;
  CsrMatrix matrix;
  double least_share = 0.25;  // of what is said: more would be refused where there is room
};

// `length` nonzeros in each of the first rows, `step` columns apart.
CsrMatrix shaped(std::int64_t rows, std::int64_t cols, std::int64_t filled, std::int64_t length,
                 std::int64_t step) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (std::int64_t row = 0; row < filled; ++row)
    for (std::int64_t i = 0; i < length; ++i)
      lists[row].push_back(static_cast<std::int32_t>(i * step));
  return testing::from_rows(cols, lists);
}

TEST(Inspection, TakesWhatItSaysItNeedsAtMost) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("spmmbench_inspection_" + std::to_string(::getpid()) + ".csr");
  for (const auto& [what, matrix, least_share] :
       {Shape{"rows", shaped(300000, 1, 1, 1, 1)}, Shape{"columns", shaped(1, 300000, 1, 1, 1)},
        Shape{"rows and columns", shaped(200000, 200000, 1, 1, 1)},
        Shape{"one long row", shaped(1, 200000, 1, 200000, 1)},
        Shape{"short rows", shaped(50000, 50000, 50000, 4, 12000)},
        Shape{"dense", shaped(500, 500, 500, 500, 1), 0.05}}) {
    write_csr_cache(file.string(), matrix, false);
    ExitCode code = ExitCode::usage;
    ::testing::internal::CaptureStdout();
    const std::int64_t peak = testing::peak_bytes_of([&] {
      code = testing::run_words({"inspect", "--json", "--reorder", "none,rsh,rcm", file.string()});
      return 0;
    });
    ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, ExitCode::ok) << what;
    const double own = 8.0 * static_cast<double>(matrix.rows + 1 + matrix.nnz());
    const double taken = static_cast<double>(peak) - own, said = inspection_bytes(matrix);
    EXPECT_LT(taken, said) << what;
    EXPECT_GT(taken, least_share * said) << what;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace spmmbench
