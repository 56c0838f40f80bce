// Kernels whose A lies on the device alone: what they build, what they multiply, what they copy to
// the host, and other values in place.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../kernels/auto/device_features.hpp"
#include "../../kernels/csr_row_split/segments.hpp"
#include "../../kernels/row_order/degree_order.hpp"
#include "../../kernels/row_order/match_order.hpp"
#include "../../kernels/window/device_survey.hpp"
#include "core/row_lengths.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "format/wcsr.hpp"
#include "gpu/csr_on_device.hpp"
#include "select/row_overlap.hpp"
#include "shapes.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

std::vector<NamedShape> shapes_of(Precision precision) {
  std::vector<NamedShape> shapes = all_shapes();
  for (NamedShape& shape : shapes)
    for (float& value : shape.matrix.values) value = round_to(precision, value);
  return shapes;
}

// A host matrix that nobody may read.
class NoHostMatrix final : public LazyCsr {
 public:
  const CsrMatrix& get() override { throw Error("the host's matrix was read"); }
};

class Resident {
 public:
  static constexpr double kUploadMs = 1e6;  // longer than any test takes

  // `also_on_host`: there too, with the values that it has now.
  Resident(const std::string& spec, const CsrMatrix& a, Precision precision, std::int64_t n,
           Device& device, bool also_on_host = false)
      : a_(a), n_(n), device_(device), on_device_(a, precision, device) {
    const Spec parsed = Spec::parse(spec);
    kernel_ = &Registry<Kernel>::instance().at(parsed.name);
    operand_.a = also_on_host ? HostCsr(&a_) : HostCsr(&none_);
    operand_.precision = precision;
    orders_ = make_row_orders(operand_.a, {"none", {}});
    operand_.orders = orders_.get();
    view_ = on_device_.view();
    view_.upload_ms = kUploadMs;
    operand_.on_device = &view_;
    const Problem problem{operand_, {n, ElementType::f32, Layout::row_major}, parsed.options};
    const Support support = check_support(*kernel_, problem, device.info());
    if (!support.ok) {
      refusal_ = support.reason;
      return;
    }
    const std::uint64_t before = device.bytes_to_host();
    options_ = parsed.options;
    prepared_ = kernel_->prepare(operand_, options_, device, stages_);
    plan_ = prepared_->bind(problem.shape(), stages_);
    bytes_to_host_ = device.bytes_to_host() - before;
  }

  const std::string& refusal() const { return refusal_; }
  std::uint64_t bytes_to_host() const { return bytes_to_host_; }
  double upload_ms() const { return stages_.stages_ms().at("upload"); }
  const Kernel& kernel() const { return *kernel_; }

  // Doubles the values on the device and in `a`.
  void double_values(CsrMatrix& a) {
    for (float& value : a.values) value *= 2;
    const Buffer values = upload_values(device_, a, on_device_.view().value_type);
    std::vector<unsigned char> bytes(values.bytes());
    device_.download(bytes.data(), values.data(), bytes.size());
    device_.upload(on_device_.values(), bytes.data(), bytes.size());
    prepared_->take_values(device_.stream());
  }

  // Binds it to another N.
  void bind(std::int64_t n) {
    n_ = n;
    plan_ = prepared_->bind({n, ElementType::f32, Layout::row_major}, stages_);
  }

  // C = A B against sums in fp64 of `a`.
  void expect_product(const CsrMatrix& a) {
    DenseView b = make_b_view(a.cols, n_, Layout::row_major, on_device_.view().value_type);
    DenseView c = make_dense_view(a.rows, n_, Layout::row_major, ElementType::f32);
    const Buffer b_memory = device_.allocate(b.bytes()), c_memory = device_.allocate(c.bytes());
    b.data = b_memory.data();
    c.data = c_memory.data();
    device_.fill_uniform(b, 1, operand_.precision);
    device_.fill_bytes(c.data, 0xFF, c.bytes());
    plan_->launch(b, c, device_.stream());
    device_.synchronize();
    std::vector<unsigned char> b_bytes(b.bytes()), c_bytes(c.bytes());
    device_.download(b_bytes.data(), b.data, b.bytes());
    device_.download(c_bytes.data(), c.data, c.bytes());
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (std::int64_t j = 0; j < n_; j += 7) {
        double sum = 0, size = 0;
        for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
          const double product =
              a.values[e] * load_element(b.type, b_bytes.data(), a.col_idx[e] * b.ld + j);
          sum += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(load_element(c.type, c_bytes.data(), row * c.ld + j), sum, 1e-4 * size)
            << "row " << row << ", column " << j;
      }
  }

