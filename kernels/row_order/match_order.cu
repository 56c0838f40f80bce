// The row order `match` on the device. src/reorder/match.hpp has the rules, so that both give the
// same order: nothing depends on which thread is first.
//
// A level has clusters, and an entry for each column of each cluster:
//
//   columns of each cluster, ascending
//   clusters of each column, ascending: the lists
//
// 1. The lists of the first level: its entries are sorted by column. The sort is stable.
// 2. Each cluster without a partner counts how many columns it shares with which others, in a table
//    in shared memory, and keeps the most similar ones: a warp for most clusters, CTAs of two sizes
//    for those that read many places of lists.
// 3. Rounds: each cluster names the first of these that has no partner; two that name each other
//    are partners. The first round is held while they are found.
// 4. Partners are joined and numbered.
// 5. The next level has the columns of both partners, and in each list their number. No step waits
//    for the host: how many clusters each level has is known from the first. Only
//    match::Height::by_need waits, once, to ask whether to go on after clusters of eight.

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "reorder/match.hpp"
#include "row_order/joining.cuh"
#include "row_order/level.cuh"
#include "row_order/match_order.hpp"
#include "row_order/partners.cuh"
#include "row_order/sample.cuh"
#include "row_order/uniting.cuh"

namespace spmmbench {
namespace {

using namespace match;

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}

// Bits of the numbers up to `most`.
int bits_of(std::int64_t most) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most))));
}

