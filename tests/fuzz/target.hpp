#pragma once
// What a fuzz target gives the driver besides libFuzzer's entry point.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/error.hpp"
#include "spmmbench/matrix.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

const std::vector<std::string>& fuzz_seeds();   // valid inputs, which are mutated
const std::vector<std::string>& fuzz_tokens();  // pieces of the format, which are put in

inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

inline void require_valid(const spmmbench::CsrMatrix& csr) {
  try {
    spmmbench::validate(csr);
  } catch (const spmmbench::Error&) {
    require(false, "the parser made an invalid CSR");
  }
}

// `read` may throw an Error of one line, which begins with the name of the file.
template <class Read>
void expect_one_line_of_error(std::string_view file, const Read& read) {
  try {
    read();
  } catch (const spmmbench::Error& error) {
    const std::string_view message = error.what();
    require(message.find('\n') == std::string_view::npos, "an error of more than one line");
    require(message.starts_with(file), "an error without the file's name");
  }
}
