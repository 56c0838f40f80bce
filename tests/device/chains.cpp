#include "chains.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::test {
namespace {

class ChainOfPlan final : public Chain {
 public:
  ChainOfPlan(const Case& of, const CsrMatrix& a, std::int64_t n, Device& device)
      : of_(of),
        device_(device),
        orders_(make_row_orders(a, {"none", {}})),
        operand_{&a, {}, of.precision, orders_.get()},
        shape_{n, of.c_type, of.layout} {}

  bool is_supported() const {
    return check_support(*of_.kernel, {operand_, shape_, of_.options}, device_.info()).ok;
  }

  void expect_shifted(int launches,
                      const std::function<void(const DenseView&, int)>& between) override {
    Dense from = make_b(kStreamB), to = make_nan();
    const std::vector<char> before = download(from.view);
    prepare(from.view);
    for (int launch = 0; launch < launches; ++launch) {
      plan_->launch(from.view, to.view, device_.stream());
      if (between) between(to.view, launch);
      std::swap(from, to);
    }
    device_.synchronize();
    expect_shifted(before, download(from.view), from.view, launches);
  }

  void expect_last(int launches) override {
    const Dense both[] = {make_b(kStreamB), make_b(kStreamB + 1)};
    const Dense to = make_nan();
    prepare(both[0].view);
    for (int launch = 0; launch < launches; ++launch)
      plan_->launch(both[launch % 2].view, to.view, device_.stream());
    device_.synchronize();
    expect_shifted(download(both[(launches - 1) % 2].view), download(to.view), to.view, 1);
  }

 private:
  struct Dense {
    Buffer memory;
    DenseView view;
  };

  Dense make_nan() {
    Dense out{{}, make_b_view(operand_.k(), shape_.n, shape_.layout, shape_.c_type)};
    out.memory = device_.allocate(out.view.bytes());
    out.view.data = out.memory.data();
    device_.fill_bytes(out.view.data, 0xFF, out.view.bytes());
    return out;
  }

  Dense make_b(std::uint64_t stream) {
    Dense out = make_nan();
    device_.fill_uniform(out.view, stream_seed(1, stream), of_.precision);
    return out;
  }

  void prepare(const DenseView& b) {
    StageTimer stages;
    prepared_ = of_.kernel->prepare(operand_, of_.options, device_, stages);
    plan_ = prepared_->bind(shape_, stages);
    plan_->inspect_b(b, stages);
    device_.synchronize();
  }

  std::vector<char> download(const DenseView& view) {
    std::vector<char> host(view.bytes());
    device_.download(host.data(), view.data, host.size());
    return host;
  }

  static void expect_shifted(const std::vector<char>& before, const std::vector<char>& after,
                             const DenseView& view, int rows) {
    const std::size_t bytes = bytes_of(view.type);
    const auto at = [&](const std::vector<char>& host, std::int64_t row, std::int64_t column) {
      const std::int64_t place =
          view.layout == Layout::row_major ? row * view.ld + column : column * view.ld + row;
      return host.data() + static_cast<std::size_t>(place) * bytes;
    };
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < view.rows; ++row)
      for (std::int64_t column = 0; column < view.cols; ++column)
        wrong += std::memcmp(at(after, row, column), at(before, (row + rows) % view.rows, column),
                             bytes) != 0;
    EXPECT_EQ(wrong, 0) << "of " << view.rows * view.cols << " elements";
  }

  Case of_;
  Device& device_;
  std::unique_ptr<RowOrders> orders_;
  SparseOperand operand_;
  Shape shape_;
  std::unique_ptr<Prepared> prepared_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

CsrMatrix shift_by_one(std::int64_t rows, std::int64_t entries) {
  CsrMatrix out;
  out.rows = out.cols = rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t taken = (row + 1) % rows;
    std::vector<std::int32_t> columns;
    for (std::int64_t i = 0; i < entries; ++i)
      columns.push_back(static_cast<std::int32_t>((taken + i * rows / entries) % rows));
    std::sort(columns.begin(), columns.end());
    for (const std::int32_t column : columns) {
      out.col_idx.push_back(column);
      out.values.push_back(column == taken ? 1.0F : 0.0F);
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  out.values64.assign(out.values.begin(), out.values.end());
  return out;
}

std::unique_ptr<Chain> Chain::make(const Case& of, const CsrMatrix& a, std::int64_t n,
                                   Device& device) {
  auto out = std::make_unique<ChainOfPlan>(of, a, n, device);
  if (!out->is_supported()) return nullptr;
  return out;
}

}  // namespace spmmbench::test
