// The row order `match` on the device. src/reorder/match.hpp has the rules, so that both give the
// same order: nothing depends on which thread is first.
//
// A level has clusters, and an entry for each column of each cluster:
//
//   entries by cluster   (cluster, column)   sorted by cluster, then column
//   entries by column    (column, cluster)   sorted by column, then cluster: the lists
//
// 1. The entries are sorted by column. The sort is stable, so each list is ascending.
// 2. Each cluster without a partner counts how many columns it shares with which others, in a hash
//    table in shared memory, and keeps the most similar ones: a warp for most clusters, a CTA for
//    those that read many places of lists.
// 3. Rounds: each cluster names the first of these that has no partner; two that name each other
//    are partners.
// 4. Partners are joined. The entries get the new clusters' numbers and are sorted by them; what
//    both had is there twice, side by side, and one is dropped.

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
    entries_ = static_cast<std::int32_t>(a.nnz);
    std::size_t sort = 0, scan = 0, scan_entries = 0;
    sort_pairs(nullptr, sort, nullptr, nullptr, nullptr, nullptr, 32);
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(
        nullptr, scan, static_cast<std::uint64_t*>(nullptr), static_cast<std::uint64_t*>(nullptr),
        static_cast<std::int32_t>(rows_ + 1), stream_));
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(
        nullptr, scan_entries, static_cast<std::int32_t*>(nullptr),
        static_cast<std::int32_t*>(nullptr), std::max<std::int32_t>(entries_, rows_) + 1, stream_));
    temporary_bytes_ = std::max({sort, scan, scan_entries});
    SPMMBENCH_CUDA(cudaFuncSetAttribute(find_partners_by_cta,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        sizeof(Table<kMostSlots>)));
    // Two passes: how much, then where.
    lay_out(nullptr);
    memory_ = device.allocate(bytes_);
    lay_out(memory_.as<char>());
  }

  Buffer order() {
    Buffer order = device_.allocate(rows_ * sizeof(std::int32_t));
    auto* const out = order.as<std::int32_t>();
    std::int32_t clusters = number_filled_rows(out);
    std::int32_t rows_of_one = 1;
    std::int64_t end = clusters;  // of the places that no cluster left over has taken
    for (int level = 0; level < match::kLevels && clusters > 1; ++level) {
      sort_lists(clusters);
      find_mates(clusters);
      const std::int32_t half = clusters / 2;
      if (clusters % 2 == 1) end -= rows_of_one;
      join(clusters, rows_of_one, out + end);
      rows_of_one *= 2;
      if (level + 1 < match::kLevels && half > 1) renumber(half);
      clusters = half;
    }
    SPMMBENCH_CUDA(cudaMemcpyAsync(out, cluster_rows_,
                                   std::int64_t{clusters} * rows_of_one * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
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
    place(counts_, clusters, memory);
    place(counted_, clusters, memory);
    for (std::int32_t** array : {&cluster_, &column_, &list_column_, &lists_, &spare_})
      place(*array, entries + 1, memory);
    place(list_ptr_, a_.cols + 1, memory);
    for (std::int32_t** array : {&ptr_, &cluster_rows_, &new_rows_, &number_, &unmatched_,
                                 &partners_.longer[0], &partners_.longer[1], &rounds_[0].mate,
                                 &rounds_[0].named, &rounds_[1].mate, &rounds_[1].named})
      place(*array, clusters, memory);
    place(flags_, std::max(entries, rows_) + 1, memory);
    place(flagged_, std::max(entries, rows_) + 1, memory);
    place(partners_.of, clusters * match::kPartners, memory);
    place(partners_.count, 2, memory);
  }

  template <class... Parameters, class... Values>
  void launch(void (*kernel)(Parameters...), std::int64_t threads, Values... values) {
    kernel<<<ctas_for(threads), kThreads, 0, stream_>>>(values...);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  void sort_pairs(void* temporary, std::size_t& bytes, const std::int32_t* keys,
                  std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, int bits) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values,
                                                   sorted_values, entries_, 0, bits, stream_));
  }
  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, std::int64_t most) {
    std::size_t bytes = temporary_bytes_;
    sort_pairs(temporary_, bytes, keys, sorted_keys, values, sorted_values, bits_of(most));
  }

  template <class T>
  void sum_before(const T* in, T* out, std::int32_t count) {
    std::size_t bytes = temporary_bytes_;
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary_, bytes, in, out, count, stream_));
  }

  std::int32_t read(const std::int32_t* number) {
    std::int32_t out = 0;
    device_.download(&out, number, sizeof out);
    return out;
  }

  // Rows that are not empty are the clusters of the first level. Returns how many.
  std::int32_t number_filled_rows(std::int32_t* order) {
    launch(mark_filled, rows_ + 1, a_, flags_);
    sum_before(flags_, flagged_, static_cast<std::int32_t>(rows_) + 1);
    launch(number_rows, rows_ + 1, a_, static_cast<const std::int32_t*>(flagged_), ptr_,
           cluster_rows_, order);
    const std::int32_t filled = read(flagged_ + rows_);
    if (filled == 0) return 0;
    launch(number_entries, (a_.nnz + kEntries - 1) / kEntries * 32,
           static_cast<const std::int32_t*>(ptr_), filled, entries_, cluster_);
    SPMMBENCH_CUDA(cudaMemcpyAsync(column_, a_.col_idx, a_.nnz * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
    return filled;
  }

  void sort_lists(std::int32_t clusters) {
    sort_pairs(column_, list_column_, cluster_, lists_, a_.cols - 1);
    launch(find_starts, a_.cols + 1, static_cast<const std::int32_t*>(list_column_), entries_,
           a_.cols, list_ptr_);
    level_ = {ptr_, column_, list_ptr_, lists_, clusters};
  }

  void find_mates(std::int32_t clusters) {
    launch(begin_rounds, clusters, clusters, rounds_[0], partners_.count);
    const int sms = device_.info().sm_count;
    for (int pass = 0; pass < match::kPasses; ++pass) {
      const std::int32_t* const mate = rounds_[0].mate;
      const auto find = [&](auto kernel, int threads, std::int64_t most_ctas, std::size_t shared) {
        kernel<<<static_cast<unsigned>(most_ctas), threads, shared, stream_>>>(level_, mate,
                                                                               partners_);
        SPMMBENCH_CUDA_LAUNCHED();
      };
      const auto ctas = [&](int clusters_of_cta) {
        return std::int64_t{clusters + clusters_of_cta - 1} / clusters_of_cta;
      };
      constexpr int kFew = kWarpThreads<kFewSlots>, kMore = kWarpThreads<kMoreSlots>;
      constexpr std::int64_t kMoreCtasPerSm = 5, kCtasPerSm = 2;  // by their tables
      find(find_partners<kFewSlots>, kFew, ctas(kFew / 32), 0);
      find(find_partners<kMoreSlots>, kMore, std::min(ctas(kMore / 32), kMoreCtasPerSm * sms), 0);
      find(find_partners_by_cta, kCtaThreads, std::min(ctas(1), kCtasPerSm * sms),
           sizeof(Table<kMostSlots>));
      Rounds rounds{{rounds_[0], rounds_[1]}, partners_.of, counts_, partners_.count, clusters};
      void* arguments[] = {&rounds};
      constexpr std::int64_t kRoundCtasPerSm = 2;  // fewer than fit: they wait for each other
      SPMMBENCH_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(hold_rounds),
                                                 dim3(static_cast<unsigned>(std::min<std::int64_t>(
                                                     ctas(kThreads), kRoundCtasPerSm * sms))),
                                                 dim3(kThreads), arguments, 0, stream_));
      std::swap(rounds_[0], rounds_[1]);
    }
    mate_ = rounds_[0].mate;
  }

  void join(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* left) {
    sum_before(counts_, counted_, clusters + 1);
    launch(list_unmatched, clusters, clusters, static_cast<const std::int32_t*>(mate_),
           static_cast<const std::uint64_t*>(counted_), unmatched_);
    launch(number_clusters, clusters, Joining{mate_, counted_, unmatched_, clusters},
           static_cast<const std::int32_t*>(cluster_rows_), rows_of_one, number_, new_rows_, left);
    std::swap(cluster_rows_, new_rows_);
  }

  // The entries of the new clusters, `clusters` of them.
  void renumber(std::int32_t clusters) {
    launch(renumber_entries, entries_, entries_, static_cast<const std::int32_t*>(number_),
           static_cast<const std::int32_t*>(lists_), spare_);
    sort_pairs(spare_, cluster_, list_column_, column_, clusters);
    launch(mark_new, std::int64_t{entries_} + 1, entries_,
           static_cast<const std::int32_t*>(cluster_), static_cast<const std::int32_t*>(column_),
           clusters, flags_);
    sum_before(flags_, flagged_, entries_ + 1);
    launch(keep_new, entries_, entries_, static_cast<const std::int32_t*>(cluster_),
           static_cast<const std::int32_t*>(column_), clusters,
           static_cast<const std::int32_t*>(flagged_), spare_, list_column_, ptr_);
    std::swap(cluster_, spare_);
    std::swap(column_, list_column_);
    entries_ = read(flagged_ + entries_);
  }

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  std::int64_t rows_ = 0;
  std::int32_t entries_ = 0;  // of the level
  Buffer memory_;
  std::size_t bytes_ = 0, temporary_bytes_ = 0;
  char* temporary_ = nullptr;
  std::uint64_t *counts_ = nullptr, *counted_ = nullptr;
  std::int32_t *cluster_ = nullptr, *column_ = nullptr;     // of each entry, by cluster
  std::int32_t *list_column_ = nullptr, *lists_ = nullptr;  // the same by column
  std::int32_t *spare_ = nullptr, *list_ptr_ = nullptr, *ptr_ = nullptr;
  std::int32_t *cluster_rows_ = nullptr, *new_rows_ = nullptr, *number_ = nullptr;
  std::int32_t *unmatched_ = nullptr, *flags_ = nullptr, *flagged_ = nullptr;
  const std::int32_t* mate_ = nullptr;
  Partners partners_{};
  Round rounds_[2] = {};
  Level level_{};
};

}  // namespace

bool can_match(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  return nnz < INT32_MAX && rows + cols <= 2 * nnz;
}

std::int64_t match_bytes(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  constexpr std::int64_t kWord = sizeof(std::int32_t);
  constexpr std::int64_t kWordsOfEntry = 7, kWordsOfRow = 15 + match::kPartners;  // see lay_out
  return kWord * (kWordsOfEntry * nnz + kWordsOfRow * rows + cols);
}

Buffer match_order(const DeviceCsr& a, Device& device) { return Matching(a, device).order(); }

}  // namespace spmmbench