class Matching {
 public:
  Matching(const DeviceCsr& a, Device& device)
      : a_(a), device_(device), stream_(static_cast<cudaStream_t>(device.stream().handle)) {
    rows_ = a.rows;
    round_ctas_ = kRoundCtasPerSm * device.info().sm_count;
    std::size_t sort = 0, scan = 0;
    sort_lists(nullptr, sort);
    number_filled(nullptr, scan);
    temporary_bytes_ = std::max(sort, scan);
    for (const void* const kernel :
         {reinterpret_cast<const void*>(find_partners_by_cta<LargeCta, Narrow>),
          reinterpret_cast<const void*>(find_partners_by_cta<LargeCta, Wide>)})
      SPMMBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          LargeCta::kBytes));
    // Two passes: how much, then where.
    lay_out(nullptr);
    memory_ = device.allocate(bytes_);
    lay_out(memory_.as<char>());
  }

  Buffer order(match::Height height) {
    const bool by_need = height == match::Height::by_need;
    Buffer order = device_.allocate(rows_ * sizeof(std::int32_t));
    auto* const out = order.as<std::int32_t>();
    std::int32_t clusters = begin(out);
    std::int32_t rows_of_one = 1;
    std::int64_t end = clusters;  // of the places that no cluster left over has taken
    if (by_need && clusters > 1 && match::asks_sample(clusters, a_.nnz) && !gains(clusters))
      return {};
    for (int level = 0; level < match::kLevels && clusters > 1; ++level) {
      if (clusters % 2 == 1) end -= rows_of_one;
      match_clusters(clusters, rows_of_one, out + end);
      rows_of_one *= 2;
      clusters /= 2;
      if (level + 1 == match::kLowLevels && by_need) {
        copy_rows(clusters, rows_of_one, out);
        if (!grows_on()) return order;
      }
      if (level + 1 < match::kLevels && clusters > 1) unite_next(clusters, level);
    }
    copy_rows(clusters, rows_of_one, out);
    device_.synchronize();
    return order;
  }

 private:
  template <class T>
  void place(T*& array, std::int64_t count, char* memory) {
    array = reinterpret_cast<T*>(memory + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
  }

  void lay_out(char* memory) {
    bytes_ = 0;
    const std::int64_t entries = a_.nnz, clusters = rows_ + 1;
    place(temporary_, static_cast<std::int64_t>(temporary_bytes_), memory);
    place(totals_, round_ctas_, memory);
    place(counted_, clusters, memory);
    for (std::int32_t** array : {&columns_[0], &columns_[1], &lists_[0], &lists_[1]})
      place(*array, entries, memory);
    for (Span** array : {&columns_of_[0], &columns_of_[1]}) place(*array, clusters, memory);
    for (Span** array : {&list_of_[0], &list_of_[1]}) place(*array, a_.cols, memory);
    for (State** array : {&states_[0], &states_[1]}) place(*array, clusters, memory);
    for (std::int32_t** array :
         {&cluster_rows_, &new_rows_, &number_, &joined_, &unmatched_, &filled_, &filled_before_,
          &partners_.longer[0], &partners_.longer[1]})
      place(*array, clusters, memory);
    place(partners_.of, clusters * match::kPartners, memory);
    place(partners_.count, kCounters + 2, memory);
    partners_.states = states_[0];
    place(most_, 1, memory);
  }

  template <class... Parameters, class... Values>
  void launch(void (*kernel)(Parameters...), std::int64_t threads, Values... values) {
    kernel<<<ctas_for(threads), kThreads, 0, stream_>>>(values...);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  // The clusters in lists_[1], by their columns, into lists_[0]; the columns into columns_[0].
  void sort_lists(void* temporary, std::size_t& bytes) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
        temporary, bytes, a_.col_idx, columns_[0], static_cast<const std::int32_t*>(lists_[1]),
        lists_[0], static_cast<std::int32_t>(a_.nnz), 0, bits_of(a_.cols - 1), stream_));
  }

  // Filled rows before each.
  void number_filled(void* temporary, std::size_t& bytes) {
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary, bytes, filled_, filled_before_,
                                                 static_cast<std::int32_t>(rows_ + 1), stream_));
  }

  void copy_rows(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* order) {
    SPMMBENCH_CUDA(cudaMemcpyAsync(order, cluster_rows_,
                                   std::int64_t{clusters} * rows_of_one * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
  }

  // As match::grows_on. Waits for the device.
  bool grows_on() {
    std::int32_t columns[2] = {};
    device_.download(columns, columns_of_low_, sizeof columns);
    return match::grows_on(columns[0], columns[1]);
  }

  // Rows that are not empty are the clusters of the first level. Returns how many.
  std::int32_t begin(std::int32_t* order) {
    const std::int32_t* const before = filled_before_;
    columns_of_low_ = partners_.count + kCounters;
    SPMMBENCH_CUDA(
        cudaMemsetAsync(partners_.count, 0, (kCounters + 2) * sizeof(std::int32_t), stream_));
    SPMMBENCH_CUDA(cudaMemsetAsync(most_, 0, sizeof *most_, stream_));
    SPMMBENCH_CUDA(cudaMemsetAsync(list_of_[0], 0, a_.cols * sizeof(Span), stream_));
    launch(mark_filled, rows_ + 1, a_, filled_);
    std::size_t bytes = temporary_bytes_;
    number_filled(temporary_, bytes);
    launch(number_rows, rows_, a_, before, columns_of_[0], states_[0], cluster_rows_, order, most_);
    if (a_.nnz > 0) {
      launch(number_entries, (a_.nnz + kEntries - 1) / kEntries * 32, a_, before, lists_[1]);
      bytes = temporary_bytes_;
      sort_lists(temporary_, bytes);
      launch(find_spans, a_.nnz, static_cast<const std::int32_t*>(columns_[0]),
             static_cast<std::int32_t>(a_.nnz), list_of_[0], &most_->list);
    }
    Most most;
    device_.download(&most, most_, sizeof most);
    level_ = {columns_of_[0], a_.col_idx, list_of_[0], lists_[0], most.filled, 0};
    most_columns_ = most.columns;
    most_of_list_ = std::min(most.list, match::kMostPlaces);
    return most.filled;
  }

  // The best partners of clusters without one. `states` as in is_free.
  template <class Word>
  void find_with(std::int32_t clusters, const State* states, const Partners& out) {
    const auto find = [&](auto kernel, int threads, std::int64_t ctas, std::size_t shared) {
      kernel<<<static_cast<unsigned>(ctas), threads, shared, stream_>>>(level_, states, out);
      SPMMBENCH_CUDA_LAUNCHED();
    };
    const auto by_cta = [&]<class Cta>(Cta, std::int64_t of_sm) {
      find(find_partners_by_cta<Cta, Word>, Cta::kThreads,
           std::min<std::int64_t>(clusters, of_sm * device_.info().sm_count), Cta::kBytes);
    };
    constexpr std::int64_t kWarps = kWarpThreads / 32;
    find(find_partners<Word>, kWarpThreads, (clusters + kWarps - 1) / kWarps, 0);
    // None of the level reads more places.
    const std::int64_t places =
        std::min<std::int64_t>(most_columns_, match::kMostColumns) * most_of_list_;
    if (places <= most_warp_places(level_.clusters)) return;
    constexpr std::int64_t kSmallPerSm = 12, kLargePerSm = 3;  // by their tables
    by_cta(SmallCta{}, kSmallPerSm);
    by_cta(LargeCta{}, kLargePerSm);
  }
  void find_all(std::int32_t clusters, const State* states, const Partners& out) {
    if (level_.clusters <= kMostOfNarrow) find_with<Narrow>(clusters, states, out);
    else find_with<Wide>(clusters, states, out);
  }

  // Whether an order can gain, by a sample of rows. Waits for the device.
  bool gains(std::int32_t rows) {
    static_assert(sizeof(Sample) == 4 * sizeof(unsigned long long));
    Sample sample;
    Partners out = partners_;
    out.step = match::sample_step(rows);
    out.sample = reinterpret_cast<unsigned long long*>(totals_);  // of rounds to come
    SPMMBENCH_CUDA(cudaMemsetAsync(totals_, 0, sizeof sample, stream_));
    const std::int32_t sampled = (rows + out.step - 1) / out.step;
    find_all(sampled, nullptr, out);
    launch(gather_samples, std::int64_t{2} * sampled * 32, level_, out);
    device_.download(&sample, totals_, sizeof sample);
    SPMMBENCH_CUDA(
        cudaMemsetAsync(partners_.count, 0, (kCounters + 2) * sizeof(std::int32_t), stream_));
    return sample.gains(rows);
  }

  // Finds partners and joins them. `left`: where the rows of a cluster go that is left over.
  void match_clusters(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* left) {
    const Numbering numbering{totals_, counted_, unmatched_, cluster_rows_, rows_of_one,
                              number_, joined_,  new_rows_,  left};
    for (int pass = 0; pass < match::kPasses; ++pass) {
      level_.pass = pass;
      find_all(clusters, pass == 0 ? nullptr : states_[0], partners_);
      Rounds rounds{{states_[0], states_[1]},   partners_.of, partners_.count, clusters,
                    pass + 1 == match::kPasses, numbering};
      void* arguments[] = {&rounds};
      SPMMBENCH_CUDA(cudaLaunchCooperativeKernel(
          reinterpret_cast<const void*>(hold_rounds),
          dim3(std::min(ctas_for(clusters), static_cast<unsigned>(round_ctas_))), dim3(kThreads),
          arguments, 0, stream_));
    }
    std::swap(cluster_rows_, new_rows_);
  }

  // The level after `level`, of so many clusters.
  void unite_next(std::int32_t clusters, int level) {
    const int other = level % 2;  // where the level before is not
    std::int32_t* const columns_sum = level < 2 ? columns_of_low_ + level : nullptr;
    Span *const columns_of = columns_of_[1 - other], *const list_of = list_of_[1 - other];
    std::int32_t *const columns = columns_[1 - other], *const lists = lists_[1 - other];
    const Uniting next{level_,
                       number_,
                       joined_,
                       a_.cols,
                       clusters,
                       columns_of,
                       columns,
                       list_of,
                       lists,
                       states_[0],
                       partners_.count + kCounters - 1,
                       columns_sum};
    const std::int64_t items = clusters + a_.cols;
    if (2 * a_.nnz <= kShort * items) launch(unite<kShortOfWarp>, items * 32 / kShortOfWarp, next);
    else launch(unite<1>, items * 32, next);
    level_ = {columns_of, columns, list_of, lists, clusters, 0};
    most_columns_ *= 2;
  }

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  std::int64_t rows_ = 0;
  Buffer memory_;
  std::size_t bytes_ = 0, temporary_bytes_ = 0;
  char* temporary_ = nullptr;
  static constexpr std::int64_t kRoundCtasPerSm = 2;  // fewer than fit: they wait for each other
  std::int64_t round_ctas_ = 0;
  std::uint64_t *totals_ = nullptr, *counted_ = nullptr;
  // Of two levels: columns of clusters, lists of columns, and where each begins.
  Span *columns_of_[2] = {}, *list_of_[2] = {};
  std::int32_t *columns_[2] = {}, *lists_[2] = {};
  std::int32_t *cluster_rows_ = nullptr, *new_rows_ = nullptr, *number_ = nullptr;
  std::int32_t *joined_ = nullptr, *unmatched_ = nullptr;
  std::int32_t *filled_ = nullptr, *filled_before_ = nullptr;  // rows
  State* states_[2] = {};
  Partners partners_{};
  std::int32_t* columns_of_low_ = nullptr;  // of all pairs, and of all clusters of four
  Most* most_ = nullptr;
  // At most so many columns of a cluster of the level, and places of a list that are read.
  std::int64_t most_columns_ = 0, most_of_list_ = 0;
  Level level_{};
};

}  // namespace

bool can_match(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  return nnz < INT32_MAX && rows + cols <= 2 * nnz;
}

std::int64_t match_bytes(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  constexpr std::int64_t kWord = sizeof(std::int32_t);
  constexpr std::int64_t kWordsOfEntry = 4, kWordsOfRow = 19 + match::kPartners,
                         kWordsOfColumn = 4;  // see lay_out
  return kWord * (kWordsOfEntry * nnz + kWordsOfRow * rows + kWordsOfColumn * cols);
}

Buffer match_order(const DeviceCsr& a, match::Height height, Device& device) {
  return Matching(a, device).order(height);
}

}  // namespace spmmbench
