#pragma once
// What a fuzz target gives the driver besides libFuzzer's entry point.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

const std::vector<std::string>& fuzz_seeds();   // valid inputs, which are mutated
const std::vector<std::string>& fuzz_tokens();  // pieces of the format, which are put in

inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}
