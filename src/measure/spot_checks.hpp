#pragma once
// Fresh values of B for the timed launches, and a look at what they wrote. A launch that does not
// multiply the B that it is given is then found out, whatever it was given before.
//
//   - The launches of a batch take turns among a few views of B, which lie one behind the other in
//     the same memory: no launch has the values of the one before it.
//   - Before each batch some elements of B change, at places that a kernel cannot know; those that
//     changed for the batch before it get their first values. They take part in elements of C that
//     the last launch of the batch writes.
//   - After the batch these elements of C are read at once and compared with their own fp64 sums.
//
// Where launches read C, a batch begins with the same C, and what it makes of an element is
// followed from launch to launch (update_chain.hpp). There are then at most two views of B.
//
// This costs no launch any time: the changes are made between batches.

#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "gpu/watcher.hpp"
#include "measure/operands.hpp"
#include "measure/update_chain.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error_bound.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/reference_sum.hpp"
#include "spmmbench/update.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// What a launch left in C is not the product with the B that it was given.
class WrongLaunch : public std::runtime_error {
 public:
  WrongLaunch(const std::string& what, const Verdict& verdict)
      : std::runtime_error(what), verdict_(verdict) {}
  const Verdict& verdict() const { return verdict_; }

 private:
  Verdict verdict_;
};

class SpotChecks {
 public:
  // `constant_b`: every launch has the same view of B, and no value of B changes; elements of C are
  // overwritten instead. `signs_are_drawn`: B's values have random signs. All arguments outlive
  // this object.
  SpotChecks(const CsrMatrix& a, std::span<const std::int32_t> row_ids, const Operands& operands,
             const ErrorBound& bound, Precision precision, bool constant_b, Device& device,
             const Update& update = {}, bool signs_are_drawn = true);
  SpotChecks(const SpotChecks&) = delete;
  SpotChecks& operator=(const SpotChecks&) = delete;

  // The B of a launch of the batch that `before` was called for.
  const DenseView& b(int launch) const {
    return views_[(batch_.first_view + launch) % views_.size()];
  }
  int views() const { return static_cast<int>(views_.size()); }
  // The most launches of a batch. With more, some would get a B that an earlier launch had, whose
  // product a kernel could have kept. (If launches read C, each has another C to add to.)
  int most_launches() const {
    return constant_b_ || update_.beta != 0 ? std::numeric_limits<int>::max() : views();
  }

  // Call it before a batch of this many launches. Without `write_now`, call write_changes within
  // the batch, before its last launch.
  void before(int launches, bool write_now = true);
  // Draws the changes of the batch that comes next, and computes what they make of C. Spares
  // `before` that of the same batch.
  void make_ready(int launches, bool write_now = true);
  // On a GPU, behind read_soon: enqueues what `before` of the next batch would write, and leaves
  // the batch that runs to `judge_earlier` or `settle`, in the place of `after`.
  void begin_early(int launches);
  bool has_begun_early() const { return has_begun_early_; }
  // What has been read when the batch that was begun early may still be read: all but the last.
  void judge_earlier();
  void settle();  // what has not been judged yet
  // On a GPU the values change that many microseconds after what has been enqueued is done. A
  // launch that does not wait for this multiplies the B that was there before.
  void write_changes(double after_us = 0);
  // Enqueues reading what `after` needs of C, on a GPU: no work of another stream comes between.
  void read_soon();
  // Checks that batch. Throws WrongLaunch, whose message calls the batch's last launch `what`.
  void after(const char* what = "a timed launch");
  // Whether a Watcher can look at a batch while it runs: each launch must leave a C of its own. It
  // cannot if B stays the same; if launches read C, the last C shows each of them anyway.
  bool can_be_watched() const { return !constant_b_ && update_.beta == 0; }
  // Takes the place of `before`: what changes is for any of the launches.
  void before_watched(int launches) {
    before(next_.of_any_launch ? next_.launches : length_up_to(launches));
  }
  void make_ready_watched(int launches);  // spares before_watched that
  std::vector<const void*> watched_places() const;
  // What these elements are when launches have written them, for that one and others that chance
  // picks: as many as can be computed while a batch runs.
  std::vector<ValueRange> watched_ranges(int launches);
  // Describes a range that the watched element has not been found in.
  WrongLaunch not_found(std::size_t range) const;
  void restore();  // B as it was made
  int length_up_to(int most) { return std::uniform_int_distribution(1, most)(random_); }

