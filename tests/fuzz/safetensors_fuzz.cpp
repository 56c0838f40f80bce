// Any bytes are either a header whose tensors lie inside the file, or one Error of one line.

#include <cstring>
#include <string_view>

#include "io/safetensors.hpp"
#include "target.hpp"

namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const auto length = static_cast<std::uint64_t>(header.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, 'x');
}

void check(std::string_view file) {
  expect_one_line_of_error("fuzz: ", [&] {
    try {
      const spmmbench::TensorFile parsed = spmmbench::parse_safetensors(file, "fuzz");
      for (const spmmbench::TensorInfo& tensor : parsed.tensors)
        require(tensor.begin <= tensor.end && parsed.data_begin + tensor.end <= file.size(),
                "a tensor beyond the file");
    } catch (const spmmbench::Error& error) {
      require(std::strlen(error.what()) < 1000, "an error longer than a screen's line");
      throw;
    }
  });
}

}  // namespace

const std::vector<std::string>& fuzz_seeds() {
  static const std::vector<std::string> seeds = {
      file_of(
          R"({"__metadata__":{"format":"pt"},"a.w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
          20),
      file_of(R"({"w":{"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]}} )", 1),
      file_of("{}", 0)};
  return seeds;
}

const std::vector<std::string>& fuzz_tokens() {
  static const std::vector<std::string> tokens = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "\\",
                                                  "0",
                                                  "-1",
                                                  "1e9",
                                                  "4294967296",
                                                  "18446744073709551615",
                                                  "null",
                                                  "true",
                                                  "\"dtype\":",
                                                  "\"shape\":",
                                                  "\"data_offsets\":",
                                                  "[0,8]",
                                                  "\"F16\"",
                                                  "\"a\":{",
                                                  "\\n",
                                                  "\\ud800",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  std::string(200, '['),
                                                  std::string(200, 'n')};
  return tokens;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text);
  // The same with the length set right, so that mutations of the JSON reach the checks behind it.
  if (const std::size_t end = text.rfind('}'); end != std::string_view::npos && end >= 8) {
    std::string file(text);
    const auto length = static_cast<std::uint64_t>(end - 7);
    std::memcpy(file.data(), &length, sizeof length);
    check(file);
  }
  return 0;
}
