// CSR in device memory, as callers give it: read, checked, sorted and transposed there, against the
// host.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/greatest_magnitude.hpp"
#include "core/transpose.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/given_csr.hpp"
#include "shapes.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench::test {
namespace {

// The arrays of a matrix on the device, with indices of the given widths and values of fp32.
template <class Offset, class Column>
struct Given {
  Given(Device& device, const CsrMatrix& a)
      : row_ptr(device.upload(std::vector<Offset>(a.row_ptr.begin(), a.row_ptr.end()))),
        col_idx(device.upload(std::vector<Column>(a.col_idx.begin(), a.col_idx.end()))),
        values(device.upload(a.values)),
        csr{a.rows,
            a.cols,
            a.nnz(),
            row_ptr.data(),
            col_idx.data(),
            values.data(),
            sizeof(Offset) == 8,
            sizeof(Column) == 8,
            ElementType::f32} {}

  Buffer row_ptr, col_idx, values;
  GivenCsr csr;
};

// Each row backwards.
CsrMatrix reversed(CsrMatrix a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    std::reverse(a.col_idx.begin() + a.row_ptr[row], a.col_idx.begin() + a.row_ptr[row + 1]);
    std::reverse(a.values.begin() + a.row_ptr[row], a.values.begin() + a.row_ptr[row + 1]);
  }
  return a;
}

CsrMatrix rounded(CsrMatrix a, Precision precision) {
  a.scale = nonzero_scale_of(precision, greatest_magnitude(a.values));
  for (float& value : a.values) value = round_to(precision, value / a.scale);
  return a;
}

void expect_matrix(Device& device, const DeviceCsr& got, const CsrMatrix& expected) {
  ASSERT_EQ(got.rows, expected.rows);
  ASSERT_EQ(got.cols, expected.cols);
  ASSERT_EQ(got.nnz, expected.nnz());
  EXPECT_EQ(downloaded<std::int64_t>(device, got.row_ptr, got.rows + 1), expected.row_ptr);
  EXPECT_EQ(downloaded<std::int32_t>(device, got.col_idx, got.nnz), expected.col_idx);
  const auto bytes =
      downloaded<unsigned char>(device, got.values, got.nnz * bytes_of(got.value_type));
  for (std::int64_t i = 0; i < got.nnz; ++i)
    ASSERT_EQ(load_element(got.value_type, bytes.data(), i), expected.values[i]) << i;
}

template <class Offset, class Column>
void expect_read(Device& device, const CsrMatrix& a, Precision precision) {
  const Given<Offset, Column> given(device, a);
  const ReorderedCsr read = read_csr_on_device(given.csr, precision, device);
  const CsrMatrix expected = rounded(a, precision);
  expect_matrix(device, read.a.view(), expected);
  EXPECT_EQ(read.scale, expected.scale);
  EXPECT_EQ(read.source.data(), nullptr);
}

TEST(GivenCsr, IsTheMatrixOfTheHostForEveryTypeOfIndicesAndEveryPrecision) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    expect_read<std::int32_t, std::int32_t>(device, shape.matrix, Precision::fp16);
    expect_read<std::int64_t, std::int64_t>(device, shape.matrix, Precision::tf32);
    expect_read<std::int32_t, std::int64_t>(device, shape.matrix, Precision::bf16);
    expect_read<std::int64_t, std::int32_t>(device, shape.matrix, Precision::fp64);
    expect_read<std::int32_t, std::int32_t>(device, shape.matrix, Precision::fp8_e4m3);
    expect_read<std::int32_t, std::int32_t>(device, shape.matrix, Precision::fp8_e5m2);
  }
}

TEST(GivenCsr, IsSortedWithTheSourceOfEachEntryWhereColumnsDoNotAscend) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix mixed = reversed(shape.matrix);
    const Given<std::int32_t, std::int32_t> given(device, mixed);
    const ReorderedCsr read = read_csr_on_device(given.csr, Precision::fp32, device);
    expect_matrix(device, read.a.view(), shape.matrix);
    expect_matrix(device, read_transposed_on_device(given.csr, Precision::fp32, device).a.view(),
                  transpose(shape.matrix));
    if (read.source.data() == nullptr) continue;  // rows of one entry
    const auto source = downloaded<std::int32_t>(device, read.source.data(), mixed.nnz());
    for (std::int64_t i = 0; i < mixed.nnz(); ++i)
      ASSERT_EQ(mixed.values[source[i]], shape.matrix.values[i]) << i;
    // Other values, in the order in which A was given.
    const Buffer doubled = device.allocate(mixed.nnz() * sizeof(double));
    convert_values(given.values.data(), ElementType::f32, read.source.as<std::int32_t>(),
                   doubled.data(), Precision::fp64, mixed.nnz(), device.stream());
    const auto got = downloaded<double>(device, doubled.data(), mixed.nnz());
    for (std::int64_t i = 0; i < mixed.nnz(); ++i) ASSERT_EQ(got[i], shape.matrix.values[i]) << i;
  }
}

