// libFuzzer target: any bytes are either a valid CSR or one Error of one line, the same for every
// cut into chunks and every number of threads.
//   clang++ -fsanitize=fuzzer,address ... matrix_market_fuzz.cpp, or any compiler with driver.cpp

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "io/matrix_market.hpp"
#include "spmmbench/error.hpp"

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

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

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