 private:
  // Elements of a row of C, and one nonzero of the row of A. They belong to the columns
  // [column, column + old.size()).
  struct Watched {
    std::int64_t row, entry, column;
    std::vector<double> b;        // row-major: what they are multiplied by, a line for each nonzero
    std::vector<TwoTermSum> old;  // the elements' products with B as it was before it changed
    std::vector<TwoTermSum> now;  // and after that
    // Products with the other view of B, before and after. None where C is not read.
    std::vector<TwoTermSum> other_old, other;
    std::vector<double> mean_square;  // of errors; none where B's signs are not drawn

    std::int64_t columns() const { return static_cast<std::int64_t>(old.size()); }
  };
  // A change of `Watched::columns` elements of row k of B.
  struct Change {
    std::int64_t k, column;
    std::int64_t first;                   // element of B's memory
    std::vector<unsigned char> was, now;  // as B stores them
  };
  // A batch of launches that follow each other.
  struct Checked {
    int launches = 0;
    bool late = false;                // B changes before the last of them
    bool of_any_launch = false;       // these are the first of a batch that is watched
    int first_view = 0;               // of B
    const DenseView* last = nullptr;  // the B of the last
    std::vector<Watched> watched;
    std::vector<Change> changes;
  };

  std::int64_t short_row();
  std::int64_t row_by_work();
  // The sum of a watched row, in column `j` of those watched, with `value_of_b` for each nonzero.
  template <class ValueOfB>
  TwoTermSum sum_of(const Watched& watched, std::int64_t j, const ValueOfB& value_of_b) const;
  template <class Sum, class ValueOfB>
  TwoTermSum added(const Watched& watched, std::int64_t j, const ValueOfB& value_of_b) const;
  double block_scales_at(const Watched& watched, std::int64_t e, std::int64_t j) const;
  TwoTermSum sum_at(const Watched& watched, std::int64_t j) const;
  double mean_square_at(const Watched& watched, std::int64_t j) const;
  double scale_of_change(const Watched& watched);
  void add_error(const char* what, double error, double mean_square, const Verdict& verdict);
  void add_other_view(Watched& watched) const;
  double changed_b(std::int64_t at) const;  // element `at` of its memory
  // Between which values the first watched column lies once a launch with that B has written it.
  ValueRange range_of(const Watched& watched, const DenseView& b) const;
  // The updates of the element by the launches before the last one of the batch.
  UpdateChain chain_of(const Watched& watched, std::int64_t j) const;
  std::int64_t row_of_c(const Watched& watched) const {
    return row_ids_.empty() ? watched.row : row_ids_[watched.row];
  }
  Change change_of(const Watched& watched);
  void note_changes(Watched& watched) const;  // in its elements of B
  void watch();                               // chooses what batch_ changes
  void add_pieces(const std::vector<Change>& changes, std::vector<unsigned char> Change::*bytes,
                  std::vector<Piece>& pieces) const;
  void add_changes(std::vector<Piece>& pieces) const;              // of this batch
  void write(std::span<const Piece> pieces, double after_us = 0);  // to B or C, in this order
  // What was not judged when the next batch began, and where C is brought.
  struct Unjudged {
    Checked batch;
    const unsigned char* read;
  };

  // The elements of C of all that is watched, one after the other.
  std::vector<double> read_c();
  std::vector<double> values_of(const Checked& batch, const unsigned char* bytes) const;
  void conclude(const Checked& batch, const std::vector<double>& values, const char* what);
  const void* place_in_c(const Watched& watched) const;
  std::int64_t place_of(const DenseView& b, std::int64_t k, std::int64_t j) const;

  const CsrMatrix& a_;
  std::span<const std::int32_t> row_ids_;
  const Operands& operands_;
  ErrorBound bound_;
  Precision precision_;
  bool constant_b_;
  Device& device_;
  Update update_;
  bool signs_are_drawn_;
  std::vector<DenseView> views_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<Change> earlier_;  // of batches before, to be undone
  // By write_changes of this batch. What is recorded may be lost, and enqueued once more: it is
  // certain when the batch is over.
  bool writes_changes_ = false;
  Checked batch_, next_;                 // the latest batch, and the one that was made ready
  std::vector<Unjudged> unjudged_;       // of batches before
  bool has_begun_early_ = false;         // batch_, which has not been launched
  const unsigned char* read_ = nullptr;  // where read_soon brings what it reads
  std::int64_t compared_ = 0, nearer_to_old_ = 0;
  std::int64_t added_ = 0;  // errors, whose squares are
  double squares_ = 0, mean_squares_ = 0;
};

}  // namespace spmmbench
