#pragma once
// One case on several GPUs. Each rank measures its part by itself, as every case is measured: so
// each kernel and all its checks are those of one GPU. Then all ranks gather B and multiply, and
// every part of that C is verified, and the times are taken at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "multi/exchange.hpp"
#include "multi/forecast.hpp"
#include "multi/local_product.hpp"
#include "multi/part_product.hpp"
#include "multi/partition.hpp"
#include "multi/team.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// A as all ranks have it, divided; it serves the cases of any kernel and N.
class SplitA {
 public:
  // `a` has values rounded to the precision, and outlives this object. Throws CaseEnded.
  SplitA(const CsrMatrix& a, Precision precision, Split split, Team& team);

  struct Request {
    const KernelChoice* choice = nullptr;
    Shape shape;  // of the whole product
    std::uint64_t seed = 0;
    SampleLimits limits;
  };
  // Fills the row, alike on all ranks but for what only rank 0 shows. Throws RankLost.
  void measure(const Request& request, ResultRow& row);

 private:
  Range columns(const Request& request) const;  // of this rank
  std::optional<double> time_alone(const Request& request, const ResultRow& row);
  std::unique_ptr<LocalProduct> make_part(const Request& request);
  double received_share() const;
  bool in_one_call(const DenseView& b) const;  // all rows, and as fast as by sends
  Gathering gathering_of(const SplitProduct& split, double transfer_us,
                         const Exchange& exchange) const;
  // In place, of each that the part with the most needs.
  double reads_of_a_row() const;
  // What receiving B takes, in microseconds of the slowest rank.
  struct Transfer {
    double us = 0;       // in all
    double link_us = 0;  // on the link
    double meet_us = 0;  // where rows are read in place or pulled: until all ranks are there
  };
  Transfer measure_transfer(const SampleLimits& limits, bool all_in_one, Exchange& exchange,
                            SplitProduct& split);
  // Whether several GPUs should pay, and what one GPU reaches.
  void forecast(const Shape& shape, const Transfer& transfer, const Gathering& gathering,
                SplitProduct& split);
  // What the row says of all ranks together.
  void add_up(const Request& request, const CaseInput& input, double link_us, ResultRow& row);
  void run_together(const Request& request, LocalProduct& part, ResultRow& row);
  // The part's product in two, where that is faster; else null. For all ranks the same.
  std::unique_ptr<PartProduct> overlap(const Request& request, const CaseInput& input,
                                       Exchange& exchange, const std::function<void()>& alternating,
                                       ResultRow& row);
  // The part's own rows of the B that is gathered.
  void fill_own(const Request& request, Exchange& exchange);
  void test_exactly(const Request& request, const CaseInput& input, std::int64_t inner,
                    Exchange& exchange, ResultRow& row);

  const CsrMatrix& whole_;
  Precision precision_;
  Team& team_;
  Grid grid_;
  std::optional<RowParts> rows_;        // where A is split by rows
  StageTimer order_stages_;             // of the order that B and C then rest in
  int row_part_ = 0, column_part_ = 0;  // of this rank
  Gather gather_;
  std::optional<LocalA> part_, whole_on_device_;  // the second on rank 0 alone
};

}  // namespace spmmbench
