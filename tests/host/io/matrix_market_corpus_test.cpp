// Every file of the Matrix Market corpus gets its expected outcome. Where the corpus leaves it open
// ("either"), the reference reader's outcome is followed but for the table below.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "io/matrix_market.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

struct Choice {
  const char* file;
  const char* reason;  // part of the message
};
// Refused here, read by the reference.
constexpr Choice kOurChoices[] = {
    {"lenient/big_dims_2e31.mtx", "32-bit indices"},
    {"lenient/big_dims_2e40.mtx", "32-bit indices"},
    {"lenient/fmm_scipy_crashes_dim_over_32_bit.mtx", "32-bit indices"},
    {"lenient/fmm_scipy_crashes_vector_array_real_general.mtx", "'vector'"},
    {"lenient/fmm_scipy_crashes_vector_coordinate_real_general.mtx", "'vector'"},
    {"lenient/fmm_vector_coordinate_complex.mtx", "'vector'"},
    {"lenient/fmm_vector_coordinate_complex_dupes.mtx", "'vector'"},
    {"lenient/fmm_vector_coordinate_dupes.mtx", "'vector'"},
};
// A valid file whose row pointers alone take 17 GB: read where that fits, refused for memory
// elsewhere. The test asks for the refusal.
constexpr const char* kNeedsMemory = "valid/dim_near_int32.mtx";
constexpr std::size_t kMemoryBytes = 4'000'000'000;

// Where the variable names no folder, a path that is not there.
std::filesystem::path corpus() {
  const char* const data = std::getenv("SPMMBENCH_TEST_DATA");
  return std::filesystem::path(data != nullptr ? data : "") / "mmcorpus";
}

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line)
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else out.back() += c;
  return out;
}

bool is_complex(const std::string& bytes) {
  return bytes.substr(0, bytes.find('\n')).find("complex") != std::string::npos;
}

const char* our_refusal(const std::string& file, const std::string& bytes) {
  for (const Choice& choice : kOurChoices)
    if (file == choice.file) return choice.reason;
  if (file == kNeedsMemory) return "fits in memory";
  return is_complex(bytes) ? "'complex'" : nullptr;
}

TEST(MatrixMarketCorpus, EveryFileGetsItsExpectedOutcome) {
  std::ifstream list(corpus() / "EXPECTED.csv");
  if (!list) GTEST_SKIP() << "no " << corpus();
  std::string line;
  std::getline(list, line);
  int files = 0;
  for (; std::getline(list, line); ++files) {
    // file, expected, reference, rows, cols, entries_expanded, pattern_nnz, value_sum, ...
    const std::vector<std::string> row = split_csv(line);
    const std::string path = (corpus() / row[0]).string();
    const bool expect_ok = (row[1] == "either" ? row[2] : row[1]) == "ok";
    const MatrixMarketOptions options{.memory_bytes = kMemoryBytes};
    const char* const refusal = our_refusal(row[0], read_bytes(path));
    if (!expect_ok || refusal != nullptr) {
      const std::string message = error_of([&] { read_matrix_market(path, options); });
      EXPECT_TRUE(message.starts_with(path + ":")) << message;
      EXPECT_NE(message.find(expect_ok ? refusal : ""), std::string::npos) << message;
      continue;
    }
    SCOPED_TRACE(row[0]);
    MatrixMarketMatrix read = read_matrix_market(path, options);
    EXPECT_EQ(fmt::format("{} {} {}", read.csr.rows, read.csr.cols, read.csr.nnz()),
              fmt::format("{} {} {}", row[3], row[4], row[6]));
    // The corpus counts a duplicate pattern entry twice in the sum; here it is one entry.
    double sum = 0, magnitude = 0;
    for (const float value : read.csr.values) sum += value, magnitude += std::abs(value);
    if (read.pattern) sum = static_cast<double>(read.csr.nnz());
    const double expected = std::strtod(row[7].c_str(), nullptr);
    if (std::isfinite(sum)) {
      EXPECT_NEAR(sum, expected, 1e-6 * magnitude);
    } else {
      EXPECT_EQ(std::isnan(sum), std::isnan(expected)) << sum;
    }
    if (read.pattern) read.csr.values.resize(read.csr.nnz());
    validate(read.csr);
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace spmmbench::test
