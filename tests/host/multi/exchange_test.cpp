// Rows of B that move between ranks, which are threads here, on the host.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "matrices.hpp"
#include "multi/exchange.hpp"
#include "multi/host_transport.hpp"
#include "process/temporary_folder.hpp"
#include "ranks.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kColumns = 5;

float value_of(std::int64_t row, std::int64_t column) {
  return static_cast<float>(row * 100 + column);
}

// Gathers B by the parts of `a` and the columns of the grid, and says in a line what a rank has
// that is not B.
std::string gather_on(int rank, const Grid& grid, const CsrMatrix& a, Way way,
                      Exchange::AllBy all_by, const std::string& meeting) {
  const int ranks = grid.rows * grid.columns;
  Group group({rank, ranks, rank, meeting}, 60);
  const auto transport = open_host_transport(group);
  const auto device = open_host_device();
  const Gather gather =
      make_gather(split_rows(a, balanced_rows(a, grid.rows)), way, grid.row_of(rank));
  DenseView b = make_b_view(gather.rows, kColumns, Layout::row_major, ElementType::f32);
  const Buffer memory = device->allocate(b.bytes());
  b.data = memory.data();
  auto* const values = memory.as<float>();
  const std::int64_t first_column = grid.column_of(rank) * kColumns;
  for (std::int64_t row = 0; row < gather.rows; ++row)
    for (std::int64_t column = 0; column < kColumns; ++column)
      if (gather.own.has(row) || gather.original[row] < 0)
        values[row * b.ld + column] = value_of(gather.original[row], first_column + column);
  Exchange exchange(gather, grid.same_columns(rank), ranks, b, *device, *transport, nullptr,
                    all_by);
  for (int round = 0; round < 2; ++round) {
    exchange.poison_received();
    for (const Range& rows : gather.from)
      if (rows.size() > 0 && !std::isnan(values[rows.begin * b.ld])) return "not poisoned";
    exchange.launch();
    for (std::int64_t row = 0; row < gather.rows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        if (values[row * b.ld + column] != value_of(gather.original[row], first_column + column))
          return "row " + std::to_string(row) + " is another";
  }
  const auto line_bytes = static_cast<double>(b.ld * 4);
  if (exchange.bytes_received() != static_cast<double>(gather.rows_received()) * line_bytes ||
      exchange.own().rows != gather.own.size())
    return "counts";
  return {};
}

TEST(Exchange, AfterItEveryRankHasTheRowsOfBThatItsAReadsFrom) {
  for (const Grid grid : {Grid{2, 1}, Grid{3, 1}, Grid{4, 1}, Grid{2, 2}, Grid{3, 2}})
    for (const auto& [way, all_by] : {std::pair(Way::all_gather, Exchange::AllBy::one_call),
                                      std::pair(Way::all_gather, Exchange::AllBy::sends),
                                      std::pair(Way::needed_rows, Exchange::AllBy::one_call)})
      for (const auto& [rows, columns] : {std::pair(50, 50), std::pair(40, 70)}) {
        const int ranks = grid.rows * grid.columns;
        const CsrMatrix a = testing::random_matrix(rows, columns, 6, 1, ranks);
        const TemporaryFolder folder;
        const auto faults =
            testing::faults_of_ranks(ranks, [&, way = way, all_by = all_by](int rank) {
              return gather_on(rank, grid, a, way, all_by, folder.file("meeting"));
            });
        EXPECT_EQ(faults, std::vector<std::string>(ranks))
            << grid.rows << " x " << grid.columns << " " << to_string(way);
      }
}

}  // namespace
}  // namespace spmmbench
