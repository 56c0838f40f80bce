// Slices built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../../kernels/jagged_slices/device_build.hpp"
#include "../../kernels/jagged_slices/device_sectors.hpp"
#include "core/row_lengths.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "format/wcsr.hpp"
#include "gpu/csr_on_device.hpp"
#include "jagged_slices/gathered_sectors.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

using jagged::JaggedShape;
using jagged::JaggedSlices;
using jagged::PackedEntries;

// Row r has length(r) entries, `apart` columns from one another.
template <class Length>
CsrMatrix strided(std::int64_t rows, std::int64_t cols, std::int64_t apart, Length length) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t entries = length(row);
    for (std::int64_t i = 0; i < entries; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(row % 7 + apart * i));
      m.values.push_back(uniform_at(4, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

std::vector<NamedShape> sliced_shapes() {
  std::vector<NamedShape> shapes = all_shapes();
  // Columns too far apart to pack, in some slices or in all.
  shapes.push_back({"far", strided(3000, 2'000'000, 10'000, [](auto r) { return r % 190; })});
  shapes.push_back({"some_far", strided(3000, 200'000, 1000, [](auto r) { return r / 25; })});
  // Rows of so many entries that the length of a part, not their number, limits parts.
  shapes.push_back({"longest", strided(3, 400'000, 1, [](auto r) { return r * 190'000; })});
  // Every row of several tiles is cut by most of the shapes below.
  shapes.push_back({"cut", strided(4500, 1000, 6, [](auto r) { return 100 + r % 67; })});
  // So many tiles of rows that they are summed in several turns.
  shapes.push_back({"tall", strided(600'001, 8, 1, [](auto r) { return r % 977 == 5 ? 1 : 0; })});
  leave_out_large(shapes);
  return shapes;
}

const JaggedShape kSliceShapes[] = {{32, 8, 32}, {16, 8, 32}, {8, 4, 8}, {4, 1, 1}, {2, 64, 64}};

Permutation named_order(const CsrMatrix& matrix, const std::string& name) {
  StageTimer stages;
  return make_row_orders(matrix, {"none", {}})->get(name, stages);
}

template <class T>
void expect_same(Device& device, const void* got, const std::vector<T>& expected,
                 const char* what) {
  EXPECT_EQ(downloaded<T>(device, got, expected.size()), expected) << what;
}

// Entries of slices that are not packed have no value.
void expect_packed(Device& device, const JaggedSlices& host, const PackedEntries& packed,
                   const jagged::DeviceSlices& got) {
  const auto entries = downloaded<std::uint32_t>(device, got.packed, packed.entries.size());
  for (std::size_t s = 0; s < host.slices.size(); ++s) {
    if (host.slices[s].packed == 0) continue;
    const std::uint64_t end =
        s + 1 < host.slices.size() ? host.slices[s + 1].first_entry : packed.entries.size();
    for (std::uint64_t i = host.slices[s].first_entry; i < end; ++i)
      ASSERT_EQ(entries[i], packed.entries[i]) << "packed entry " << i;
  }
}

// The values of packed slices, which products read in their packed entries alone.
template <class Bits>
void clear_packed(const JaggedSlices& host, std::vector<Bits>& values) {
  for (std::size_t s = 0; s < host.slices.size(); ++s) {
    if (host.slices[s].packed == 0) continue;
    const std::uint64_t end =
        s + 1 < host.slices.size() ? host.slices[s + 1].first_entry : values.size();
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(host.slices[s].first_entry),
              values.begin() + static_cast<std::ptrdiff_t>(end), Bits{0});
  }
}

// Columns of packed entries stay.
void clear_values(Device& device, const jagged::DeviceSlices& slices, std::size_t count,
                  ElementType type) {
  if (slices.values != nullptr) device.fill_bytes(slices.values, 0, count * bytes_of(type));
  if (slices.packed == nullptr || count == 0) return;
  auto entries = downloaded<std::uint32_t>(device, slices.packed, count);
  for (std::uint32_t& entry : entries) entry &= 0xFFFFFFFFU << 8 * bytes_of(type);
  device.upload(slices.packed, entries.data(), count * sizeof entries[0]);
}

// Also after the values have been replaced by themselves.
void expect_entries(Device& device, const JaggedSlices& host, const PackedEntries& packed,
                    const CsrOnDevice& a, Precision precision, const jagged::DeviceSlices& got) {
  const ElementType type = a.view().value_type;
  for (int i = 0; i < 2; ++i) {
    if (got.values != nullptr) {
      expect_same(device, got.col_idx, host.col_idx, "columns");
      if (type == ElementType::f64) expect_same(device, got.values, host.values64, "values");
      else
        visit_element(type, [&](auto element) {
          auto values = encode_values(host.values, element);
          if (i == 1) clear_packed(host, values);
          expect_same(device, got.values, values, "values");
        });
    }
    if (got.packed != nullptr) expect_packed(device, host, packed, got);
    if (i == 1) break;
    clear_values(device, got, host.values.size(), type);
    jagged::replace_values({a.values(), a.view().nnz, type, precision, nullptr}, got,
                           device.stream());
    device.synchronize();
  }
}

void expect_host_slices(Device& device, const CsrMatrix& matrix, Precision precision,
                        const JaggedShape& shape, const Permutation& order,
                        const std::vector<std::int32_t>& row_ids, bool packs) {
  JaggedSlices host = JaggedSlices::build(matrix, order, row_ids, shape);
  PackedEntries packed;
  packed.all = false;
  if (packs)
    visit_element(storage_type(precision), [&](auto element) {
      if constexpr (sizeof(typename decltype(element)::Bits) <= 2)
        packed = pack(host, encode_values(host.values, element));
    });
  const CsrOnDevice a(matrix, precision, device);
  const Buffer rows = device.upload(order), ids = device.upload(row_ids);
  const jagged::DeviceSlices got = jagged::build_slices(
      a.view(), rows.as<std::int32_t>(), order.empty() ? matrix.rows : std::ssize(order),
      ids.as<std::int32_t>(), shape, packs, device);
  ASSERT_EQ(got.count, std::ssize(host.slices));
  ASSERT_EQ(got.parts, std::ssize(host.part_of));
  ASSERT_EQ(got.long_row_count, std::ssize(host.long_rows));
  expect_same(device, got.slices, host.slices, "slices");
  expect_same(device, got.row_lengths, host.row_lengths, "lengths");
  expect_same(device, got.row_ids, host.row_ids, "row ids");
  expect_same(device, got.part_of, host.part_of, "part of");
  expect_same(device, got.long_rows, host.long_rows, "long rows");
  ASSERT_EQ(got.first_columns == nullptr, packed.first_columns.empty());
  if (!packed.first_columns.empty())
    expect_same(device, got.first_columns, packed.first_columns, "first columns");
  if (matrix.nnz() == 0) return;
  ASSERT_EQ(got.values == nullptr, packed.all);
  expect_entries(device, host, packed, a, precision, got);
}

TEST(SlicesDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, given] : sliced_shapes())
    for (const Precision precision :
         {Precision::fp8_e4m3, Precision::fp16, Precision::fp32, Precision::fp64}) {
      CsrMatrix matrix = given;
      if (precision == Precision::fp64)
        matrix.values64.assign(matrix.values.begin(), matrix.values.end());
      else
        for (float& value : matrix.values) value = round_to(precision, value);
      std::vector<std::int32_t> reversed(matrix.rows);
      std::iota(reversed.rbegin(), reversed.rend(), 0);
      for (const JaggedShape& shape : kSliceShapes)
        for (const bool packs : {false, true}) {
          if (packs && bytes_of(storage_type(precision)) > 2) continue;
          SCOPED_TRACE(name + ", " + std::to_string(shape.places) + " places of " +
                       std::to_string(shape.most_steps) + (packs ? ", packed" : ""));
          expect_host_slices(device, matrix, precision, shape, {}, {}, packs);
          if (matrix.rows > 100'000) continue;
          expect_host_slices(device, matrix, precision, shape, named_order(matrix, "random"), {},
                             packs);
          expect_host_slices(device, matrix, precision, shape, named_order(matrix, "degree"),
                             reversed, packs);
          if (const auto nonempty = leave_out_empty_rows(matrix, {}))
            expect_host_slices(device, matrix, precision, shape, nonempty->row_order, reversed,
                               packs);
        }
    }
}

TEST(SlicesDeviceBuild, CountsTheSectorsAndTheLongestRowOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, matrix] : sliced_shapes()) {
    const CsrOnDevice a(matrix, Precision::fp32, device);
    EXPECT_EQ(jagged::longest_row(a.view(), device), longest_row(matrix)) << name;
    for (const char* order : {"natural", "degree"}) {
      const Permutation rows = named_order(matrix, order);
      const Buffer on_device = device.upload(rows);
      for (const std::int64_t of_sector : {1, 2, 16})
        EXPECT_EQ(jagged::gathered_sector_share(a.view(), on_device.as<std::int32_t>(), of_sector,
                                                device),
                  jagged::gathered_sector_share(matrix, rows, of_sector))
            << name << ", " << order << ", " << of_sector;
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
