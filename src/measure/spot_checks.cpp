#include "measure/spot_checks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

constexpr int kWatchedRows = 4;        // for each batch
constexpr std::int64_t kColumns = 16;  // of each, where the row is short
// Products of all of them: about 50 us on a processor, which computes B anew where it lies on a
// GPU.
constexpr std::int64_t kProductsOnHost = 16'384, kProductsOnGpu = 4'096;
// Elements that are nearer to the product with the B of an earlier batch: of a right kernel at most
// every second one, and that only where its rounding errors exceed what a product changes. For 64
// of these 7/8 have a probability of 3e-10.
constexpr std::int64_t kFewestCompared = 64;
constexpr double kMostNearer = 7.0 / 8;

// Copies memory by way of the system, which does not call a handler of this process where a page
// may not be read. False where it may not: its content would be made by whoever reads it first.
bool read_through_system(const void* from, void* to, std::size_t bytes) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("pipe: {}", strerror(errno)));
  const Descriptor out(ends[0]), in(ends[1]);
  const bool readable = write(in.get(), from, bytes) == static_cast<ssize_t>(bytes);
  return readable && read(out.get(), to, bytes) == static_cast<ssize_t>(bytes);
}

}  // namespace

SpotChecks::SpotChecks(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                       const Operands& operands, const ErrorBound& bound, Precision precision,
                       bool constant_b, Device& device)
    : a_(a),
      row_ids_(row_ids),
      operands_(operands),
      bound_(bound),
      precision_(precision),
      constant_b_(constant_b),
      device_(device) {
  for (int i = 0; i < (constant_b ? 1 : operands.views); ++i) views_.push_back(operands.b_view(i));
}

// The element of B's memory that is element (k, j) of a view.
std::int64_t SpotChecks::place_of(const DenseView& b, std::int64_t k, std::int64_t j) const {
  const auto* const from = static_cast<const unsigned char*>(operands_.b.data);
  const auto behind = static_cast<const unsigned char*>(b.data) - from;
  return behind / static_cast<std::int64_t>(bytes_of(b.type)) +
         (b.layout == Layout::row_major ? k * b.ld + j : j * b.ld + k);
}

double SpotChecks::element_of(const DenseView& b, std::int64_t k, std::int64_t j) const {
  if (device_.info().kind == DeviceKind::host) return element_at(b, k, j);
  const std::int64_t at = place_of(b, k, j);
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change)
    if (const std::int64_t i = at - change->first;
        i >= 0 && i < static_cast<std::int64_t>(change->now.size() / bytes_of(b.type)))
      return load_element(b.type, change->now.data(), i);
  return operands_.value_of_b(at);
}

// The shortest of some rows with nonzeros: a change of one product shows most in it. -1 without
// one.
std::int64_t SpotChecks::short_row() {
  constexpr int kTries = 8;
  std::int64_t found = -1;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t row = std::uniform_int_distribution<std::int64_t>(0, a_.rows - 1)(random_);
    if (a_.row_length(row) > 0 && (found < 0 || a_.row_length(row) < a_.row_length(found)))
      found = row;
  }
  if (found >= 0 || a_.nnz() == 0) return found;
  const std::int64_t entry = std::uniform_int_distribution<std::int64_t>(0, a_.nnz() - 1)(random_);
  return std::upper_bound(a_.row_ptr.begin(), a_.row_ptr.end(), entry) - a_.row_ptr.begin() - 1;
}

template <class Sum>
TwoTermSum SpotChecks::added(std::int64_t row, std::int64_t column, const DenseView& b) const {
  Sum sum;
  for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e)
    sum.add(a_.value(e), element_of(b, a_.col_idx[e], column));
  sum.finish(static_cast<double>(a_.scale) * b.scale);
  return {.sum = sum.sum, .low = sum.low, .magnitude = sum.magnitude};
}

TwoTermSum SpotChecks::sum_at(std::int64_t row, std::int64_t column, const DenseView& b) const {
  return precision_ == Precision::fp64 ? added<TwoTermSum>(row, column, b)
                                       : added<ReferenceSum>(row, column, b);
}

