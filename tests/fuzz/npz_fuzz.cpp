// Any bytes as a zip archive, and any bytes as the arrays of a matrix, are either a valid CSR
// or one Error of one line. The arrays come unpacked, cut at a separator, since a mutation inside
// an archive would not get past its checksums.

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "io/npz.hpp"
#include "target.hpp"

namespace {

constexpr std::string_view kSeparator = "|cut|";
constexpr const char* kMembers[] = {"format", "shape", "indptr", "indices", "data", "row", "col"};

template <class T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values) {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(header.size());
  out += '\0';
  out += header;
  return out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string arrays(const std::string& format, const std::string& data) {
  std::string out = npy("|S3", "()", std::vector<char>(format.begin(), format.end()));
  const std::vector<std::int32_t> three = {2, 0, 1};
  for (const std::string& array :
       {npy("<i8", "(2,)", std::vector<std::int64_t>{3, 3}),
        npy("<i4", "(4,)", std::vector<std::int32_t>{0, 2, 2, 3}), npy("<i4", "(3,)", three), data,
        npy("<i4", "(3,)", three), npy("<i4", "(3,)", three)})
    out.append(kSeparator).append(array);
  return out;
}

// An archive of one stored member of one byte, with its central directory and end.
std::string archive() {
  const auto number = [](std::uint32_t value, int bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  constexpr std::uint32_t kCrc = 0x8CDC1683;  // of "x"
  const std::string name = "data.npy";
  const std::string common = number(20, 2) + number(0, 8 / 2) + number(0, 4) + number(kCrc, 4) +
                             number(1, 4) + number(1, 4) + number(name.size(), 2) + number(0, 2);
  const std::string local = number(0x04034B50, 4) + common + name + "x";
  const std::string central = number(0x02014B50, 4) + number(20, 2) + common + number(0, 2) +
                              number(0, 4) + number(0, 4) + number(0, 4) + name;
  return local + central + number(0x06054B50, 4) + number(0, 4) + number(1, 2) + number(1, 2) +
         number(central.size(), 4) + number(local.size(), 4) + number(0, 2);
}

}  // namespace

const std::vector<std::string>& fuzz_seeds() {
  const std::vector<float> values = {1, -2, 4};
  const std::string data = npy("<f4", "(3,)", values), blocks = npy("<f4", "(3, 1, 1)", values);
  static const std::vector<std::string> seeds = {arrays("csr", data), arrays("csc", data),
                                                 arrays("coo", data), arrays("bsr", blocks),
                                                 archive()};
  return seeds;
}

const std::vector<std::string>& fuzz_tokens() {
  static const std::vector<std::string> tokens = {"'<i8'",
                                                  "'<f8'",
                                                  "'<f2'",
                                                  "'|b1'",
                                                  "'<c8'",
                                                  "'<u4'",
                                                  "'<U3'",
                                                  "csr",
                                                  "bsr",
                                                  "coo",
                                                  "(",
                                                  ")",
                                                  ",",
                                                  "-1",
                                                  "9223372036854775807",
                                                  "99999999999999999999",
                                                  "True",
                                                  "'descr':",
                                                  "\x93NUMPY",
                                                  std::string(kSeparator),
                                                  std::string(4, '\0'),
                                                  std::string(4, '\xff'),
                                                  std::string(8, '\x7f'),
                                                  "PK\x01\x02",
                                                  "PK\x03\x04",
                                                  "PK\x05\x06",
                                                  "PK\x06\x06",
                                                  "PK\x06\x07"};
  return tokens;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  omp_set_num_threads(1);  // small inputs: starting threads takes longer than reading
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  if (rest.starts_with("PK")) {  // minizip reads files
    const int file = ::memfd_create("fuzz", 0);
    require(file >= 0 && ::write(file, data, size) == static_cast<ssize_t>(size), "no memory file");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    expect_one_line_of_error(path, [&] { require_valid(spmmbench::read_npz(path)); });
    ::close(file);
  }
  spmmbench::NpzMembers members;
  for (const char* const member : kMembers) {
    const std::size_t end = std::min(rest.find(kSeparator), rest.size());
    members[member] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + kSeparator.size(), rest.size()));
  }
  expect_one_line_of_error(
      "fuzz", [&] { require_valid(spmmbench::csr_from_npz(members, "fuzz", 1 << 24)); });
  return 0;
}