 private:
  CsrMatrix a_;
  std::int64_t n_;
  Device& device_;
  CsrOnDevice on_device_;
  DeviceCsr view_;
  NoHostMatrix none_;
  const Kernel* kernel_;
  SparseOperand operand_;
  Options options_;
  std::unique_ptr<RowOrders> orders_;
  StageTimer stages_;
  std::unique_ptr<Prepared> prepared_;
  std::unique_ptr<Plan> plan_;
  std::uint64_t bytes_to_host_ = 0;
  std::string refusal_;
};

constexpr const char* kSpecs[] = {"csr_merge",
                                  "csr_row_split",
                                  "csr_row_split?split=8",
                                  "jagged_slices",
                                  "jagged_slices?order=search",
                                  "jagged_slices?steps=1&order=degree",
                                  "async_wcsr",
                                  "async_wcsr?order=search",
                                  "async_wcsr?order=match&window=8",
                                  "async_wcsr?order=degree&window=16",
                                  "async_wcsr?order=natural&window=32",
                                  "rsh?order=search",
                                  "rsh?order=degree&window=8",
                                  "rsh?order=match&window=16",
                                  "rsh?order=natural&window=32",
                                  "async_bcsr",
                                  "async_bcsr?group=consecutive",
                                  "bitmap_dense?stored=pairs",
                                  "bitmap_dense?stored=values",
                                  "gap_slices",
                                  "dense_cluster",
                                  "cublas_dense"};

constexpr std::uint64_t kMostToHost = 64 << 10;

TEST(ResidentA, IsMultipliedWithoutAMatrixOnTheHostAndTakesOtherValuesInPlace) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const Precision precision : {Precision::fp16, Precision::tf32})
    for (const NamedShape& shape : shapes_of(precision))
      for (const char* spec : kSpecs)
        for (const std::int64_t n : {1, 24, 128}) {
          const std::string text = spec;
          if (n == 1 && text.starts_with("csr_row_split")) continue;
          const bool matches = text.find("match") != text.npos || text.find("search") != text.npos;
          const CsrMatrix& given = shape.matrix;
          if (matches && !can_match(given.rows, given.cols, given.nnz())) continue;  // on the host
          SCOPED_TRACE(shape.name + " " + spec + " N = " + std::to_string(n));
          CsrMatrix a = shape.matrix;
          Resident resident(spec, a, precision, n, device);
          if (!resident.refusal().empty()) continue;
          EXPECT_LE(resident.bytes_to_host(), kMostToHost);
          EXPECT_GE(resident.upload_ms(), Resident::kUploadMs) << "it had the copy for nothing";
          resident.expect_product(a);
          if (!resident.kernel().info().takes_values) continue;
          for (int i = 0; i < 2; ++i) resident.double_values(a);
          resident.expect_product(a);
        }
}

// So many windows that their tiles are not counted on the host; some are long.
CsrMatrix of_many_windows() {
  CsrMatrix a{280'003, 9000, {0}, {}, {}};
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t length = row % 40'000 == 7 ? 4000 : row % 4;
    for (std::int64_t i = 0; i < length; ++i) {
      a.col_idx.push_back(static_cast<std::int32_t>(row % 1000 + 2 * i));
      a.values.push_back(round_to(Precision::fp16, uniform_at(7, row, i)));
    }
    a.row_ptr.push_back(std::ssize(a.col_idx));
  }
  return a;
}

TEST(ResidentA, OfManyWindowsSendsLittleToTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix a = of_many_windows();
  for (const char* spec : {"async_wcsr?order=natural&window=8", "rsh?order=natural&window=8",
                           "auto", "auto?calls=30&tune=1"})
    for (const std::int64_t n : {8, 64, 128}) {
      SCOPED_TRACE(std::string(spec) + " N = " + std::to_string(n));
      Resident resident(spec, a, Precision::fp16, n, device);
      ASSERT_EQ(resident.refusal(), "");
      EXPECT_LE(resident.bytes_to_host(), kMostToHost);
      resident.expect_product(a);
    }
}

TEST(ResidentA, TakesOtherValuesAlsoInPlansThatAreMadeLater) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const Precision precision : {Precision::fp16, Precision::tf32})
    for (const NamedShape& shape : shapes_of(precision))
      for (const char* spec : {"jagged_slices", "jagged_slices?order=search",
                               "async_wcsr?build=host", "async_wcsr?order=degree"}) {
        SCOPED_TRACE(shape.name + " " + spec);
        CsrMatrix a = shape.matrix;
        Resident resident(spec, a, precision, 16, device, true);
        if (!resident.refusal().empty()) continue;
        for (const std::int64_t n : {16, 8, 3}) {
          resident.bind(n);
          resident.expect_product(a);
          resident.double_values(a);
          resident.expect_product(a);
        }
      }
}

