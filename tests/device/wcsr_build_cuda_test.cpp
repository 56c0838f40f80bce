// The device build of WCSR against the host build, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "../../kernels/window/device_build.hpp"
#include "../../kernels/window/device_survey.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

// Columns so far apart that a window's bits take several turns in shared memory; windows of few
// entries, and one of many.
CsrMatrix wide_matrix() {
  CsrMatrix m{90, 3'000'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t length = row == 37 ? 5000 : row * 7 % 30;
    for (std::int64_t i = 0; i < length; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(m.cols / (length + 1) * i + row % 3));
      m.values.push_back(uniform_at(1, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// So many windows that their blocks are small; some of them hold more entries than a block has
// threads.
CsrMatrix tall_matrix() {
  CsrMatrix m{140'001, 300'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t length = row % 50'000 == 7 ? 700 : row % 97 == 0 ? 3 : 0;
    for (std::int64_t i = 0; i < length; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(row % 1000 + 400 * i));
      m.values.push_back(uniform_at(2, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// So many windows of few entries that a warp has each: of at most 64, 128 and 256, and of more than
// a warp sorts.
CsrMatrix short_windows(std::int64_t cols) {
  CsrMatrix m{20'000, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t length = row / 8 % 5 * 8 + row % 3;
    for (std::int64_t i = 0; i < length; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(cols / (length + 1) * i + row % 4));
      m.values.push_back(uniform_at(5, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// Few windows of so many entries that their blocks are large, in several slabs.
CsrMatrix long_matrix() {
  CsrMatrix m{20, 400'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    for (std::int64_t i = 0; i < 3000; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(row % 3 + 130 * i));
      m.values.push_back(uniform_at(3, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// Short rows, and two long ones in a window, which has most of the nonzeros.
CsrMatrix hub_matrix(std::int64_t rows) {
  CsrMatrix m{rows, 300'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t length = row == 37 || row == 38 ? 60'000 : row % 5;
    for (std::int64_t i = 0; i < length; ++i) {
      m.col_idx.push_back(
          static_cast<std::int32_t>(length > 5 ? 4 * i + i % (row - 35) : row % 1000 + 70'000 * i));
      m.values.push_back(uniform_at(4, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// Rows of 8, and some of 6,000 in two groups, as the linking constraints of a linear program.
CsrMatrix linked_matrix() {
  CsrMatrix m{12'000, 20'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const bool is_long = row < 40;
    for (std::int64_t i = 0; i < (is_long ? 6000 : 8); ++i) {
      const auto drawn = static_cast<std::int64_t>(hash_position(7, row, i) % 3);
      m.col_idx.push_back(static_cast<std::int32_t>(3 * i + drawn + (is_long ? 0 : row)));
      m.values.push_back(uniform_at(7, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// So few windows, and so long, that several large blocks have each.
CsrMatrix wide_and_full_matrix() {
  constexpr std::int64_t kOfRow = 20'000, kStep = 15;
  CsrMatrix m{60, kOfRow * kStep, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    for (std::int64_t i = 0; i < kOfRow; ++i) {
      const auto drawn = static_cast<std::int64_t>(hash_position(8, row, i) % kStep);
      m.col_idx.push_back(static_cast<std::int32_t>(kStep * i + drawn));
      m.values.push_back(uniform_at(8, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

Permutation order_of(const CsrMatrix& matrix, const std::string& name) {
  StageTimer stages;
  return make_row_orders(matrix, {"none", {}})->get(name, stages);
}

void expect_equal(Device& device, const DeviceWcsr& built, const Wcsr& host) {
  if (host.windows() <= DeviceWcsr::kMostOnHost) EXPECT_EQ(built.window_ptr_host, host.window_ptr);
  else EXPECT_TRUE(built.window_ptr_host.empty());
  EXPECT_EQ(built.sizes.tiles, host.tiles());
  EXPECT_EQ(built.sizes.longest, sizes_of(host.window_ptr).longest);
  EXPECT_EQ(downloaded<std::int32_t>(device, built.window_ptr, host.window_ptr.size()),
            host.window_ptr);
  EXPECT_EQ(downloaded<std::int32_t>(device, built.col_idx, host.col_idx.size()), host.col_idx);
  EXPECT_EQ(static_cast<double>(built.gathered), host.stats().extra.at("gathered_rows_of_b"));
  if (host.shape.value_type == ElementType::f32) {
    std::vector<std::uint32_t> bits(host.values32.size());
    std::transform(host.values32.begin(), host.values32.end(), bits.begin(),
                   [](float value) { return std::bit_cast<std::uint32_t>(value); });
    EXPECT_EQ(downloaded<std::uint32_t>(device, built.values, bits.size()), bits);
  } else {
    EXPECT_EQ(downloaded<std::uint16_t>(device, built.values, host.values16.size()), host.values16);
  }
}

void expect_host_bytes(Device& device, const CsrMatrix& matrix, const WcsrShape& shape,
                       const Permutation& rows) {
  StageTimer stages;
  SparseOperand operand;
  operand.a = &matrix;
  operand.precision = shape.value_type == ElementType::f32   ? Precision::tf32
                      : shape.value_type == ElementType::f16 ? Precision::fp16
                                                             : Precision::bf16;
  const DeviceWcsr built = build_wcsr(operand, shape, rows, device, stages);
  expect_equal(device, built, Wcsr::build(matrix, shape, rows));
}

// Of each window.
void expect_columns(const std::vector<std::int32_t>& distinct, const Wcsr& host) {
  const std::int64_t tile = host.shape.tile_columns;
  ASSERT_EQ(static_cast<std::int64_t>(distinct.size()), host.windows());
  for (std::size_t i = 0; i < distinct.size(); ++i) {
    const auto first = host.col_idx.begin() + host.window_ptr[i] * tile;
    const auto end = host.col_idx.begin() + host.window_ptr[i + 1] * tile;
    EXPECT_EQ(distinct[i], end - first - std::count(first, end, Wcsr::kPadding)) << i;
  }
}

// A matrix in fp16 on the device, and a survey of it.
struct Surveyed {
  Surveyed(const CsrMatrix& matrix, Device& device)
      : a(matrix, Precision::fp16, device),
        view(a.view()),
        orders(nullptr, device),
        survey({.a = &matrix, .on_device = &view}, orders, device) {}

  CsrOnDevice a;
  DeviceCsr view;
  ResidentOrders orders;
  DeviceSurvey survey;
};

TEST(WcsrDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"wide", wide_matrix()});
  for (NamedShape& shape : shapes)
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
      CsrMatrix& matrix = shape.matrix;
      for (float& value : matrix.values) value = round_to(precision, value);
      if (matrix.nnz() > 0) matrix.values[matrix.nnz() / 2] = 0;
      for (const int window_rows : {8, 16, 32})
        for (const char* order : {"natural", "degree", "random"}) {
          SCOPED_TRACE(shape.name + " window " + std::to_string(window_rows) + " " + order);
          const WcsrShape wcsr{window_rows, 16, storage_type(precision)};
          const Permutation rows = order_of(matrix, order);
          expect_host_bytes(device, matrix, wcsr, rows);
          if (const auto nonempty = leave_out_empty_rows(matrix, rows))
            expect_host_bytes(device, matrix, wcsr, nonempty->row_order);
        }
    }
}

TEST(WcsrDeviceBuild, GivesTheBytesOfTheHostBuildWithSmallAndLargeBlocks) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (CsrMatrix matrix : {tall_matrix(), long_matrix(), hub_matrix(3000), hub_matrix(20'000),
                           linked_matrix(), wide_and_full_matrix()}) {
    for (float& value : matrix.values) value = round_to(Precision::fp16, value);
    SCOPED_TRACE(matrix.rows);
    expect_host_bytes(device, matrix, {8, 16, ElementType::f16}, {});
    expect_host_bytes(device, matrix, {16, 16, ElementType::f16}, order_of(matrix, "random"));
  }
}

TEST(WcsrDeviceBuild, GivesTheBytesOfTheHostBuildWhereAWarpHasEachWindow) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const std::int64_t cols : {300'000, 17'000'000}) {  // keys of 32 and of 64 bits
    SCOPED_TRACE(cols);
    CsrMatrix matrix = short_windows(cols);
    for (float& value : matrix.values) value = round_to(Precision::fp16, value);
    expect_host_bytes(device, matrix, {8, 16, ElementType::f16}, {});
    expect_host_bytes(device, matrix, {8, 16, ElementType::f16}, order_of(matrix, "random"));
    expect_host_bytes(device, matrix, {8, 16, ElementType::f32}, {});
  }
}

TEST(WcsrDeviceBuild, GivesTheBytesOfTheHostBuildFromTheCountsOfASurvey) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kRowsOfAll = 512 * 32;  // of more not all windows are counted
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"hub", hub_matrix(3000)});
  shapes.push_back({"linked", linked_matrix()});
  for (NamedShape& shape : shapes) {
    CsrMatrix& matrix = shape.matrix;
    if (matrix.nnz() == 0) continue;
    for (float& value : matrix.values) value = round_to(Precision::fp16, value);
    Surveyed surveyed(matrix, device);
    StageTimer stages;
    for (const char* order : {"natural", "degree"}) {
      EXPECT_TRUE(surveyed.survey.distinct_columns(order, 0).empty()) << "nothing was asked";
      (void)surveyed.survey.order(order, stages);
      const Buffer& rows = surveyed.orders.get(surveyed.view, order, stages);
      for (int height = 0; height < 3; ++height) {
        SCOPED_TRACE(shape.name + " " + order + std::to_string(height));
        const std::vector<std::int32_t> distinct = surveyed.survey.distinct_columns(order, height);
        if (distinct.empty()) {
          EXPECT_GT(matrix.rows, kRowsOfAll) << "all windows are counted";
          continue;
        }
        const WcsrShape wcsr{kWcsrHeights[height], 16, ElementType::f16};
        const DeviceWcsr built = build_wcsr(surveyed.view, wcsr, rows.as<std::int32_t>(), distinct,
                                            matrix.rows, device, stages);
        device.synchronize();
        const Wcsr host = Wcsr::build(matrix, wcsr, order_of(matrix, order));
        expect_equal(device, built, host);
        expect_columns(distinct, host);
      }
    }
  }
}

// Rows of 16 nonzeros, more than memory is taken for before their windows are counted.
CsrMatrix large_matrix() {
  constexpr std::int64_t kOfRow = 16;
  CsrMatrix m{200'000, 200'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    for (std::int64_t i = 0; i < kOfRow; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(m.cols / kOfRow * i + row % 1000));
      m.values.push_back(uniform_at(5, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// A few long rows, then short ones that share columns. All windows are counted at once, by warps;
// tall ones are chosen, and take more memory than is taken before.
CsrMatrix gathered_matrix() {
  constexpr std::int64_t kStep = 12;
  CsrMatrix m{14'000, 3000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const bool is_long = row < 8;
    for (std::int64_t i = 0; i < (is_long ? 600 : 20); ++i) {
      const auto drawn = static_cast<std::int64_t>(hash_position(6, row, i) % kStep);
      m.col_idx.push_back(
          static_cast<std::int32_t>(is_long ? 5 * i : row / 32 * 97 % 2700 + kStep * i + drawn));
      m.values.push_back(uniform_at(6, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// As WindowChooser would: an index into kWcsrHeights. None where empty rows are left out, or where
// rows are sorted by length.
std::optional<int> chosen_height(DeviceSurvey& survey, const window::ChoiceRule& rule) {
  StageTimer stages;
  const auto best = [&](const WcsrEstimate& estimate) {
    return window::best_height(estimate, rule.rows, rule.n, rule.value_bytes, rule.format,
                               rule.sms);
  };
  const WcsrEstimate natural = survey.order("natural", stages).estimate;
  const window::Height height = best(natural);
  const bool leaves_out = height.index == 0 && survey.empty_share() >= kLeastEmptyShare;
  const bool sorts = survey.length_variation() > window::kVariedLengths &&
                     window::worth_order(natural, rule.rows, rule.cols, rule.nnz, rule.n,
                                         rule.value_bytes, rule.format) &&
                     best(survey.expect_by_length()).cost <= window::kSlackByLength * height.cost;
  return leaves_out || sorts ? std::nullopt : std::optional(height.index);
}

TEST(WcsrDeviceBuild, GoesOnFromASurveyWithTheHeightThatTheHostChooses) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"hub", hub_matrix(3000)});
  shapes.push_back({"hub of many rows", hub_matrix(20'000)});
  shapes.push_back({"tall", tall_matrix()});
  shapes.push_back({"long", long_matrix()});
  shapes.push_back({"wide", wide_matrix()});
  shapes.push_back({"large", large_matrix()});
  shapes.push_back({"gathered", gathered_matrix()});
  shapes.push_back({"linked", linked_matrix()});
  shapes.push_back({"wide and full", wide_and_full_matrix()});
  leave_out_large(shapes);
  std::array<int, 3> made{};
  int declined = 0, too_large = 0;
  for (NamedShape& shape : shapes)
    for (const auto& [n, sms] : {std::pair(8, 132.0), std::pair(128, 132.0), std::pair(512, 4.0)}) {
      SCOPED_TRACE(shape.name + " " + std::to_string(n));
      CsrMatrix& matrix = shape.matrix;
      if (matrix.nnz() == 0) continue;
      for (float& value : matrix.values) value = round_to(Precision::fp16, value);
      Surveyed surveyed(matrix, device);
      const window::ChoiceRule rule{.rows = static_cast<double>(matrix.rows),
                                    .cols = static_cast<double>(matrix.cols),
                                    .nnz = static_cast<double>(matrix.nnz()),
                                    .n = n,
                                    .value_bytes = 2,
                                    .sms = sms,
                                    .format = window::dense_box_cost(Precision::fp16),
                                    .placed_soon = 0};
      StartedWcsr started(surveyed.view, ElementType::f16, rule, device);
      surveyed.survey.set_follower(&started);
      const std::optional<int> height = chosen_height(surveyed.survey, rule);
      StageTimer stages;
      const auto built = started.finish(kWcsrHeights[height.value_or(0)], stages);
      EXPECT_EQ(built.has_value(), height.has_value());
      if (!built) {
        ++declined;
        continue;
      }
      device.synchronize();
      ++made[*height];
      const WcsrShape wcsr{kWcsrHeights[*height], 16, ElementType::f16};
      const Wcsr host = Wcsr::build(matrix, wcsr);
      expect_equal(device, *built, host);
      // Memory is taken for as many tiles of 8 rows as there may be.
      const std::int64_t room = matrix.nnz() / 16 + (matrix.rows + 7) / 8;
      too_large += host.tiles() * wcsr.window_rows > room * 8 ? 1 : 0;
    }
  EXPECT_GT(declined, 0);
  EXPECT_GT(too_large, 0);
  for (const int of_height : made) EXPECT_GT(of_height, 0);
}

// A started build that nobody asks for leaves nothing behind.
TEST(WcsrDeviceBuild, CanBeStartedForNothing) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  CsrMatrix matrix = hub_matrix(20'000);
  for (float& value : matrix.values) value = round_to(Precision::fp16, value);
  const CsrOnDevice a(matrix, Precision::fp16, device);
  const DeviceCsr view = a.view();
  ResidentOrders orders(nullptr, device);
  StageTimer stages;
  for (int i = 0; i < 3; ++i) {
    DeviceSurvey survey({.a = &matrix, .on_device = &view}, orders, device);
    StartedWcsr started(view, ElementType::f16,
                        {.rows = 2e4,
                         .cols = static_cast<double>(matrix.cols),
                         .nnz = static_cast<double>(matrix.nnz()),
                         .n = 128,
                         .value_bytes = 2,
                         .sms = 132,
                         .format = window::dense_box_cost(Precision::fp16)},
                        device);
    survey.set_follower(&started);
    (void)survey.order("natural", stages);
    EXPECT_FALSE(started.finish(7, stages).has_value()) << "no such height";
  }
  expect_host_bytes(device, matrix, {8, 16, ElementType::f16}, {});
}

// Samples in one group of rows share its columns, and the sum is that of the group.
TEST(WcsrDeviceBuild, SurveysAGroupThatHasMostOfTheNonzeros) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // Of evenly spaced groups the first, which has the longest rows, counts for more than it has:
  // 0.1005 was measured in order by length.
  constexpr double kOfSampling = 0.15;
  const CsrMatrix matrix = hub_matrix(20'000);
  Surveyed surveyed(matrix, device);
  StageTimer stages;
  for (const char* order : {"natural", "degree"}) {
    const WcsrEstimate got = surveyed.survey.order(order, stages).estimate;
    EXPECT_TRUE(surveyed.survey.distinct_columns(order, 0).empty()) << "not all were counted";
    const WcsrEstimate expected = estimate_wcsr(matrix, order_of(matrix, order));
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      EXPECT_NEAR(got.gathered_share[h], expected.gathered_share[h], kOfSampling) << order << h;
      EXPECT_NEAR(got.stored_share[h], expected.stored_share[h], kOfSampling) << order << h;
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
