#include "measure/spot_checks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/block_scales.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "verify/bound.hpp"

namespace spmmbench {
namespace {

constexpr int kWatchedRows = 4;        // for each batch: short ones, and as many by their work
constexpr std::int64_t kColumns = 16;  // of each, where the row is short
// Products of all of them: some 50 us on a processor, which computes their B anew.
constexpr std::int64_t kProducts = 4'096;
constexpr std::int64_t kMostSpared = 8;  // of this many picks of a long row at least one counts
// Products that are computed while a batch runs, in half a millisecond or less.
constexpr std::int64_t kProductsWithin = 24'576;
constexpr std::int64_t kFewestWithin = 8;  // launches

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
                       bool constant_b, Device& device, const Update& update, bool signs_are_drawn)
    : a_(a),
      row_ids_(row_ids),
      operands_(operands),
      bound_(bound),
      precision_(precision),
      constant_b_(constant_b),
      device_(device),
      update_(update),
      signs_are_drawn_(signs_are_drawn) {
  const int most = constant_b ? 1 : update.beta != 0 ? 2 : operands.views;
  for (int i = 0; i < std::min(most, operands.views); ++i) views_.push_back(operands.b_view(i));
}

// The element of B's memory that is element (k, j) of a view.
std::int64_t SpotChecks::place_of(const DenseView& b, std::int64_t k, std::int64_t j) const {
  const auto* const from = static_cast<const unsigned char*>(operands_.b.data);
  const auto behind = static_cast<const unsigned char*>(b.data) - from;
  return behind / static_cast<std::int64_t>(bytes_of(b.type)) +
         (b.layout == Layout::row_major ? k * b.ld + j : j * b.ld + k);
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

// The row of a random nonzero: a launch that leaves out a share of the products is met with that
// probability, whatever rows they belong to. A row beyond kProducts is picked less often by as much
// as it is longer, so that no more is computed on the average, but not less than kMostSpared times
// less often. -1 for none.
std::int64_t SpotChecks::row_by_work() {
  if (a_.nnz() == 0) return -1;
  const std::int64_t entry = std::uniform_int_distribution<std::int64_t>(0, a_.nnz() - 1)(random_);
  const std::int64_t row =
      std::upper_bound(a_.row_ptr.begin(), a_.row_ptr.end(), entry) - a_.row_ptr.begin() - 1;
  const std::int64_t spared = std::min(a_.row_length(row), kMostSpared * kProducts);
  const bool picked = spared <= kProducts ||
                      std::uniform_int_distribution<std::int64_t>(1, spared)(random_) <= kProducts;
  return picked ? row : -1;
}

// The product of the scales of the blocks that entry `e` and its element of B lie in, for column
// `j` of those watched.
double SpotChecks::block_scales_at(const Watched& watched, std::int64_t e, std::int64_t j) const {
  const std::int64_t k = a_.col_idx[e];
  return static_cast<double>(block_scale(a_, watched.row, k)) *
         operands_.block_scale_of_b(k, watched.column + j);
}

template <class Sum, class ValueOfB>
TwoTermSum SpotChecks::added(const Watched& watched, std::int64_t j,
                             const ValueOfB& value_of_b) const {
  Sum sum;
  const double least = smallest_normal(operands_.b.type);
  const bool scaled = has_block_scales(precision_);
  for (std::int64_t e = a_.row_ptr[watched.row]; e < a_.row_ptr[watched.row + 1]; ++e)
    if (scaled) sum.add_scaled(a_.value(e), value_of_b(e), least, block_scales_at(watched, e, j));
    else sum.add(a_.value(e), value_of_b(e), least);
  sum.finish(static_cast<double>(a_.scale) * batch_.last->scale);
  return {.sum = sum.sum, .low = sum.low, .magnitude = sum.magnitude};
}

template <class ValueOfB>
TwoTermSum SpotChecks::sum_of(const Watched& watched, std::int64_t j,
                              const ValueOfB& value_of_b) const {
  return precision_ == Precision::fp64 ? added<TwoTermSum>(watched, j, value_of_b)
                                       : added<ReferenceSum>(watched, j, value_of_b);
}

TwoTermSum SpotChecks::sum_at(const Watched& watched, std::int64_t j) const {
  return sum_of(watched, j, [&](std::int64_t e) {
    return watched.b[(e - a_.row_ptr[watched.row]) * watched.columns() + j];
  });
}

// What the square of an element's error may be, over all signs of B's values.
double SpotChecks::mean_square_at(const Watched& watched, std::int64_t j) const {
  const double scale = static_cast<double>(a_.scale) * batch_.last->scale;
  const std::int64_t begin = a_.row_ptr[watched.row], k = a_.row_length(watched.row);
  double squares = 0;
  for (std::int64_t e = 0; e < k; ++e) {
    const double product = scale * block_scales_at(watched, begin + e, j) * a_.value(begin + e) *
                           watched.b[e * watched.columns() + j];
    if (std::isfinite(product)) squares += product * product;
  }
  return mean_square_error(bound_, static_cast<double>(k), squares);
}

double SpotChecks::changed_b(std::int64_t at) const {
  const ElementType type = operands_.b.type;
  for (auto change = batch_.changes.rbegin(); change != batch_.changes.rend();
       ++change) {  // the last counts
    const std::int64_t i = at - change->first;
    if (i >= 0 && i < static_cast<std::int64_t>(change->now.size() / bytes_of(type)))
      return load_element(type, change->now.data(), i);
  }
  return operands_.value_of_b(at);
}

void SpotChecks::add_other_view(Watched& watched) const {
  const DenseView& other = batch_.last == views_.data() ? views_.back() : views_.front();
  for (std::int64_t j = 0; j < watched.columns(); ++j) {
    const auto place = [&](std::int64_t e) {
      return place_of(other, a_.col_idx[e], watched.column + j);
    };
    watched.other_old.push_back(
        sum_of(watched, j, [&](std::int64_t e) { return operands_.value_of_b(place(e)); }));
    watched.other.push_back(
        sum_of(watched, j, [&](std::int64_t e) { return changed_b(place(e)); }));
  }
}

UpdateChain SpotChecks::chain_of(const Watched& watched, std::int64_t j) const {
  const double start =
      update_.beta == 0 ? 0 : update_.start.at(row_of_c(watched), watched.column + j);
  UpdateChain chain(update_, bound_, static_cast<double>(a_.row_length(watched.row)), start);
  if (update_.beta == 0) return chain;
  for (int i = 0; i < batch_.launches - 1; ++i) {
    const bool same_view = (batch_.launches - 1 - i) % views() == 0;
    if (same_view) chain.launch(batch_.late ? watched.old[j] : watched.now[j]);
    else chain.launch(batch_.late ? watched.other_old[j] : watched.other[j]);
  }
  return chain;
}

void SpotChecks::before(int launches, bool write_now) {
  writes_changes_ = false;
  if (std::exchange(has_begun_early_, false) && write_now && batch_.launches == launches) return;
  if (next_.launches != launches || next_.late == write_now) make_ready(launches, write_now);
  earlier_.insert(earlier_.end(), batch_.changes.begin(), batch_.changes.end());
  batch_ = std::exchange(next_, {});
  read_ = nullptr;
  const bool comes_soon = !write_now && launches == 1;  // write_changes, before any launch
  if (comes_soon) return;
  std::vector<Piece> pieces;
  add_pieces(earlier_, &Change::was, pieces);
  if (write_now) add_changes(pieces);
  write(pieces);
  earlier_.clear();
}

void SpotChecks::begin_early(int launches) {
  unjudged_.push_back({batch_, std::exchange(read_, nullptr)});
  before(launches);
  has_begun_early_ = true;
}

void SpotChecks::make_ready_watched(int launches) {
  make_ready(length_up_to(launches));
  next_.of_any_launch = true;
}

void SpotChecks::add_changes(std::vector<Piece>& pieces) const {
  if (!constant_b_) return add_pieces(batch_.changes, &Change::now, pieces);
  if (update_.beta != 0) return;                                    // launches read C
  static const std::vector<unsigned char> kNan(kPieceBytes, 0xFF);  // in each type of C
  for (const Watched& watched : batch_.watched)
    pieces.push_back(
        {const_cast<unsigned char*>(static_cast<const unsigned char*>(place_in_c(watched))),
         std::span(kNan).first(watched.old.size() * bytes_of(operands_.c.type))});
}

void SpotChecks::make_ready(int launches, bool write_now) {
  next_ = {};
  next_.launches = launches;
  next_.late = !write_now;
  // The first of a CUDA graph has the B that it was recorded with. Else a launch with the B that
  // the last single one had would show no more than that it reads it.
  if (!write_now && launches == 1) next_.first_view = length_up_to(views()) - 1;
  next_.last = &views_[(next_.first_view + launches - 1) % views_.size()];
  std::swap(next_, batch_);
  watch();
  std::swap(next_, batch_);
}

void SpotChecks::watch() {
  const DenseView& b = *batch_.last;
  const std::int64_t n = b.cols;
  std::int64_t products = 0;  // of short rows
  for (int i = 0; i < kWatchedRows && a_.rows > 0; ++i) {
    const bool by_work = i % 2 != 0;
    if (!by_work && products >= kProducts) continue;
    const std::int64_t row = by_work ? row_by_work() : short_row();
    if (row < 0) continue;
    const std::int64_t k = a_.row_length(row);
    // Neighbours on a line of C, so that they are read at once.
    const std::int64_t columns =
        b.layout == Layout::row_major
            ? std::min({n, kColumns, std::max<std::int64_t>(kProducts / kWatchedRows / k, 1)})
            : 1;
    Watched watched{row,
                    a_.row_ptr[row] + static_cast<std::int64_t>(random_() % k),
                    static_cast<std::int64_t>(random_() % (n - columns + 1)),
                    {},
                    std::vector<TwoTermSum>(columns),
                    {},
                    {},
                    {},
                    {}};
    for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e) {
      const std::int64_t first = place_of(b, a_.col_idx[e], watched.column);
      for (std::int64_t j = 0; j < columns; ++j)
        watched.b.push_back(operands_.value_of_b(first + j));
    }
    for (std::int64_t j = 0; j < columns; ++j) watched.old[j] = sum_at(watched, j);
    if (!by_work) products += 2 * k * columns;
    watched.now = watched.old;
    batch_.watched.push_back(std::move(watched));
  }
  if (constant_b_) return;
  for (const Watched& watched : batch_.watched) batch_.changes.push_back(change_of(watched));
  for (Watched& watched : batch_.watched) {
    note_changes(watched);
    for (std::int64_t j = 0; j < watched.columns(); ++j) watched.now[j] = sum_at(watched, j);
    if (signs_are_drawn_ && update_.plain())
      for (std::int64_t j = 0; j < watched.columns(); ++j)
        watched.mean_square.push_back(mean_square_at(watched, j));
    if (update_.beta != 0) add_other_view(watched);
  }
}

// A power of two by which the new values of B are larger than the old ones, in half of the changes:
// it makes a small product one of the largest of its row. A kernel that leaves out what rounding
// would hide is found out by that.
double SpotChecks::scale_of_change(const Watched& watched) {
  constexpr int kMost = 40, kMostInHalf = 14;  // a choice below overflow: 2^14 < 65,504 in fp16
  const double value = std::abs(a_.value(watched.entry));
  if (random_() % 2 == 0 || !(value > 0) || is_scaled(precision_) || update_.beta != 0) return 1;
  double largest = value;
  for (std::int64_t e = a_.row_ptr[watched.row]; e < a_.row_ptr[watched.row + 1]; ++e)
    if (const double other = std::abs(a_.value(e)); std::isfinite(other))
      largest = std::max(largest, other);
  const int most = precision_ == Precision::fp16 ? kMostInHalf : kMost;
  return std::ldexp(1, std::min(std::ilogb(largest) - std::ilogb(value), most));
}

// Other values for the elements of B that the nonzero meets. What is zero stays zero.
SpotChecks::Change SpotChecks::change_of(const Watched& watched) {
  const std::int64_t k = a_.col_idx[watched.entry];
  const ElementType type = operands_.b.type;
  const std::size_t bytes = watched.old.size() * bytes_of(type);
  Change change{k, watched.column, place_of(*batch_.last, k, watched.column),
                std::vector<unsigned char>(bytes), std::vector<unsigned char>(bytes)};
  const double scale = scale_of_change(watched);
  for (std::int64_t j = 0; j < watched.columns(); ++j) {
    const double was = operands_.value_of_b(change.first + j);
    store_element(type, change.was.data(), j, was);
    store_element(type, change.now.data(), j,
                  was == 0 ? 0 : scale * uniform_in(precision_, random_(), k, j));
  }
  return change;
}

void SpotChecks::note_changes(Watched& watched) const {
  const std::int64_t begin = a_.row_ptr[watched.row], end = a_.row_ptr[watched.row + 1];
  for (const Change& change : batch_.changes)  // the last one counts
    for (std::int64_t e = begin; e < end; ++e) {
      if (a_.col_idx[e] != change.k) continue;
      const auto changed =
          static_cast<std::int64_t>(change.now.size() / bytes_of(operands_.b.type));
      for (std::int64_t j = 0; j < watched.columns(); ++j)
        if (const std::int64_t i = watched.column + j - change.column; i >= 0 && i < changed)
          watched.b[(e - begin) * watched.columns() + j] =
              load_element(operands_.b.type, change.now.data(), i);
    }
}

void SpotChecks::add_pieces(const std::vector<Change>& changes,
                            std::vector<unsigned char> Change::*bytes,
                            std::vector<Piece>& pieces) const {
  for (const Change& change : changes)
    pieces.push_back(
        {static_cast<unsigned char*>(operands_.b.data) + change.first * bytes_of(operands_.b.type),
         change.*bytes});
}

void SpotChecks::write_changes(double after_us) {
  std::vector<Piece> pieces;
  add_pieces(earlier_, &Change::was, pieces);
  add_changes(pieces);
  write(pieces, after_us);
  writes_changes_ = true;
}

void SpotChecks::write(std::span<const Piece> pieces, double after_us) {
  if (device_.info().kind == DeviceKind::cuda) return cuda_write(pieces, device_, after_us);
  for (const Piece& piece : pieces) std::ranges::copy(piece.bytes, piece.at);
}

const void* SpotChecks::place_in_c(const Watched& watched) const {
  const DenseView& c = operands_.c;
  const std::int64_t row = row_of_c(watched);
  const std::int64_t first =
      c.layout == Layout::row_major ? row * c.ld + watched.column : watched.column * c.ld + row;
  return static_cast<const unsigned char*>(c.data) + first * bytes_of(c.type);
}

void SpotChecks::read_soon() {
  std::vector<const unsigned char*> places;
  for (const Watched& watched : batch_.watched)
    places.push_back(static_cast<const unsigned char*>(place_in_c(watched)));
  read_ = cuda_read(places, device_);
}

std::vector<double> SpotChecks::read_c() {
  const ElementType type = operands_.c.type;
  std::vector<unsigned char> bytes(batch_.watched.size() * kPieceBytes);
  if (device_.info().kind == DeviceKind::cuda) {
    if (read_ == nullptr) read_soon();
    device_.synchronize();
    std::copy_n(std::exchange(read_, nullptr), bytes.size(), bytes.begin());
  } else {
    for (std::size_t i = 0; i < batch_.watched.size(); ++i)
      if (!read_through_system(place_in_c(batch_.watched[i]), bytes.data() + i * kPieceBytes,
                               batch_.watched[i].old.size() * bytes_of(type)))
        throw WrongLaunch("C cannot be read when the launch has returned", {});
  }
  return values_of(batch_, bytes.data());
}

std::vector<const void*> SpotChecks::watched_places() const {
  std::vector<const void*> places;
  for (const Watched& watched : batch_.watched) places.push_back(place_in_c(watched));
  return places;
}

ValueRange SpotChecks::range_of(const Watched& watched, const DenseView& b) const {
  constexpr double kMargin = 1 + 0x1p-20, kInfinity = std::numeric_limits<double>::infinity();
  UpdateChain chain(update_, bound_, static_cast<double>(a_.row_length(watched.row)), 0);
  chain.launch(sum_of(watched, 0, [&](std::int64_t e) {
    return changed_b(place_of(b, a_.col_idx[e], watched.column));
  }));
  const double allowed = chain.allowed() * kMargin;  // for the rounding of what follows
  if (!std::isfinite(allowed)) return {};
  return {std::nextafter(chain.value() - allowed, -kInfinity),
          std::nextafter(chain.value() + allowed, kInfinity)};
}

std::vector<ValueRange> SpotChecks::watched_ranges(int launches) {
  std::int64_t products = 1;  // of a launch
  for (const Watched& watched : batch_.watched) products += a_.row_length(watched.row);
  std::vector<int> asked(launches);
  std::iota(asked.begin(), asked.end(), 0);
  std::swap(asked.front(), asked[batch_.launches - 1]);
  std::shuffle(asked.begin() + 1, asked.end(), random_);
  asked.resize(
      std::min<std::int64_t>(launches, std::max(kProductsWithin / products, kFewestWithin)));
  std::vector<ValueRange> ranges;
  for (const int at : asked)
    for (const Watched& watched : batch_.watched) ranges.push_back(range_of(watched, b(at)));
  return ranges;
}

WrongLaunch SpotChecks::not_found(std::size_t range) const {
  const Watched& watched = batch_.watched[range % batch_.watched.size()];
  Verdict verdict;
  verdict.worst_row = row_of_c(watched);
  verdict.worst_col = watched.column;
  return {fmt::format("a timed launch: C({}, {}) was not its product before the next one wrote it",
                      verdict.worst_row, verdict.worst_col),
          verdict};
}

void SpotChecks::restore() {
  std::vector<Piece> pieces;
  add_pieces(earlier_, &Change::was, pieces);
  add_pieces(batch_.changes, &Change::was, pieces);
  write(pieces);
  earlier_.clear();
  batch_ = {};
  unjudged_.clear();
  has_begun_early_ = false;
}

}  // namespace spmmbench
