// libFuzzer target: any bytes are either a valid CSR or one Error of one line, the same for every
// cut into chunks and every number of threads.
//   clang++ -fsanitize=fuzzer,address ... matrix_market_fuzz.cpp, or any compiler with driver.cpp

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "io/matrix_market.hpp"
#include "spmmbench/error.hpp"
#include "target.hpp"

namespace {

// Everything that can be seen of a parse.
struct Outcome {
  spmmbench::CsrMatrix csr;
  std::string error;
};

Outcome parse(std::string_view text, std::size_t chunk_bytes, int threads) {
  Outcome out;
  try {
    out.csr =
        spmmbench::parse_matrix_market(
            text, "fuzz", {.threads = threads, .chunk_bytes = chunk_bytes, .memory_bytes = 1 << 24})
            .csr;
    spmmbench::CsrMatrix checked = out.csr;
    checked.values.resize(checked.nnz());  // a pattern has none
    spmmbench::validate(checked);
  } catch (const spmmbench::Error& error) {
    out.error = error.what();
  }
  return out;
}

// NaN differs from itself, so values are compared as bytes.
bool same(const Outcome& a, const Outcome& b) {
  return a.error == b.error && a.csr.rows == b.csr.rows && a.csr.cols == b.csr.cols &&
         a.csr.row_ptr == b.csr.row_ptr && a.csr.col_idx == b.csr.col_idx &&
         a.csr.values.size() == b.csr.values.size() &&
         (a.csr.values.empty() ||
          std::memcmp(a.csr.values.data(), b.csr.values.data(), a.csr.values.size() * 4) == 0);
}

}  // namespace

const std::vector<std::string>& fuzz_seeds() {
  static const std::vector<std::string> seeds = {
      "%%MatrixMarket matrix coordinate real general\n% c\n3 4 5\n1 1 1.5\n3 4 -2e-3\n2 2 +.5\n1 1 "
      "2\n3 1 nan\n",
      "%%MatrixMarket matrix coordinate pattern symmetric\r\n4 4 3\r\n2 1\r\n\r\n4 4\r\n3 1",
      "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 7\n3 2 "
      "-9223372036854775808\n",
      "%%MatrixMarket matrix array double general\n2 3\n1\n2\n0\n1e39\n1e-46\ninf\n",
      "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
      "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n",
      "%%MatrixMarket matrix coordinate real general\n2000 1 2\n1 1 1\n2000 1 1\n",
      "%%MatrixMarket matrix coordinate real general\n1 5 6\n1 5 1\n1 4 1\n1 3 1\n1 2 1\n1 1 1\n1 "
      "5 "
      "1\n"};
  return seeds;
}

const std::vector<std::string>& fuzz_tokens() {
  static const std::vector<std::string> tokens = {"\n",
                                                  "\r\n",
                                                  " ",
                                                  "\t",
                                                  "%",
                                                  "0",
                                                  "1",
                                                  "2",
                                                  "-1",
                                                  "+",
                                                  "1.",
                                                  "1e999",
                                                  "1e-999",
                                                  "nan",
                                                  "inf",
                                                  "2147483647",
                                                  "2147483648",
                                                  "9223372036854775807",
                                                  "18446744073709551617",
                                                  "real",
                                                  "integer",
                                                  "pattern",
                                                  "complex",
                                                  "array",
                                                  "coordinate",
                                                  "general",
                                                  "symmetric",
                                                  "skew-symmetric",
                                                  "hermitian",
                                                  "vector",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  "1 1 1\n",
                                                  "3 3 3\n",
                                                  "0 0 0\n",
                                                  std::string(300, '7'),
                                                  std::string(300, ' ')};
  return tokens;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Outcome whole = parse(text, std::size_t{1} << 20, 1);
  require(!whole.error.starts_with("CSR:"), "the parser made an invalid CSR");
  require(whole.error.find('\n') == std::string::npos, "an error of more than one line");
  require(whole.error.empty() || whole.error.starts_with("fuzz:"), "an error without FILE:LINE");
  require(same(whole, parse(text, 1 + size % 13, 1)), "chunks change the outcome");
  if (size % 8 == 0) require(same(whole, parse(text, 7, 2)), "threads change the outcome");
  return 0;
}
