// The row order `match` on the device. src/reorder/match.hpp has the rules, so that both give the
// same order: nothing depends on which thread is first.
//
// A level has clusters, and an entry for each column of each cluster:
//
//   columns of each cluster, ascending
//   clusters of each column, ascending: the lists
//
// 1. The lists of the first level: each entry goes to its column's list, which is then sorted.
// 2. Each cluster without a partner counts how many columns it shares with which others, in a table
//    in shared memory, and keeps the most similar ones: a warp for most clusters, CTAs for those
//    that read many places of lists.
// 3. Rounds: each cluster names the first of these that has no partner; two that name each other
//    are partners. The first round is held while they are found. One cluster of CTAs holds them
//    where it is faster than all.
// 4. Partners are joined and numbered.
// 5. The next level has the columns of both partners, and in each list their number. No step waits
//    for the host: how many clusters each level has is known from the first. What the host asks,
//    the sizes of the first level and whether to go on after clusters of eight, it reads while the
//    device works.

#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <utility>

#include "common/dependent_launch.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
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

// A point in a stream.
class Mark {
 public:
  Mark() { SPMMBENCH_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { cudaEventDestroy(event_); }

  void set(cudaStream_t stream) { SPMMBENCH_CUDA(cudaEventRecord(event_, stream)); }
  void wait() const { SPMMBENCH_CUDA(cudaEventSynchronize(event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

// What the device tells the host.
struct Told {
  Most most;
  std::int32_t columns_of_low[2];
};

class Matching {
 public:
  Matching(const DeviceCsr& a, Device& device)
      : a_(a),
        device_(device),
        stream_(static_cast<cudaStream_t>(device.stream().handle)),
        overlap_(kernels_wait()),
        told_(device) {
    rows_ = a.rows;
    round_ctas_ = kRoundCtasPerSm * device.info().sm_count;
    sum_sizes(nullptr, temporary_bytes_);
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
    bool is_there = false;  // the order, but for rows that are left over
    for (int level = 0; level < match::kLevels && clusters > 1; ++level) {
      if (clusters % 2 == 1) end -= rows_of_one;
      const bool asks = level + 1 == match::kLowLevels && by_need;
      is_there = asks || level + 1 == match::kLevels;
      match_clusters(clusters, rows_of_one, out + end, is_there ? out : nullptr, asks);
      rows_of_one *= 2;
      clusters /= 2;
      if (asks && !grows_on()) break;
      if (level + 1 < match::kLevels && clusters > 1) unite_next(clusters, level);
    }
    if (!is_there) copy_rows(clusters, rows_of_one, out);
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
    // Zero at first.
    place(partners_.count, kCounters + 2, memory);
    place(most_, 1, memory);
    place(counts_, a_.cols, memory);
    zero_bytes_ = bytes_;
    for (Span** array : {&list_of_[0], &list_of_[1]}) place(*array, a_.cols, memory);
    place(sums_, rows_ + 1 + a_.cols, memory);
    place(temporary_, static_cast<std::int64_t>(temporary_bytes_), memory);
    place(totals_, round_ctas_, memory);
    place(counted_, clusters, memory);
    for (std::int32_t** array : {&columns_[0], &columns_[1], &lists_[0], &lists_[1]})
      place(*array, entries, memory);
    for (Span** array : {&columns_of_[0], &columns_of_[1]}) place(*array, clusters, memory);
    for (State** array : {&states_[0], &states_[1]}) place(*array, clusters, memory);
    for (std::int32_t** array : {&cluster_rows_, &new_rows_, &number_, &joined_, &unmatched_,
                                 &partners_.longer[0], &partners_.longer[1]})
      place(*array, clusters, memory);
    place(partners_.of, clusters * match::kPartners, memory);
    partners_.states = states_[0];
  }

  // A kernel that begins with griddepcontrol_wait.
  template <class... Parameters, class... Values>
  void launch(void (*kernel)(Parameters...), std::int64_t threads, Values... values) {
    launch_dependent(kernel, dim3(ctas_for(threads)), dim3(kThreads), 0, device_.stream(), overlap_,
                     values...);
  }
  // One that does not.
  template <class... Parameters, class... Values>
  void launch_after(void (*kernel)(Parameters...), std::int64_t threads, Values... values) {
    kernel<<<ctas_for(threads), kThreads, 0, stream_>>>(values...);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  // Sums of Size.
  void sum_sizes(void* temporary, std::size_t& bytes) {
    const auto sizes = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                       Size{a_.row_ptr, rows_, counts_});
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary, bytes, sizes, sums_,
                                                 rows_ + 1 + a_.cols, stream_));
  }

  void copy_rows(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* order) {
    SPMMBENCH_CUDA(cudaMemcpyAsync(order, cluster_rows_,
                                   std::int64_t{clusters} * rows_of_one * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
  }

  // As match::grows_on. The device goes on meanwhile.
  bool grows_on() {
    told_mark_.wait();
    const Told& told = told_.read<Told>(sizeof(Told::columns_of_low));
    return match::grows_on(told.columns_of_low[0], told.columns_of_low[1]);
  }

  // Rows that are not empty are the clusters of the first level. Returns how many.
  std::int32_t begin(std::int32_t* order) {
    auto* const told = told_.as<Told>();
    columns_of_low_ = partners_.count + kCounters;
    SPMMBENCH_CUDA(cudaMemsetAsync(partners_.count, 0, zero_bytes_, stream_));
    launch_after(count_columns, a_.nnz, a_, counts_, columns_[0]);
    std::size_t bytes = temporary_bytes_;
    sum_sizes(temporary_, bytes);
    constexpr std::int64_t kThreadsOfEntries = 32;
    const std::int64_t of_entries = (a_.nnz + kEntries - 1) / kEntries * kThreadsOfEntries;
    launch_after(
        place_level, std::max({rows_, a_.cols, of_entries}),
        FirstLevel{a_, counts_, columns_[0], sums_, columns_of_[0], states_[0], cluster_rows_,
                   order, number_, list_of_[1], lists_[1], most_, told_.arrivals(), &told->most});
    told_mark_.set(stream_);
    // Each list becomes ascending.
    Level level{columns_of_[0], a_.col_idx, list_of_[1], lists_[1], 0, 0};
    unite_all({level, number_, nullptr, a_.cols, 0, static_cast<std::int32_t>(rows_), nullptr,
               nullptr, list_of_[0], lists_[0], nullptr, nullptr, nullptr},
              a_.nnz);
    told_mark_.wait();
    const Most most = told_.read<Told>(sizeof(Most)).most;
    level_ = {columns_of_[0], a_.col_idx, list_of_[0], lists_[0], most.filled, 0};
    most_columns_ = most.columns;
    most_of_list_ = std::min(most.list, match::kMostPlaces);
    return most.filled;
  }

  // The best partners of clusters without one. `states` as in is_free.
  template <class Word>
  void find_with(const Level& level, std::int32_t clusters, const State* states,
                 const Partners& out) {
    constexpr std::int64_t kWarps = kWarpThreads / 32;
    launch_dependent(find_partners<Word>,
                     dim3(static_cast<unsigned>((clusters + kWarps - 1) / kWarps)),
                     dim3(kWarpThreads), 0, device_.stream(), overlap_, level, states, out);
    // None of the level reads more places.
    const std::int64_t places =
        std::min<std::int64_t>(most_columns_ * most_of_list_, match::kMostPlacesOfAll);
    if (places <= most_warp_places(level.clusters)) return;
    const auto by_cta = [&](auto kernel, int threads, std::int64_t of_sm) {
      const std::int64_t ctas = std::min<std::int64_t>(clusters, of_sm * device_.info().sm_count);
      launch_dependent(kernel, dim3(static_cast<unsigned>(ctas)), dim3(threads), kCtaBytes<Word>,
                       device_.stream(), overlap_, level, out);
    };
    // As many of an SM as their tables leave room for.
    if constexpr (sizeof(Word) > sizeof(Narrow))
      by_cta(find_partners_by_cta<kFewThreads, Word>, kFewThreads, 3);
    else if (clusters > kFewForCtas)
      by_cta(find_partners_by_cta<kFewThreads, Word>, kFewThreads, 10);
    else by_cta(find_partners_by_cta<kManyThreads, Word>, kManyThreads, 6);
  }
  void find_all(const Level& level, std::int32_t clusters, const State* states,
                const Partners& out) {
    if (level.clusters <= kMostOfNarrow) find_with<Narrow>(level, clusters, states, out);
    else find_with<Wide>(level, clusters, states, out);
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
    find_all(level_, sampled, nullptr, out);
    launch(gather_samples, std::int64_t{sampled} * kThreads, level_, out);
    device_.download(&sample, totals_, sizeof sample);
    SPMMBENCH_CUDA(
        cudaMemsetAsync(partners_.count, 0, (kCounters + 2) * sizeof(std::int32_t), stream_));
    return sample.gains(rows);
  }

  // The level with the lists of clusters that have no partner.
  Level free_lists(int pass) {
    const int other = level_.lists == lists_[0] ? 1 : 0;  // which the next level will take
    launch(
        keep_free_lists, (a_.cols + kListsOfWarp - 1) / kListsOfWarp * 32,
        Keeping{level_.list_of, level_.lists, states_[0], a_.cols, list_of_[other], lists_[other]});
    Level level = level_;
    level.pass = pass;
    level.list_of = list_of_[other];
    level.lists = lists_[other];
    return level;
  }

  // Finds partners and joins them. `left`: where the rows of a cluster go that is left
  // over, `order`: where all others go, or null.
  // `asks`: the columns of the first levels are told to the host.
  void match_clusters(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* left,
                      std::int32_t* order, bool asks) {
    const Numbering numbering{totals_, counted_, unmatched_, cluster_rows_, rows_of_one,
                              number_, joined_,  new_rows_,  left,          order};
    for (int pass = 0; pass < match::kPasses; ++pass) {
      if (pass == 0) find_all(level_, clusters, nullptr, partners_);
      else find_all(free_lists(pass), clusters, states_[0], partners_);
      const bool tells = asks && pass == 0;
      const Rounds rounds{{states_[0], states_[1]},
                          partners_.of,
                          partners_.count,
                          clusters,
                          pass + 1 == match::kPasses,
                          columns_of_low_,
                          tells ? told_.as<Told>()->columns_of_low : nullptr,
                          numbering};
      hold(rounds);
      if (tells) told_mark_.set(stream_);
    }
    std::swap(cluster_rows_, new_rows_);
  }

  void hold(Rounds rounds) {
    if (overlap_ && rounds.clusters <= kMostInCluster) {
      launch_dependent_clusters(hold_rounds_in_cluster, kRoundCtas, dim3(kRoundCtas),
                                dim3(kRoundThreads), 0, device_.stream(), rounds);
      return;
    }
    void* arguments[] = {&rounds};
    SPMMBENCH_CUDA(cudaLaunchCooperativeKernel(
        reinterpret_cast<const void*>(hold_rounds),
        dim3(std::min(ctas_for(rounds.clusters), static_cast<unsigned>(round_ctas_))),
        dim3(kThreads), arguments, 0, stream_));
  }

  // `numbers`: that are united, at most.
  void unite_all(const Uniting& next, std::int64_t numbers) {
    const std::int64_t items = next.clusters + a_.cols;
    if (numbers <= kShort * items) launch(unite<kShortOfWarp>, items * 32 / kShortOfWarp, next);
    else launch(unite<1>, items * 32, next);
  }

  // The level after `level`, of so many clusters.
  void unite_next(std::int32_t clusters, int level) {
    const int other = level % 2;  // where the level before is not
    std::int32_t* const columns_sum = level < 2 ? columns_of_low_ + level : nullptr;
    Span *const columns_of = columns_of_[1 - other], *const list_of = list_of_[1 - other];
    std::int32_t *const columns = columns_[1 - other], *const lists = lists_[1 - other];
    unite_all({level_, number_, joined_, a_.cols, clusters, clusters, columns_of, columns, list_of,
               lists, states_[0], partners_.count + kCounters - 1, columns_sum},
              2 * a_.nnz);
    level_ = {columns_of, columns, list_of, lists, clusters, 0};
    most_columns_ *= 2;
  }

  static constexpr int kFewThreads = 128, kManyThreads = 256;  // of a CTA that finds partners
  static constexpr std::int32_t kFewForCtas = 8192;  // clusters: more threads for each then

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  bool overlap_;
  ToldToHost told_;
  Mark told_mark_;
  std::int64_t rows_ = 0;
  Buffer memory_;
  std::size_t bytes_ = 0, temporary_bytes_ = 0, zero_bytes_ = 0;
  char* temporary_ = nullptr;
  static constexpr std::int64_t kRoundCtasPerSm = 2;  // fewer than fit: they wait for each other
  std::int64_t round_ctas_ = 0;
  std::uint64_t *totals_ = nullptr, *counted_ = nullptr;
  // Of two levels: columns of clusters, lists of columns, and where each begins.
  Span *columns_of_[2] = {}, *list_of_[2] = {};
  std::int32_t *columns_[2] = {}, *lists_[2] = {};
  std::int32_t *cluster_rows_ = nullptr, *new_rows_ = nullptr, *number_ = nullptr;
  std::int32_t *joined_ = nullptr, *unmatched_ = nullptr;
  std::int32_t* counts_ = nullptr;  // of columns
  unsigned* sums_ = nullptr;        // of Size
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
  constexpr std::int64_t kWordsOfEntry = 4, kWordsOfRow = 18 + match::kPartners,
                         kWordsOfColumn = 6;  // see lay_out
  return kWord * (kWordsOfEntry * nnz + kWordsOfRow * rows + kWordsOfColumn * cols);
}

Buffer match_order(const DeviceCsr& a, match::Height height, Device& device) {
  return Matching(a, device).order(height);
}

}  // namespace spmmbench