TEST(ResidentA, IsCutIntoTheSegmentsOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp32))
    for (const std::int64_t split : {1, 8, 32, 100'000}) {
      SCOPED_TRACE(shape.name + " split " + std::to_string(split));
      const CsrOnDevice a(shape.matrix, Precision::fp32, device);
      const row_split::Segments host = row_split::cut_rows(shape.matrix, {}, split);
      const row_split::DeviceSegments got = row_split::cut_rows(a.view(), nullptr, split, device);
      EXPECT_EQ(got.fours_end, host.fours_end);
      EXPECT_EQ(got.twos_end, host.twos_end);
      EXPECT_EQ(downloaded<row_split::Segment>(device, got.segments.data(), got.count),
                host.segments);
      const auto slots = downloaded<row_split::Slot>(device, got.slots.data(), got.slot_count);
      ASSERT_EQ(slots.size(), host.slots.size());
      for (std::size_t i = 0; i < slots.size(); ++i)
        EXPECT_TRUE(host.slots[i].parts == 0 || slots[i] == host.slots[i]) << i;
      EXPECT_EQ(got.cut_rows, host.cut_rows);
    }
}

TEST(ResidentA, HasTheRowsOfTheHostByLengthAndWithoutEmptyOnes) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp32)) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& matrix = shape.matrix;
    const CsrOnDevice a(matrix, Precision::fp32, device);
    const Permutation degree = Registry<Reordering>::instance().at("degree").compute(matrix, {});
    const Buffer order = degree_order(a.view(), device);
    EXPECT_EQ(downloaded<std::int32_t>(device, order.data(), matrix.rows), degree);
    EXPECT_EQ(share_of_empty_rows(a.view(), device), share_of_empty_rows(matrix));
    const auto nonempty = leave_out_empty_rows(matrix, degree);
    if (!nonempty) continue;
    const DeviceNonemptyRows got = split_empty_rows(a.view(), order, device);
    EXPECT_EQ(downloaded<std::int32_t>(device, got.rows.data(), got.count), nonempty->row_order);
    EXPECT_EQ(downloaded<std::int32_t>(device, got.empty.data(), got.empty_count), nonempty->empty);
  }
}

TEST(ResidentA, HasAboutTheFeaturesThatTheHostFinds) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp16)) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& matrix = shape.matrix;
    const CsrOnDevice resident(matrix, Precision::fp16, device);
    const MatrixFeatures host = features_of(matrix);
    const MatrixFeatures got = features_on_device(resident.view(), device);
    EXPECT_EQ(got.nnz, host.nnz);
    if (matrix.nnz() == 0) continue;
    EXPECT_DOUBLE_EQ(got.cv_row, host.cv_row);
    EXPECT_EQ(got.max_row, static_cast<double>(longest_row(matrix)));
    EXPECT_DOUBLE_EQ(got.empty_rows, host.empty_rows);
    EXPECT_NEAR(got.gathered_32, host.gathered_32, 0.15);
    EXPECT_EQ(got.most_of_four <= kMostOfTwoFour, host.most_of_four <= kMostOfTwoFour);
    EXPECT_EQ(got.block_fill > 0, host.block_fill > 0);
    EXPECT_EQ(got.used_cols, host.used_cols);
    EXPECT_TRUE(got.row_overlap >= 0 && got.row_overlap <= 1) << got.row_overlap;
    EXPECT_EQ(features_on_device(resident.view(), device).row_overlap, got.row_overlap)
        << "it depends on threads";
  }
}

TEST(ResidentA, HasAsManyColumnsInUseAsOnTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr int kRows = 3000, kUsed = 500, kApart = 1024;
  CsrMatrix matrix;
  matrix.rows = kRows;
  matrix.cols = kUsed * kApart;
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kUsed; ++i)
      if (hash_position(1, row, i) % (row % 7 == 0 ? 3 : 16) == 0)
        matrix.col_idx.push_back(static_cast<std::int32_t>(i * kApart));
    matrix.row_ptr.push_back(static_cast<std::int64_t>(matrix.col_idx.size()));
  }
  matrix.values.resize(matrix.col_idx.size(), 1);
  const CsrOnDevice resident(matrix, Precision::fp16, device);
  const MatrixFeatures host = features_of(matrix),
                       got = features_on_device(resident.view(), device);
  EXPECT_GE(host.used_cols, 0.9 * kUsed);
  EXPECT_LE(host.used_cols, 4 * kUsed) << "of 1,024 times as many";
  EXPECT_EQ(got.used_cols, host.used_cols);
}