TEST(GivenCsr, TransposedIsTheTransposeOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    const Given<std::int64_t, std::int32_t> given(device, shape.matrix);
    std::vector<std::int64_t> source;
    const CsrMatrix expected = transpose(rounded(shape.matrix, Precision::fp16), &source);
    for (const bool at_once : {false, true}) {
      const ReorderedCsr transposed =
          at_once
              ? read_transposed_on_device(given.csr, Precision::fp16, device)
              : transpose_on_device(read_csr_on_device(given.csr, Precision::fp16, device), device);
      expect_matrix(device, transposed.a.view(), expected);
      EXPECT_EQ(downloaded<std::int32_t>(device, transposed.source.data(), source.size()),
                std::vector<std::int32_t>(source.begin(), source.end()));
    }
  }
}

// Rows of up to 240 entries, the first in column 0, the others spread over all columns.
CsrMatrix spread(std::int64_t rows, std::int64_t cols) {
  const std::int64_t of_row = std::min<std::int64_t>(240, cols / 2), step = cols / of_row;
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < of_row; ++i) {
      const auto drawn = static_cast<std::int64_t>(hash_position(7, row, i) % step);
      m.col_idx.push_back(static_cast<std::int32_t>(i == 0 ? 0 : i * step + drawn));
      m.values.push_back(uniform_at(7, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(GivenCsr, TransposedIsTheTransposeOfTheHostForManyEntriesAndColumns) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // Columns of one to four bytes; more entries than one tile of each SM; as many as one launch
  // takes at most (2^20), a row more, and twice as many.
  for (const auto& [rows, cols] :
       {std::pair{6000, 200}, std::pair{3000, 50'000}, std::pair{3000, 3'000'000},
        std::pair{3000, 20'000'000}, std::pair{8192, 256}, std::pair{8193, 256},
        std::pair{9000, 100'000}}) {
    SCOPED_TRACE(cols);
    const CsrMatrix a = spread(rows, cols);
    const ReorderedCsr got =
        transpose_on_device(CsrOnDevice(a, Precision::fp32, device).view(), device);
    std::vector<std::int64_t> source;
    expect_matrix(device, got.a.view(), transpose(a, &source));
    EXPECT_EQ(downloaded<std::int32_t>(device, got.source.data(), source.size()),
              std::vector<std::int32_t>(source.begin(), source.end()));
  }
}

TEST(GivenCsr, IsTheSameWhereNobodyChecksIt) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    Given<std::int32_t, std::int64_t> given(device, shape.matrix);
    given.csr.checked = false;
    expect_matrix(device, read_csr_on_device(given.csr, Precision::fp16, device).a.view(),
                  rounded(shape.matrix, Precision::fp16));
    expect_matrix(device, read_transposed_on_device(given.csr, Precision::fp16, device).a.view(),
                  transpose(rounded(shape.matrix, Precision::fp16)));
  }
}

TEST(GivenCsr, ReadAheadIsTheSameOnceItsCheckIsFinished) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    for (const bool marked : {false, true})
      for (const bool ascends : {true, false}) {
        const CsrMatrix& a = shape.matrix;
        const Given<std::int32_t, std::int64_t> given(device, ascends ? a : reversed(a));
        CsrReadAhead read = read_csr_ahead(given.csr, Precision::fp16, device);
        CsrReadAhead transposed = read_transposed_ahead(given.csr, Precision::fp16, device);
        const DeviceCsr before = read.a.a.view();
        if (marked) read.check->mark();
        read.check->finish(read.a);
        transposed.check->finish(transposed.a);
        expect_matrix(device, read.a.a.view(), rounded(a, Precision::fp16));
        expect_matrix(device, transposed.a.a.view(), transpose(rounded(a, Precision::fp16)));
        EXPECT_EQ(read.a.a.view().col_idx, before.col_idx);
        if (ascends) {
          EXPECT_EQ(read.a.source.data(), nullptr);
        }
      }
  }
}

TEST(GivenCsr, IsSymmetricWhereItEqualsItsTranspose) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& a = shape.matrix;
    EXPECT_EQ(is_symmetric(CsrOnDevice(a, Precision::fp32, device).view(), device),
              transpose(a) == a);
  }
}

