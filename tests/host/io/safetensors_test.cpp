#include "io/safetensors.hpp"

#include <fmt/format.h>

#include <vector>

#include "io/dense_file.hpp"
#include "io/input.hpp"
#include "io_fixtures.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::test {
namespace {

std::string with_length(const std::string& header) {
  const auto length = static_cast<std::uint64_t>(header.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
}

template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Tensor {
  std::string name, dtype, shape, data;
};

std::string safetensors(const std::vector<Tensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const Tensor& t : tensors) {
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", t.name,
                          t.dtype, t.shape, data.size(), data.size() + t.data.size());
    data += t.data;
  }
  return with_length(header + "}  ") + data;  // writers pad the header with spaces
}

const std::vector<float> kValues = {1.5F, -2, 0, 0.25F, -0.5F, 3};
const DenseMatrix kMatrix{2, 3, kValues};

std::string sixteen_bits(bool half) {
  std::vector<std::uint16_t> out;
  for (const float value : kValues)
    out.push_back(encode(half ? ElementType::f16 : ElementType::bf16, value));
  return bytes_of_values(out);
}

std::vector<Tensor> model() {
  return {{"l.1.w", "BF16", "[2,3]", sixteen_bits(false)},
          {"norm", "BF16", "[6]", sixteen_bits(false)},
          {"l.0.w", "F16", "[2,3]", sixteen_bits(true)},
          {"ids", "I64", "[1,1]", std::string(8, '\1')},
          {"w8", "F8_E8M0", "[2,2]", "abcd"},
          {"head", "F32", "[2,3]", bytes_of_values(kValues)},
          {"wide", "F64", "[2,3]",
           bytes_of_values(std::vector<double>(kValues.begin(), kValues.end()))}};
}

TEST(Safetensors, ATensorOfEveryFloatTypeIsRead) {
  const ScratchFolder folder;
  const std::string path = folder.write("m.safetensors", safetensors(model()));
  for (const char* const name : {"l.0.w", "l.1.w", "head", "wide"})
    EXPECT_EQ(read_tensor(path, name), kMatrix) << name;
  for (const auto& [type, dtype] :
       {std::pair{ElementType::e4m3, "F8_E4M3"}, {ElementType::e5m2, "F8_E5M2"}}) {
    std::string eight;
    for (const float value : kValues) eight += static_cast<char>(encode(type, value));
    const std::string of_eight =
        folder.write("e.safetensors", safetensors({{"w", dtype, "[2,3]", eight}}));
    EXPECT_EQ(read_tensor(of_eight, "w"), kMatrix);
  }
  const NamedMatrix matrix = load_input(path + ":head", {}).a;
  EXPECT_EQ(matrix.name, "head");
  EXPECT_EQ(matrix.source, path + ":head");
  EXPECT_EQ(matrix.csr, to_csr(kMatrix));
}

TEST(Safetensors, ATensorOfFp64KeepsItsValuesWhereTheyAreWanted) {
  const ScratchFolder folder;
  const std::vector<double> values = {0.1, 1e-300};
  const std::string path =
      folder.write("m.safetensors", safetensors({{"w", "F64", "[1,2]", bytes_of_values(values)}}));
  EXPECT_EQ(read_tensor(path, "w", true).values64, values);
  LoadOptions fp64;
  fp64.fp64 = true;
  EXPECT_EQ(load_input(path + ":w", fp64).a.csr.values64, values);
  EXPECT_EQ(load_input(path + ":w", {}).a.csr.nnz(), 1) << "zero in fp32";
}