TEST(ResidentA, IsSeenAtAGlanceAboutAsInALook) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp16)) {
    SCOPED_TRACE(shape.name);
    const CsrOnDevice resident(shape.matrix, Precision::fp16, device);
    const MatrixFeatures look = features_on_device(resident.view(), device);
    const MatrixFeatures glance = features_at_a_glance(resident.view(), device);
    EXPECT_EQ(glance.nnz, look.nnz);
    EXPECT_EQ(glance.row_overlap, kUnknownRowOverlap);
    if (shape.matrix.nnz() == 0) continue;
    EXPECT_EQ(glance.cv_row, look.cv_row);
    EXPECT_EQ(glance.max_row, look.max_row);
    EXPECT_EQ(glance.empty_rows, look.empty_rows);
    EXPECT_NEAR(glance.gathered_8, look.gathered_8, 0.15);
    EXPECT_NEAR(glance.gathered_32, look.gathered_32, 0.15);
    EXPECT_EQ(glance.most_of_four <= kMostOfTwoFour, look.most_of_four <= kMostOfTwoFour);
  }
}

// Of a row that has every column and rows of a few, windows are counted in a part of the columns.
TEST(ResidentA, WithAVeryLongRowHasAboutTheFeaturesOfAllColumns) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kRows = 5000, kFew = 3, kLong = 700;
  CsrMatrix matrix;
  matrix.rows = matrix.cols = kRows;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t first = row == kLong ? 0 : row % (kRows - kFew);
    const std::int64_t length = row == kLong ? kRows : kFew;
    for (std::int64_t i = 0; i < length; ++i)
      matrix.col_idx.push_back(static_cast<std::int32_t>(first + i));
    matrix.values.resize(matrix.col_idx.size(), 1);
    matrix.row_ptr.push_back(static_cast<std::int64_t>(matrix.col_idx.size()));
  }
  const CsrOnDevice resident(matrix, Precision::fp16, device);
  const WcsrEstimate all = estimate_wcsr(matrix, {});
  for (auto* see : {features_on_device, features_at_a_glance}) {
    const MatrixFeatures got = see(resident.view(), device);
    EXPECT_EQ(got.max_row, kRows);
    EXPECT_NEAR(got.gathered_8, all.gathered_share[0], 0.15);
    EXPECT_NEAR(got.gathered_32, all.gathered_share[2], 0.15);
  }
}

TEST(ResidentA, IsSurveyedAboutAsOnTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp32)) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& matrix = shape.matrix;
    const CsrOnDevice a(matrix, Precision::fp32, device);
    const HubColumns hubs = find_hub_columns(matrix), got = find_hub_columns(a.view(), device);
    EXPECT_EQ(got.count, hubs.count);
    EXPECT_NEAR(got.share, hubs.share, 1e-9);
    ResidentOrders orders(nullptr, device);
    const DeviceCsr view = a.view();
    DeviceSurvey survey({.a = &matrix, .on_device = &view}, orders, device);
    EXPECT_DOUBLE_EQ(survey.length_variation(), row_length_variation(matrix));
    if (matrix.nnz() == 0) continue;
    EXPECT_EQ(survey.expect_by_length().gathered_share, expect_by_length(matrix).gathered_share);
    StageTimer stages;
    for (const char* name : {"natural", "degree"}) {
      const WcsrEstimate on_device = survey.order(name, stages).estimate;
      const Permutation rows = std::string(name) == "natural"
                                   ? Permutation{}
                                   : Registry<Reordering>::instance().at(name).compute(matrix, {});
      const WcsrEstimate on_host = estimate_wcsr(matrix, rows);
      for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
        EXPECT_NEAR(on_device.gathered_share[h], on_host.gathered_share[h], 0.15) << name << h;
        EXPECT_NEAR(on_device.stored_share[h], on_host.stored_share[h],
                    0.15 * std::max(1.0, on_host.stored_share[h]))
            << name << h;
      }
    }
  }
}