TEST(GivenCsr, IsNotSymmetricWhereOneEntryDiffers) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // A band of the entries (i, j) with |i - j| in {0, 3, 700}, whose values depend on i + j.
  constexpr std::int32_t kRows = 100'000;
  CsrMatrix a{kRows, kRows, {0}, {}, {}};
  for (std::int32_t row = 0; row < kRows; ++row) {
    for (const std::int32_t apart : {-700, -3, 0, 3, 700})
      if (row + apart >= 0 && row + apart < kRows) {
        a.col_idx.push_back(row + apart);
        a.values.push_back(static_cast<float>((2 * row + apart) % 1000));
      }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  const auto found = [&] {
    return is_symmetric(CsrOnDevice(a, Precision::fp32, device).view(), device);
  };
  EXPECT_TRUE(found());
  EXPECT_TRUE(found());   // what was counted is gone
  a.values.front() += 1;  // on the diagonal, as the last one is
  a.values.back() += 1;
  EXPECT_TRUE(found());
  a.values[1] += 1;
  EXPECT_FALSE(found());
  a.values[1] -= 1;
  a.col_idx[1] = 4;  // instead of 3
  EXPECT_FALSE(found());
}

class BadCsr : public testing::Test {
 protected:
  // What reading it and its transpose throw, after `spoil`.
  template <class Spoil>
  std::string refusal(Device& device, const Spoil& spoil) {
    CsrMatrix a{3, 5, {0, 2, 2, 4}, {1, 3, 0, 4}, {1, 2, 3, 4}};
    spoil(a);
    const Given<std::int32_t, std::int64_t> given(device, a);
    GivenCsr csr = given.csr;
    csr.nnz = 4;
    const auto refusal_of = [&](const auto& read) -> std::string {
      try {
        (void)read(csr, Precision::fp32, device);
      } catch (const Error& error) {
        return error.what();
      }
      return "taken";
    };
    const std::string refused = refusal_of(read_csr_on_device);
    EXPECT_EQ(refusal_of(read_transposed_on_device), refused);
    for (const auto& read : {read_csr_ahead, read_transposed_ahead}) {
      const auto finished = [&](auto&&... arguments) {
        CsrReadAhead ahead = read(arguments...);
        expect_in_bounds(device, ahead.a.a.view());
        ahead.check->finish(ahead.a);
        return 0;
      };
      EXPECT_EQ(refusal_of(finished), refused);
    }
    return refused;
  }

  static void expect_in_bounds(Device& device, const DeviceCsr& a) {
    const auto row_ptr = downloaded<std::int64_t>(device, a.row_ptr, a.rows + 1);
    EXPECT_EQ(row_ptr.front(), 0);
    EXPECT_EQ(row_ptr.back(), a.nnz);
    EXPECT_TRUE(std::is_sorted(row_ptr.begin(), row_ptr.end()));
    for (const std::int32_t column : downloaded<std::int32_t>(device, a.col_idx, a.nnz))
      EXPECT_TRUE(column >= 0 && column < a.cols) << column;
  }
};

TEST_F(BadCsr, IsRefusedWithTheFirstPlaceThatIsWrong) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  EXPECT_EQ(refusal(device, [](CsrMatrix&) {}), "taken");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.row_ptr[0] = 1; }),
            "spmmbench_csr: expected row pointers from 0, got 1");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.row_ptr[1] = 3; }),
            "spmmbench_csr: row_ptr falls at row 1");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.row_ptr[3] = 2'000'000'000; }),
            "spmmbench_csr: row_ptr ends with 2000000000, nnz is 4");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.col_idx[2] = a.col_idx[3] = 5; }),
            "spmmbench_csr: index 5 is not in [0, 4]: column of entry 2");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.col_idx[3] = -1; }),
            "spmmbench_csr: index -1 is not in [0, 4]: column of entry 3");
  EXPECT_EQ(refusal(device, [](CsrMatrix& a) { a.col_idx[3] = 0; }),
            "spmmbench_csr: row 2: column 0 appears twice");
}