TEST(Safetensors, PathsGlobsAndFoldersBecomeTheirMatrices) {
  const ScratchFolder folder;
  const std::string path = folder.write("m/m.safetensors", safetensors(model()));
  const auto full = [&](const char* name) { return path + ":" + name; };
  const std::vector<std::string> all = {full("head"), full("l.0.w"), full("l.1.w"), full("wide")};
  EXPECT_EQ(expand_inputs({path}), all);
  EXPECT_EQ(expand_inputs({path + ":l.*"}), (std::vector{full("l.0.w"), full("l.1.w")}));
  EXPECT_EQ(expand_inputs({full("head")}), std::vector{full("head")});
  EXPECT_EQ(expand_inputs({full("norm")}), std::vector{full("norm")});  // reading it says why not
  EXPECT_EQ(expand_inputs({folder.file("m")}), all);
  EXPECT_EQ(error_of([&] { expand_inputs({path + ":x*"}); }),
            path +
                ": expected a matrix of F32, F16, BF16, F64, F8_E4M3 or F8_E5M2 named 'x*', got "
                "none among "
                "7 tensors");
  EXPECT_EQ(error_of([&] { expand_inputs({folder.file("n.safetensors") + ":w"}); }),
            folder.file("n.safetensors") + ":w: no such file");
}

TEST(Safetensors, ABrokenFileCostsItsOwnRowsOnly) {
  const ScratchFolder folder;
  const std::string bad = folder.write("a.safetensors", "short");
  const std::string good = folder.write("b.safetensors", safetensors({model()[0]}));
  EXPECT_EQ(expand_inputs({folder.path().string()}), (std::vector{bad, good + ":l.1.w"}));
  EXPECT_EQ(error_of([&] { load_input(bad, {}); }),
            bad + ": expected a safetensors file, got 5 bytes");
  EXPECT_EQ(expand_inputs({bad, good}), (std::vector{bad, good + ":l.1.w"}));
  EXPECT_EQ(expand_inputs({bad + ":l.*", good}), (std::vector{bad + ":l.*", good + ":l.1.w"}));
  EXPECT_EQ(error_of([&] { load_input(bad + ":l.*", {}); }),
            bad + ": expected a safetensors file, got 5 bytes");
  const std::string empty = folder.write("c.safetensors", safetensors({}));
  EXPECT_EQ(expand_inputs({empty}), std::vector{empty});
  EXPECT_TRUE(contains(error_of([&] { load_input(empty, {}); }), "got none among 0 tensors"));
}

TEST(Safetensors, AFileOfOneMatrixNeedsNoName) {
  const ScratchFolder folder;
  const std::string one = folder.write("one.safetensors", safetensors({model()[0], model()[1]}));
  EXPECT_EQ(load_input(one, {}).a.csr, to_csr(kMatrix));
  const std::string two = folder.write("two.safetensors", safetensors(model()));
  EXPECT_EQ(error_of([&] { load_input(two, {}); }),
            fmt::format("{}: expected {}:NAME, one of its 4 matrices", two, two));
}

TEST(Safetensors, WhatIsNoMatrixOfFloatsIsRefusedByName) {
  const ScratchFolder folder;
  const std::string path = folder.write("m.safetensors", safetensors(model()));
  const auto refusal = [&](const char* name) {
    return error_of([&] { read_tensor(path, name); }).substr(path.size());
  };
  EXPECT_EQ(refusal("norm"), ":norm: expected a matrix, got 1 dimension");
  EXPECT_EQ(refusal("ids"), ":ids: expected F32, F16, BF16, F64, F8_E4M3 or F8_E5M2, got 'I64'");
  EXPECT_EQ(refusal("w8"), ":w8: expected F32, F16, BF16, F64, F8_E4M3 or F8_E5M2, got 'F8_E8M0'");
  EXPECT_EQ(refusal("none"), ": no tensor 'none' among its 7");
}

// What parse_safetensors says of a header (and data), after the path.
std::string complaint(const std::string& header, const std::string& data = "") {
  const std::string message = error_of([&] { parse_safetensors(with_length(header) + data, "f"); });
  EXPECT_TRUE(message.starts_with("f: ")) << message;
  return message.substr(3);
}

std::string tensor(const char* name, const char* shape, int begin, int end) {
  return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})", name, shape,
                     begin, end);
}