void SpotChecks::before(int launches) {
  restore();
  watched_.clear();
  last_ = &b(launches - 1);
  const DenseView& b = *last_;
  const std::int64_t n = b.cols;
  const std::int64_t most =
      device_.info().kind == DeviceKind::host ? kProductsOnHost : kProductsOnGpu;
  std::int64_t products = 0;
  for (int i = 0; i < kWatchedRows && a_.rows > 0 && products < most; ++i) {
    const std::int64_t row = short_row();
    if (row < 0) break;
    const std::int64_t k = a_.row_length(row);
    // Of a line of C, so that it is read at once.
    const std::int64_t columns =
        b.layout == Layout::row_major
            ? std::min({n, kColumns, std::max<std::int64_t>(most / kWatchedRows / k, 1)})
            : 1;
    Watched watched{row, a_.row_ptr[row] + static_cast<std::int64_t>(random_() % k),
                    static_cast<std::int64_t>(random_() % (n - columns + 1)),
                    std::vector<double>(columns)};
    for (std::int64_t j = 0; j < columns; ++j)
      watched.old[j] = sum_at(row, watched.column + j, b).sum;
    products += 2 * k * columns;
    watched_.push_back(std::move(watched));
  }
  if (constant_b_) return;
  for (const Watched& watched : watched_) changes_.push_back(change_of(watched, b));
  write(&Change::now);
}

// Other values for the elements of B that the nonzero meets. What is zero stays zero.
SpotChecks::Change SpotChecks::change_of(const Watched& watched, const DenseView& b) {
  const std::int64_t k = a_.col_idx[watched.entry];
  const std::size_t bytes = watched.old.size() * bytes_of(b.type);
  Change change{place_of(b, k, watched.column), std::vector<unsigned char>(bytes),
                std::vector<unsigned char>(bytes)};
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(watched.old.size()); ++j) {
    const double was = operands_.value_of_b(change.first + j);
    store_element(b.type, change.was.data(), j, was);
    store_element(b.type, change.now.data(), j,
                  was == 0 ? 0 : uniform_in(precision_, random_(), k, j));
  }
  return change;
}

void SpotChecks::write(std::vector<unsigned char> Change::*bytes) {
  std::vector<Piece> pieces;
  for (const Change& change : changes_)
    pieces.push_back(
        {static_cast<unsigned char*>(operands_.b.data) + change.first * bytes_of(operands_.b.type),
         change.*bytes});
  if (device_.info().kind == DeviceKind::cuda) return cuda_write(pieces, device_);
  for (const Piece& piece : pieces) std::ranges::copy(piece.bytes, piece.at);
}

std::vector<double> SpotChecks::read_c(const Watched& watched) {
  const DenseView& c = operands_.c;
  const std::int64_t row = row_ids_.empty() ? watched.row : row_ids_[watched.row];
  const std::int64_t first =
      c.layout == Layout::row_major ? row * c.ld + watched.column : watched.column * c.ld + row;
  const auto* const from = static_cast<const unsigned char*>(c.data) + first * bytes_of(c.type);
  std::vector<unsigned char> bytes(watched.old.size() * bytes_of(c.type));
  if (device_.info().kind != DeviceKind::host) device_.download(bytes.data(), from, bytes.size());
  else if (!read_through_system(from, bytes.data(), bytes.size()))
    throw WrongLaunch("C cannot be read when the launch has returned", {});
  std::vector<double> values;
  for (std::size_t j = 0; j < watched.old.size(); ++j)
    values.push_back(load_element(c.type, bytes.data(), static_cast<std::int64_t>(j)));
  return values;
}

void SpotChecks::after() {
  std::vector<std::vector<double>> read;  // before anything is computed: a thread may still write
  for (const Watched& watched : watched_) read.push_back(read_c(watched));
  const DenseView& b = *last_;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const Watched& watched = watched_[i];
    const auto k = static_cast<double>(a_.row_length(watched.row));
    for (std::size_t j = 0; j < watched.old.size(); ++j) {
      const std::int64_t column = watched.column + static_cast<std::int64_t>(j);
      const double got = read[i][j];
      const TwoTermSum sum = sum_at(watched.row, column, b);
      const ElementVerdict element = judge(got, sum.sum, sum.magnitude, k, bound_, sum.low);
      Verdict verdict;
      verdict.error_over_bound = element.over_bound;
      verdict.error_over_typical = element.over_typical;
      verdict.worst_row = row_ids_.empty() ? watched.row : row_ids_[watched.row];
      verdict.worst_col = column;
      if (!(element.over_bound <= 1))
        throw WrongLaunch(fmt::format("a timed launch: error {:.3g} x bound at C({}, {})",
                                      element.over_bound, verdict.worst_row, column),
                          verdict);
      if (constant_b_ || sum.sum == watched.old[j]) continue;
      ++compared_;
      nearer_to_old_ += std::abs(got - watched.old[j]) < std::abs(got - sum.sum) ? 1 : 0;
      if (compared_ >= kFewestCompared &&
          static_cast<double>(nearer_to_old_) > kMostNearer * static_cast<double>(compared_))
        throw WrongLaunch(fmt::format("a timed launch: C({}, {}) is a product with an earlier B",
                                      verdict.worst_row, column),
                          verdict);
    }
  }
}

void SpotChecks::restore() {
  write(&Change::was);
  changes_.clear();
}

}  // namespace spmmbench
