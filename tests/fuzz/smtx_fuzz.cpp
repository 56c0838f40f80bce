// Any bytes are either a valid pattern or one Error of one line.

#include <omp.h>

#include <string_view>

#include "io/smtx.hpp"
#include "target.hpp"

const std::vector<std::string>& fuzz_seeds() {
  static const std::vector<std::string> seeds = {"3, 4, 3\n0 2 2 3\n0 3 1\n", "1,1,1\r\n0 1\r\n0",
                                                 "0, 0, 0\n0\n\n", "2, 3, 4\n0 3 4\n2 1 2 0\n"};
  return seeds;
}

const std::vector<std::string>& fuzz_tokens() {
  static const std::vector<std::string> tokens = {"\n",
                                                  "\r\n",
                                                  " ",
                                                  ",",
                                                  "0",
                                                  "1",
                                                  "2",
                                                  "-1",
                                                  "+1",
                                                  "1.5",
                                                  "2147483647",
                                                  "2147483648",
                                                  "9223372036854775807",
                                                  "18446744073709551616",
                                                  "\xff",
                                                  std::string(1, '\0'),
                                                  std::string(50, '7'),
                                                  std::string(50, ' ')};
  return tokens;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  omp_set_num_threads(1);  // small inputs: starting threads takes longer than reading
  expect_one_line_of_error("fuzz:", [&] {
    spmmbench::CsrMatrix csr =
        spmmbench::parse_smtx({reinterpret_cast<const char*>(data), size}, "fuzz");
    csr.values.resize(csr.nnz());  // a pattern has none
    require_valid(csr);
  });
  return 0;
}