TEST(Safetensors, OffsetsMustCoverTheDataOnce) {
  const auto two = [](int begin, int end) {
    return fmt::format("{{{},{}}}", tensor("a", "[2]", 0, 8), tensor("b", "[2]", begin, end));
  };
  EXPECT_EQ(parse_safetensors(with_length(two(8, 16)) + std::string(16, 'x'), "f").tensors.size(),
            2U);
  EXPECT_EQ(complaint(two(4, 12), std::string(12, 'x')),
            "expected tensors that do not overlap, got 'a' and 'b'");
  EXPECT_EQ(complaint(two(0, 8), std::string(8, 'x')),
            "expected tensors that do not overlap, got 'a' and 'b'");
  EXPECT_EQ(complaint(two(12, 20), std::string(20, 'x')),
            "expected no gap before 'b', got 4 bytes");
  EXPECT_EQ(complaint(two(8, 16), std::string(15, 'x')),
            "truncated: expected 16 bytes of tensors, got 15");
  EXPECT_EQ(complaint(two(8, 16), std::string(17, 'x')), "expected 16 bytes of tensors, got 17");
  EXPECT_EQ(complaint(two(16, 8)), "safetensors header: expected two rising data_offsets of 'b'");
  EXPECT_EQ(complaint(fmt::format("{{{}}}", tensor("a", "[3]", 0, 8)), std::string(8, 'x')),
            "expected data_offsets of 'a' that hold its 3 F32 values, got 8 bytes");
  EXPECT_EQ(complaint(fmt::format("{{{}}}", tensor("a", "[4294967296,4294967296,16]", 0, 8)),
                      std::string(8, 'x')),
            "expected data_offsets of 'a' that hold its 2^63 or more F32 values, got 8 bytes");
}

TEST(Safetensors, HeadersOfAnotherStructureAreRefused) {
  const std::string expected =
      "safetensors header: expected {name: {dtype, shape, data_offsets}}, got ";
  EXPECT_EQ(complaint("[]"), expected + "a list");
  EXPECT_EQ(complaint("7"), expected + "7");
  EXPECT_EQ(complaint(R"({"a":3})"), expected + "3");
  EXPECT_EQ(complaint(R"({"a":{"dtype":{}}})"), expected + "an object at 'a'");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[-1]}})"), expected + "-1 at 'a'");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[1.5]}})"), expected + "'1.5' at 'a'");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[[1]]}})"), expected + "a list at 'a'");
  EXPECT_EQ(complaint(R"({"a":{"kind":1}})"), expected + "'kind' at 'a'");
  EXPECT_EQ(complaint(R"({"a\nb":{}})"), expected + "'a\\x0ab'");
  EXPECT_EQ(complaint(R"({"__metadata__":{"a":1}})"),
            "safetensors header: expected texts in __metadata__, got 1");
  EXPECT_EQ(complaint(R"({"__metadata__":["a"]})"),
            "safetensors header: expected texts in __metadata__, got a list");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[]}})"),
            "safetensors header: expected dtype, shape and data_offsets of 'a'");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","dtype":"F32"}})"),
            "safetensors header: expected each key once of 'a'");
  EXPECT_EQ(complaint(fmt::format("{{{},{}}}", tensor("a", "[]", 0, 4), tensor("a", "[]", 4, 8))),
            "safetensors header: expected each tensor once, got 'a' twice");
  EXPECT_EQ(complaint(R"({"":{"dtype":"F32"}})"),
            "safetensors header: expected a name of each tensor, got an empty one");
  EXPECT_EQ(complaint(R"({"a":)"), "safetensors header: expected JSON, got none at byte 6");
  EXPECT_EQ(complaint(std::string(1 << 20, '[')), expected + "a list");
}

