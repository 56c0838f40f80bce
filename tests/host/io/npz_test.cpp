#include "io/npz.hpp"

#include <fmt/format.h>

#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

template <class T>
std::string vector_npy(const std::string& type, const std::vector<T>& values) {
  return npy(type, "False", fmt::format("({},)", values.size()), values);
}

NpzMembers matrix() {
  return {{"format", npy("|S3", "False", "()", std::vector<char>{'c', 's', 'r'})},
          {"shape", vector_npy("<i8", std::vector<std::int64_t>{3, 4})},
          {"indptr", vector_npy("<i4", std::vector<std::int32_t>{0, 2, 2, 3})},
          {"indices", vector_npy("<i4", std::vector<std::int32_t>{0, 3, 1})},
          {"data", vector_npy("<f4", std::vector<float>{1.5F, -2, 4})}};
}

const CsrMatrix kExpected = csr_of(3, 4, {{{0, 0}, 1.5}, {{0, 3}, -2}, {{2, 1}, 4}});

CsrMatrix with(const std::string& member, const std::string& bytes) {
  NpzMembers members = matrix();
  members[member] = bytes;
  return csr_from_npz(members, "f");
}

TEST(Npz, ValuesInFp64AreKeptAndTheirDuplicatesAddedWhereTheyAreWanted) {
  NpzMembers members = matrix();
  members["data"] = vector_npy("<f8", std::vector<double>{0.1, 0x1p-40, 3});
  members["indices"] = vector_npy("<i4", std::vector<std::int32_t>{3, 3, 1});
  EXPECT_TRUE(csr_from_npz(members, "f").values64.empty());
  const CsrMatrix csr = csr_from_npz(members, "f", 0, true);
  EXPECT_EQ(csr.col_idx, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(csr.values64, (std::vector<double>{0.1 + 0x1p-40, 3}));
  EXPECT_EQ(csr.values, csr_from_npz(members, "f").values);
  members["format"] = npy("|S3", "False", "()", std::vector<char>{'c', 'o', 'o'});
  members["row"] = vector_npy("<i4", std::vector<std::int32_t>{0, 0, 2});
  members["col"] = members["indices"];
  EXPECT_EQ(csr_from_npz(members, "f", 0, true), csr);
}

TEST(Npz, ArraysOfEveryTypeGiveTheSameMatrix) {
  EXPECT_EQ(csr_from_npz(matrix(), "f"), kExpected);
  EXPECT_EQ(with("indices", vector_npy("<i8", std::vector<std::int64_t>{0, 3, 1})), kExpected);
  EXPECT_EQ(with("indptr", vector_npy("<i8", std::vector<std::int64_t>{0, 2, 2, 3})), kExpected);
  EXPECT_EQ(with("data", vector_npy("<f8", std::vector<double>{1.5, -2, 4})), kExpected);
  EXPECT_EQ(with("data", vector_npy("<f2", std::vector<std::uint16_t>{0x3E00, 0xC000, 0x4400})),
            kExpected);
  EXPECT_EQ(with("data", vector_npy("|i1", std::vector<std::int8_t>{1, -2, 4})).values,
            (std::vector<float>{1, -2, 4}));
  EXPECT_EQ(with("data", vector_npy("|b1", std::vector<std::uint8_t>{1, 0, 1})).values,
            (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(with("data", vector_npy("<u8", std::vector<std::uint64_t>{1, 2, 3})).values,
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(with("format", npy("<U3", "False", "()", std::vector<char32_t>{'c', 's', 'r'})),
            kExpected);
}

TEST(Npz, ColumnsAreSortedAndRepeatedOnesAdded) {
  EXPECT_EQ(with("indices", vector_npy("<i4", std::vector<std::int32_t>{3, 0, 1})).col_idx,
            kExpected.col_idx);
  const CsrMatrix summed = with("indices", vector_npy("<i4", std::vector<std::int32_t>{2, 2, 1}));
  EXPECT_EQ(summed, csr_of(3, 4, {{{0, 2}, -0.5}, {{2, 1}, 4}}));
}

TEST(Npz, RepeatedValuesAreRoundedToFp32WhenTheyAreAdded) {
  NpzMembers members = matrix();
  members["indptr"] = vector_npy("<i8", std::vector<std::int64_t>{0, 0, 3, 4});
  members["indices"] = vector_npy("<i4", std::vector<std::int32_t>{3, 1, 3, 0});
  members["data"] = vector_npy("<f8", std::vector<double>{16777217, 2, -16777216, 16777217});
  EXPECT_EQ(csr_from_npz(members, "f"),
            csr_of(3, 4, {{{1, 1}, 2}, {{1, 3}, 1}, {{2, 0}, 16777216}}));
}

std::string format_npy(const std::string& name) {
  return npy("|S3", "False", "()", std::vector<char>(name.begin(), name.end()));
}

std::string ints(const std::vector<std::int32_t>& values) { return vector_npy("<i4", values); }

// kExpected in another format, for the tests below to break.
NpzMembers in_csc() {
  NpzMembers members = matrix();
  members["format"] = format_npy("csc");
  members["indptr"] = ints({0, 1, 2, 2, 3});
  members["indices"] = ints({0, 2, 0});
  members["data"] = vector_npy("<f4", std::vector<float>{1.5F, 4, -2});
  return members;
}

NpzMembers in_coo() {
  return {{"format", format_npy("coo")},
          {"shape", matrix().at("shape")},
          {"row", ints({2, 0, 0})},
          {"col", ints({1, 3, 0})},
          {"data", vector_npy("<f4", std::vector<float>{4, -2, 1.5F})}};
}

// Blocks of 3 x 2 of a 3 x 4 matrix.
NpzMembers in_bsr() {
  NpzMembers members = matrix();
  members["format"] = format_npy("bsr");
  members["indptr"] = ints({0, 2});
  members["indices"] = ints({1, 0});
  members["data"] =
      npy("<f4", "False", "(2, 3, 2)", std::vector<float>{0, -2, 0, 0, 0, 0, 1.5F, 0, 0, 0, 0, 4});
  return members;
}

TEST(Npz, OtherFormatsThanCsrAreReadToo) {
  EXPECT_EQ(csr_from_npz(in_csc(), "f"), kExpected);
  EXPECT_EQ(csr_from_npz(in_coo(), "f"), kExpected);
  const CsrMatrix bsr = csr_from_npz(in_bsr(), "f");
  EXPECT_EQ(bsr.row_ptr, (std::vector<std::int64_t>{0, 4, 8, 12})) << "zeros of blocks are entries";
  EXPECT_EQ(bsr.values, (std::vector<float>{1.5F, 0, 0, -2, 0, 0, 0, 0, 0, 4, 0, 0}));
}

TEST(Npz, EntriesOfOnePlaceAreAdded) {
  NpzMembers members = in_coo();
  members["row"] = ints({0, 0, 0});
  members["col"] = ints({3, 3, 3});
  members["data"] = vector_npy("<f8", std::vector<double>{16777217, 2, -16777216});
  EXPECT_EQ(csr_from_npz(members, "f"), csr_of(3, 4, {{{0, 3}, 3}}));
}

TEST(Npz, RowsThatDoNotFitInMemoryAreRefused) {
  NpzMembers members = in_coo();
  members["shape"] = vector_npy("<i8", std::vector<std::int64_t>{2'000'000'000, 4});
  EXPECT_EQ(error_of([&] { csr_from_npz(members, "f", 1'000'000'000); }),
            "f: expected a matrix that fits in memory, got 2000000000 x 4: needs 16.0 GB, 1.0 GB "
            "available");
}

TEST(Npz, OtherFormatsThatDoNotFitTogetherAreRefused) {
  const auto refusal = [](NpzMembers members, const std::string& member, const std::string& bytes) {
    members[member] = bytes;
    return error_of([&] { csr_from_npz(members, "f"); });
  };
  EXPECT_EQ(refusal(in_csc(), "indptr", ints({0, 1, 2, 3})),
            "f(indptr.npy): expected 5 offsets for 4 columns, got 4");
  EXPECT_EQ(refusal(in_csc(), "indices", ints({0, 3, 0})),
            "f(indices.npy): expected rows from 0 to 2, got 3 at 1");
  EXPECT_EQ(refusal(in_coo(), "row", ints({0, 0})),
            "f: expected as many rows as values, got 2 and 3");
  EXPECT_EQ(refusal(in_coo(), "col", ints({0, 4, 0})),
            "f(col.npy): expected columns from 0 to 3, got 4 at 1");
  const std::vector<float> twelve(12);
  EXPECT_EQ(refusal(in_bsr(), "data", npy("<f4", "False", "(2, 2, 3)", twelve)),
            "f(data.npy): expected blocks in C order that divide 3 x 4, got 2 x 3");
  EXPECT_EQ(
      refusal(in_bsr(), "data", npy("<f4", "True", "(2, 3, 2)", twelve)),
      "f(data.npy): expected blocks in C order that divide 3 x 4, got 3 x 2 in Fortran order");
  EXPECT_EQ(refusal(in_bsr(), "data", npy("<f4", "False", "(4, 3, 2)", twelve)),
            "f(data.npy): expected blocks as long as its header says, got 48 bytes");
  EXPECT_EQ(refusal(in_bsr(), "data", npy("<f4", "False", "(4, 3, 1)", twelve)),
            "f: expected as many columns as blocks, got 2 and 4");
  EXPECT_EQ(refusal(in_bsr(), "indices", ints({2, 0})),
            "f(indices.npy): expected columns of blocks from 0 to 1, got 2 at 0");
  NpzMembers none = in_coo();
  none.erase("col");
  EXPECT_EQ(error_of([&] { csr_from_npz(none, "f"); }),
            "f: expected a matrix of scipy.sparse.save_npz, got no 'col'");
}

TEST(Npz, WhatLiesBehindTheLastOffsetIsIgnored) {
  NpzMembers members = matrix();
  members["indices"] = vector_npy("<i4", std::vector<std::int32_t>{0, 3, 1, 99});
  members["data"] = vector_npy("<f4", std::vector<float>{1.5F, -2, 4, 7});
  EXPECT_EQ(csr_from_npz(members, "f"), kExpected);
}

TEST(Npz, ArraysThatDoNotFitTogetherAreRefused) {
  const auto refusal = [](const std::string& member, const std::string& bytes) {
    return error_of([&] { with(member, bytes); });
  };
  EXPECT_EQ(refusal("format", format_npy("dia")),
            "f: expected a matrix in CSR, CSC, COO or BSR, got format 'dia': save matrix.tocsr()");
  EXPECT_EQ(refusal("indptr", ints({0, 2, 3})),
            "f(indptr.npy): expected 4 offsets for 3 rows, got 3");
  EXPECT_EQ(refusal("indptr", ints({0, 2, 1, 3})),
            "f(indptr.npy): expected rising offsets, got 1 after 2");
  EXPECT_EQ(refusal("indptr", ints({0, 2, 2, 4})),
            "f(indptr.npy): expected an offset from 0 to 3, got 4 at 3");
  EXPECT_EQ(refusal("indptr", ints({1, 2, 2, 3})),
            "f(indptr.npy): expected offsets from 0 on, got 1");
  EXPECT_EQ(refusal("indices", ints({0, 4, 1})),
            "f(indices.npy): expected columns from 0 to 3, got 4 at 1");
  EXPECT_EQ(refusal("indices", ints({0, -1, 1})),
            "f(indices.npy): expected columns from 0 to 3, got -1 at 1");
  EXPECT_EQ(refusal("indices", ints({0, 1})), "f: expected as many columns as values, got 2 and 3");
  EXPECT_EQ(refusal("indices", vector_npy("<f4", std::vector<float>{0, 3, 1})),
            "f(indices.npy): expected signed integers, got type '<f4'");
  EXPECT_EQ(refusal("data", vector_npy("<c8", std::vector<double>{0, 3, 1})),
            "f(data.npy): expected real numbers, got type '<c8'");
  EXPECT_EQ(refusal("data", vector_npy("<f16", std::vector<double>{0, 3, 1})),
            "f(data.npy): expected real numbers of 1, 2, 4 or 8 bytes, got type '<f16'");
  EXPECT_EQ(refusal("data", npy("<f4", "False", "(3, 1)", std::vector<float>{0, 3, 1})),
            "f(data.npy): expected 1 dimension, got 2");
  EXPECT_EQ(refusal("data", npy("<f4", "False", "(4,)", std::vector<float>{0, 3, 1})),
            "f(data.npy): expected a vector as long as its header says, got 12 bytes");
  EXPECT_EQ(refusal("shape", ints({3})), "f(shape.npy): expected rows and columns, got 1 number");
  EXPECT_EQ(refusal("shape", ints({-3, 4})),
            "f(shape.npy): expected rows and columns from 0 to 2147483647, got -3 at 0");
  NpzMembers dense = {{"arr_0", matrix().at("data")}};
  EXPECT_EQ(error_of([&] { csr_from_npz(dense, "f"); }),
            "f: expected a matrix of scipy.sparse.save_npz, got no 'format'");
}

}  // namespace
}  // namespace spmmbench::test