// Of windows of this many rows in natural order, over nonzeros.
double distinct_columns_of_windows(const CsrMatrix& matrix, std::int64_t height) {
  std::int64_t distinct = 0;
  for (std::int64_t first = 0; first < matrix.rows; first += height) {
    const std::int64_t last = std::min(first + height, matrix.rows);
    std::vector<std::int32_t> columns(matrix.col_idx.begin() + matrix.row_ptr[first],
                                      matrix.col_idx.begin() + matrix.row_ptr[last]);
    std::ranges::sort(columns);
    columns.erase(std::ranges::unique(columns).begin(), columns.end());
    distinct += std::ssize(columns);
  }
  return static_cast<double>(distinct) / static_cast<double>(matrix.nnz());
}

// CTAs share the windows of each group. A sample of the host has 1.08 times what these gather.
TEST(ResidentA, IsSurveyedInFullWhereFewRowsAreVeryLong) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  CsrMatrix matrix{64, 60'000, {0}, {}, {}};
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    for (std::int32_t column = 0; column < matrix.cols; ++column)
      if (hash_position(5, row, column) % 3 == 0) matrix.col_idx.push_back(column);
    matrix.row_ptr.push_back(static_cast<std::int64_t>(matrix.col_idx.size()));
  }
  matrix.values.assign(matrix.col_idx.size(), 1.0F);
  // Columns are random, so windows in all orders have as many, but for 0.0001 of the nonzeros.
  std::vector<double> shares;
  for (const int height : kWcsrHeights)
    shares.push_back(distinct_columns_of_windows(matrix, height));
  const CsrOnDevice a(matrix, Precision::fp32, device);
  const DeviceCsr view = a.view();
  ResidentOrders orders(nullptr, device);
  DeviceSurvey survey({.a = &matrix, .on_device = &view}, orders, device);
  for (const char* name : {"natural", "match", "degree"}) {
    StageTimer stages;
    const WcsrEstimate estimate = survey.order(name, stages).estimate;
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      EXPECT_NEAR(estimate.gathered_share[h], shares[h], 5e-4) << name << h;
      EXPECT_NEAR(estimate.stored_share[h], shares[h], 5e-4) << name << h;
    }
  }
}

// So a kernel inside `auto` chooses the windows that it chooses alone.
TEST(ResidentA, CountsWindowsThoughFeaturesAreKnown) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  MatrixFeatures features;
  set_windows({{0.5, 0.4, 0.3}, {0.6, 0.5, 0.4}}, features);
  // 32 neighbouring rows share no column, and a window of 8 fills half of its tile.
  constexpr WcsrEstimate kExpected = {{1, 1, 1}, {2, 1, 1}};
  for (const std::int64_t rows : {1'024, 20'480}) {
    SCOPED_TRACE(rows);
    CsrMatrix matrix{rows, 64, {0}, {}, {}};
    for (std::int64_t row = 0; row < rows; ++row) {
      matrix.col_idx.push_back(static_cast<std::int32_t>(row % 64));
      matrix.values.push_back(1);
      matrix.row_ptr.push_back(row + 1);
    }
    const CsrOnDevice a(matrix, Precision::fp32, device);
    const DeviceCsr view = a.view();
    const SparseOperand operand{.a = &matrix, .features = &features, .on_device = &view};
    ResidentOrders orders(nullptr, device);
    StageTimer stages;
    const WcsrEstimate got =
        DeviceSurvey(operand, orders, device).order("natural", stages).estimate;
    EXPECT_EQ(got.gathered_share, kExpected.gathered_share);
    EXPECT_EQ(got.stored_share, kExpected.stored_share);
  }
}

TEST(ResidentA, TellsWhatWindowsGatherInAnOrderThatIsThere) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : shapes_of(Precision::fp32)) {
    SCOPED_TRACE(shape.name);
    const CsrOnDevice a(shape.matrix, Precision::fp32, device);
    const DeviceCsr view = a.view();
    const auto host = make_row_orders(shape.matrix, Spec::parse("natural"));
    SharedOrders shared(host.get());
    const SparseOperand operand{.a = &shape.matrix, .orders = &shared, .on_device = &view};
    StageTimer stages;
    ResidentOrders orders(&shared, device);
    orders.get(view, "degree", stages);
    EXPECT_FALSE(windows_in_known_order(operand, device, stages));
    orders.get(view, "match", stages);
    const auto got = windows_in_known_order(operand, device, stages);
    ASSERT_TRUE(got);
    const WcsrEstimate surveyed =
        DeviceSurvey(operand, orders, device).order("match", stages).estimate;
    EXPECT_EQ(got->gathered_share, surveyed.gathered_share);
    EXPECT_EQ(got->stored_share, surveyed.stored_share);
  }
}

}  // namespace
}  // namespace spmmbench::test