TEST(Safetensors, TheHeaderIsBounded) {
  const auto refusal = [](const std::string& file) {
    return error_of([&] { parse_safetensors(file, "f"); });
  };
  EXPECT_EQ(refusal(""), "f: expected a safetensors file, got an empty file");
  EXPECT_EQ(refusal(std::string(7, '\0')), "f: expected a safetensors file, got 7 bytes");
  EXPECT_EQ(
      refusal(std::string(8, '\xff')),
      "f: expected a safetensors header of at most 100000000 bytes, got 18446744073709551615");
  EXPECT_EQ(refusal(with_length("{}").substr(0, 9)),
            "f: truncated: expected a safetensors header of 2 bytes, got 1");
  EXPECT_EQ(
      refusal("version https://git-lfs.github.com/spec/v1\n").find("f: expected a safetensors"),
      0U);
  EXPECT_TRUE(parse_safetensors(with_length("{}"), "f").tensors.empty());
  EXPECT_TRUE(
      parse_safetensors(with_length(R"({"__metadata__":{"a\nb":"c\td"}})"), "f").tensors.empty());
}

TEST(SafetensorsIndex, NamesTheMatricesOfAllItsFiles) {
  const ScratchFolder folder;
  const std::string first = folder.write("m/a.safetensors", safetensors(model()));
  const std::string second = folder.write(
      "m/b.safetensors", safetensors({{"z", "F32", "[2,3]", bytes_of_values(kValues)}}));
  const std::string index = folder.write("m/model.safetensors.index.json", R"({"metadata":{},
      "weight_map":{"z":"b.safetensors","norm":"a.safetensors","l.0.w":"a.safetensors"}})");
  const std::vector<std::string> lower = {first + ":l.0.w"},
                                 all = {first + ":l.0.w", second + ":z"};
  std::vector<std::string> lists;
  EXPECT_EQ(expand_inputs({index}, &lists), all) << "norm is no matrix";
  EXPECT_EQ(lists, std::vector{index}) << "no output may replace it";
  EXPECT_EQ(expand_inputs({index + ":l.*"}), lower);
  EXPECT_EQ(expand_inputs({folder.file("m"), index}).size(), 5U) << "the files of the folder";
  EXPECT_EQ(load_input(expand_inputs({index + ":z"})[0], {}).a.csr, to_csr(kMatrix));
}

TEST(SafetensorsIndex, AColonHasANameBehindIt) {
  const ScratchFolder folder;
  for (const char* const name : {"a.safetensors", "m.safetensors.index.json"}) {
    const std::string path = folder.write(name, safetensors(model()));
    EXPECT_EQ(error_of([&] { expand_inputs({path + ":"}); }),
              path + ": expected a tensor or a glob behind the colon, got none");
  }
}

TEST(SafetensorsIndex, WhatIsWrongWithItIsToldInOneLine) {
  const ScratchFolder folder;
  folder.write("a.safetensors", safetensors(model()));
  const std::string index = folder.file("m.safetensors.index.json");
  const auto refusal = [&](const std::string& text) {
    folder.write("m.safetensors.index.json", text);
    return error_of([&] { expand_inputs({index}); });
  };
  for (const char* const text : {"", "{", "[]", R"({"weight_map":[]})"})
    EXPECT_EQ(refusal(text), index + ": expected JSON with a weight_map from tensors to files");
  EXPECT_EQ(refusal(R"({"weight_map":{"w":1}})"),
            index + ": weight_map: 'w': expected the name of a file");
  EXPECT_EQ(refusal(R"({"weight_map":{"w":"b.safetensors"}})"),
            fmt::format("{}: weight_map: 'w': expected a .safetensors file, got '{}'", index,
                        folder.file("b.safetensors")));
  EXPECT_EQ(refusal(R"({"weight_map":{"w":"a.safetensors"}})"),
            fmt::format("{}: weight_map: expected 'w' in '{}', which lacks it", index,
                        folder.file("a.safetensors")));
  EXPECT_EQ(refusal(R"({"weight_map":{"norm":"a.safetensors"}})"),
            index + ": expected a matrix of F32, F16, BF16, F64, F8_E4M3 or F8_E5M2, got none");
}

}  // namespace
}  // namespace spmmbench::test