TEST_F(BadCsr, OutsideOfTheDevicesMemoryIsRefused) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const std::vector<std::int32_t> on_host(6);
  const Buffer there = device.upload(on_host);
  GivenCsr csr{1, 5, 0, on_host.data(), there.data(), there.data(), false, false, ElementType::f32};
  EXPECT_THROW((void)read_csr_on_device(csr, Precision::fp32, device), Error);
  csr = {1, 5, 2, there.data(), nullptr, there.data(), false, false, ElementType::f32};
  EXPECT_THROW((void)read_csr_on_device(csr, Precision::fp32, device), Error);
  csr.col_idx = reinterpret_cast<const void*>(std::uintptr_t{4096});
  EXPECT_THROW((void)read_csr_on_device(csr, Precision::fp32, device), Error);
}

// Of a matrix that no host has.
class HeldByNoHost final : public LazyCsr {
 public:
  const CsrMatrix& get() override { throw Error("A is read on the host"); }
};

// Multiplies by csr_merge, into a C of bytes 0xFF with as many behind it, which have to stay.
void expect_nothing_written_behind(Device& device, const DeviceCsr& a, std::int64_t n) {
  const Kernel& kernel = *Registry<Kernel>::instance().find("csr_merge");
  HeldByNoHost unread;
  SparseOperand operand{HostCsr(&unread), {}, Precision::fp16, nullptr};
  operand.on_device = &a;
  DenseView b = make_b_view(a.cols, n, Layout::row_major, ElementType::f16);
  const Buffer b_memory = device.allocate(b.bytes());
  device.fill_bytes(b_memory.data(), 0x3C, b.bytes());
  b.data = b_memory.data();
  DenseView c = make_dense_view(a.rows, n, Layout::row_major, ElementType::f16);
  const Buffer c_memory = device.allocate(2 * c.bytes());
  device.fill_bytes(c_memory.data(), 0xFF, c_memory.bytes());
  c.data = c_memory.data();
  StageTimer stages;
  const auto prepared = kernel.prepare(operand, {}, device, stages);
  const auto plan = prepared->bind({.n = n, .c_type = ElementType::f16}, stages);
  plan->launch(b, c, device.stream());
  device.synchronize();
  const auto bytes = downloaded<unsigned char>(device, c_memory.data(), c_memory.bytes());
  EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(c.bytes()), bytes.end(),
                          [](unsigned char byte) { return byte == 0xFF; }));
}

TEST_F(BadCsr, HarmsNobodyWhereItIsMultipliedBeforeItsCheckIsFinished) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kRows = 700, kOfRow = 60, kCols = 500;
  CsrMatrix good{kRows, kCols, {0}, {}, {}};
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t i = 0; i < kOfRow; ++i)
      good.col_idx.push_back(static_cast<std::int32_t>(8 * i + row % 8));
    good.row_ptr.push_back(good.row_ptr.back() + kOfRow);
  }
  good.values.assign(good.col_idx.size(), 1);
  using Spoil = void (*)(CsrMatrix&);
  for (const Spoil spoil : {Spoil([](CsrMatrix& a) { a.row_ptr[0] = 5; }),
                            Spoil([](CsrMatrix& a) { a.row_ptr[300] = 2'000'000'000; }),
                            Spoil([](CsrMatrix& a) { a.row_ptr[300] = -2'000'000'000; }),
                            Spoil([](CsrMatrix& a) { a.row_ptr[kRows] = 7; }),
                            Spoil([](CsrMatrix& a) { a.col_idx[12'345] = 2'000'000'000; }),
                            Spoil([](CsrMatrix& a) { a.col_idx[12'345] = -2'000'000'000; })}) {
    CsrMatrix a = good;
    spoil(a);
    const Given<std::int32_t, std::int32_t> given(device, a);
    GivenCsr csr = given.csr;
    csr.nnz = good.nnz();
    for (const auto& read : {read_csr_ahead, read_transposed_ahead})
      for (const std::int64_t n : {1, 8, 64}) {
        CsrReadAhead ahead = read(csr, Precision::fp16, device);
        expect_nothing_written_behind(device, ahead.a.a.view(), n);
        EXPECT_THROW(ahead.check->finish(ahead.a), Error);
      }
  }
}

}  // namespace
}  // namespace spmmbench::test
