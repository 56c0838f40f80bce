#include "multi/part_product.hpp"

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

CsrMatrix rows_of(const CsrMatrix& a, std::int64_t begin, std::int64_t end, const Range& columns) {
  const std::int64_t first = a.row_ptr[begin], last = a.row_ptr[end];
  CsrMatrix out;
  out.rows = end - begin;
  out.cols = columns.size();
  out.row_ptr.assign(a.row_ptr.begin() + begin, a.row_ptr.begin() + end + 1);
  for (auto& at : out.row_ptr) at -= first;
  out.col_idx.assign(a.col_idx.begin() + first, a.col_idx.begin() + last);
  for (auto& column : out.col_idx) column -= static_cast<std::int32_t>(columns.begin);
  out.values.assign(a.values.begin() + first, a.values.begin() + last);
  if (!a.values64.empty())
    out.values64.assign(a.values64.begin() + first, a.values64.begin() + last);
  return out;
}

}  // namespace

PartProduct::PartProduct(const CsrMatrix& a, std::int64_t inner, const Range& own,
                         Precision precision, const KernelChoice& choice, const Shape& shape,
                         Device& device, StageTimer& stages)
    : device_(device), inner_(inner < a.rows ? inner : 0) {
  const auto prepare = [&](std::int64_t begin, std::int64_t end, const Range& columns) {
    auto rows = std::make_unique<Rows>(rows_of(a, begin, end, columns), precision, device);
    Problem problem{rows->a.operand(), shape, choice.options};
    const Support support = check_support(*choice.kernel, problem, device.info());
    if (!support.ok) throw Unsupported(support.reason);
    rows->prepared = choice.kernel->prepare(problem.operand(), choice.options, device, stages);
    rows->plan = rows->prepared->bind(shape, stages);
    rows->plan->settle(stages);
    return rows;
  };
  // A kernel may read rows of B that A does not refer to, for a product with zero: while others are
  // sent, they must not be part of its B.
  if (inner_ > 0) own_ = prepare(0, inner_, own);
  rest_ = prepare(inner_, a.rows, {0, a.cols});
}

void PartProduct::launch(Exchange& exchange, const DenseView& b, const DenseView& c) {
  if (!own_) {
    exchange.launch();
  } else {
    exchange.begin();
    multiply(*own_, 0, exchange.own(), c);
    exchange.end();
  }
  multiply(*rest_, inner_, b, c);
}

void PartProduct::multiply(Rows& rows, std::int64_t first, const DenseView& b, const DenseView& c) {
  DenseView part = c;
  part.data =
      static_cast<char*>(c.data) + static_cast<std::size_t>(first * c.ld) * bytes_of(c.type);
  part.rows = rows.a.csr().rows;
  rows.plan->launch(b, part, device_.stream());
}

std::size_t PartProduct::device_bytes() const {
  return rest_->plan->report().device_bytes + (own_ ? own_->plan->report().device_bytes : 0);
}

}  // namespace spmmbench
