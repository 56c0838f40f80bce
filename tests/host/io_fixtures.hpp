#pragma once
// What the tests of src/io share: a scratch folder, files made of text, random matrices, and the
// message of an error.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/gzip.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench::test {

// A folder of its own for one test, removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spmmbench-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What `body` throws as spmmbench::Error; fails the test when it throws nothing.
template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
    return message;
  }
  ADD_FAILURE() << "no error";
  return {};
}

using Entries = std::map<std::pair<std::int64_t, std::int64_t>, double>;

inline CsrMatrix csr_of(std::int64_t rows, std::int64_t cols, const Entries& entries,
                        bool pattern = false) {
  CsrMatrix csr{rows, cols, std::vector<std::int64_t>(rows + 1), {}, {}};
  for (const auto& [position, value] : entries) {
    ++csr.row_ptr[position.first + 1];
    csr.col_idx.push_back(static_cast<std::int32_t>(position.second));
    if (!pattern) csr.values.push_back(static_cast<float>(value));
  }
  for (std::int64_t row = 0; row < rows; ++row) csr.row_ptr[row + 1] += csr.row_ptr[row];
  return csr;
}

// Finite fp32 values of every magnitude, zeros and subnormals included.
inline float any_float(std::mt19937_64& random) {
  for (;;) {
    const auto bits = static_cast<std::uint32_t>(random());
    if ((bits & 0x7F800000U) != 0x7F800000U) {
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
  }
}

inline CsrMatrix random_csr(std::int64_t rows, std::int64_t cols, std::int64_t entries,
                            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Entries out;
  for (std::int64_t i = 0; i < entries && rows > 0 && cols > 0; ++i)
    out[{random() % rows, random() % cols}] = any_float(random);
  return csr_of(rows, cols, out);
}

// A .npy file.
template <class T>
inline std::string npy(const std::string& type, const std::string& order, const std::string& shape,
                       const std::vector<T>& data, char version = 1) {
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", type, order, shape);
  std::string out = "\x93NUMPY";
  out += version;
  out += std::string(1, '\0');
  out += static_cast<char>(dictionary.size());
  out.append(version == 1 ? 1 : 3, '\0');
  out += dictionary;
  out.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
  return out;
}

inline std::string gzip_bytes(const ScratchFolder& folder, const std::string& text) {
  GzipOutput file(folder.file("scratch.gz"));
  file.write(text);
  file.commit();
  return read_bytes(folder.file("scratch.gz"));
}

inline std::string some_text(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string out;
  while (out.size() < bytes) out += fmt::format("{} {}\n", random() % 1000, random() % 1000);
  out.resize(bytes);
  return out;
}

}  // namespace spmmbench::test
