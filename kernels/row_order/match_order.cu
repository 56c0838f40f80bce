// The row order `match` on the device. src/reorder/match.hpp has the rules, so that both give the
// same order: nothing depends on which thread is first.
//
// A level has clusters. The first, whose clusters are rows, has the columns of each, ascending, and
// the rows of each column: the lists. Others have the columns of a cluster as a set of bits.
//
// 1. The rows of large matrices are numbered by their first columns. Each entry goes to the list of
//    its column. Lists that are not read to their end are sorted.
// 2. Each row counts how many columns it shares with which others, in a table in shared memory, and
//    ranks the most similar ones: a warp for most rows, CTAs for those that read many places of
//    lists.
// 3. On other levels each cluster ranks the clusters of those that its two parts ranked, by their
//    columns.
// 4. As soon as a cluster has ranked others, it asks them to be its partner.
// 5. Those that find none ask others without one that they meet further away. Then partners are
//    joined and numbered. One launch has all of it, whose CTAs wait for each other.
// 6. The next level has the columns of both. No step waits for the host: how many clusters each
//    level has is known from the first. What the host asks, the sizes of the first level, what a
//    sample says and whether to go on after clusters of eight, it reads while the device works.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <mutex>
#include <utility>

#include "common/dependent_launch.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "reorder/first_columns.hpp"
#include "reorder/match.hpp"
#include "row_order/joining.cuh"
#include "row_order/level.cuh"
#include "row_order/lists.cuh"
#include "row_order/match_order.hpp"
#include "row_order/near.cuh"
#include "row_order/partners.cuh"
#include "row_order/sample.cuh"
#include "row_order/sizes.cuh"

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
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

constexpr std::int64_t kMostSampled = 2 * kSampled;  // rows: see sample_step

// Beside that of the device, and served first. It is kept until the process ends.
Stream stream_beside(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, cudaStream_t>;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = all.try_emplace(device.info().index);
  if (is_new) {
    int least = 0, greatest = 0;
    SPMMBENCH_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    SPMMBENCH_CUDA(cudaStreamCreateWithPriority(&entry->second, cudaStreamNonBlocking, greatest));
  }
  return {entry->second};
}

// What the device tells the host.
struct Told {
  Most most;
  std::int32_t columns_of_low[2];
  std::int32_t stops;  // see SampleVerdict
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
    join_ctas_ = kJoinCtasPerSm * device.info().sm_count;
    if (sorts_rows(rows_, a_.nnz)) sort_rows(nullptr, stream_);
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
    if (clusters > 1) {
      const bool asks = by_need && match::asks_sample(clusters, a_.nnz);
      if (asks) partners_.stops = stops_;
      find_rows(clusters, partners_, device_.stream(), [&] {
        if (asks) ask_sample(clusters);
      });
      if (asks && stops()) {
        device_.synchronize();
        return {};
      }
    }
    bool is_there = false;  // the order, but for rows that are left over
    Suits suits = partners_.suits;
    for (int level = 0; level < match::kLevels && clusters > 1; ++level) {
      if (clusters % 2 == 1) end -= rows_of_one;
      const bool asks = level + 1 == match::kLowLevels && by_need;
      is_there = asks || level + 1 == match::kLevels;
      if (level > 0) find_near(level, clusters, suits);
      join(level, suits, clusters, rows_of_one, out + end, is_there ? out : nullptr, asks);
      suits = this->suits(level + 1, suits.best - best_ + clusters);
      rows_of_one *= 2;
      clusters /= 2;
      if (asks && !grows_on()) break;
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
    const std::int64_t entries = a_.nnz, rows = rows_ + 1;
    const std::int64_t clusters = std::min(rows_, entries) + 1;  // no empty rows
    // Zero at first.
    place(partners_.count, kCounters + 2, memory);
    place(sample_.count, kCounters, memory);
    place(stops_, 1, memory);
    place(sample_.sample, sizeof(Sample) / sizeof(unsigned long long), memory);
    place(most_, 1, memory);
    place(arrived_, match::kLevels, memory);
    place(counts_, a_.cols, memory);
    place(size_totals_, join_ctas_, memory);
    for (unsigned long long** array : {&best_, &best_of_further_})
      place(*array, 2 * clusters, memory);  // of all levels
    zero_bytes_ = bytes_;
    place(list_of_, a_.cols, memory);
    place(sums_, rows_ + 1 + a_.cols, memory);
    place(sort_memory_, static_cast<std::int64_t>(sort_bytes_), memory);
    place(totals_, join_ctas_, memory);
    place(first_left_, join_ctas_, memory);
    for (std::int32_t** array : {&before_, &lists_}) place(*array, entries, memory);
    place(columns_of_, clusters, memory);
    place(taken_, clusters, memory);
    for (std::int32_t** array : {&cluster_rows_, &new_rows_, &number_, &joined_, &mates_})
      place(*array, rows, memory);
    for (std::int32_t*& queue : partners_.longer) place(queue, clusters, memory);
    place(ranks_[0], clusters * match::kNear, memory);
    place(ranks_[1], clusters / 2 * match::kNear, memory);
    for (int level = 1; level <= 2; ++level) {
      place(sketches_[level % 2], (clusters >> level) * kSketchLanes, memory);
      place(lengths_[level % 2], clusters >> level, memory);
    }
    partners_.suits = suits(0, 0);
    const std::int64_t sampled = std::min<std::int64_t>(rows_, kMostSampled);
    place(sample_.suits.ranks, sampled * match::kNear, memory);
    for (std::int32_t*& queue : sample_.longer) place(queue, sampled, memory);
  }

  // `before`: clusters of all levels before.
  Suits suits(int level, std::int64_t before) const {
    return {ranks_[level % 2], match::kNear, best_ + before, taken_};
  }
  // Those of clusters that found no partner: their ranks lie where the level before had its own,
  // and the next will.
  Suits further_suits(int level, const Suits& suits) const {
    static_assert(2 * match::kFurther <= match::kNear);
    return {ranks_[1 - level % 2], match::kFurther, best_of_further_ + (suits.best - best_),
            taken_};
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

  // Sorts rows by key, and by number where keys are equal. Without memory: says how much it takes.
  void sort_rows(char* memory, cudaStream_t stream) {
    cub::DoubleBuffer<std::uint32_t> keys(keys_of(mates_), keys_of(joined_));
    cub::DoubleBuffer<std::int32_t> rows(cluster_rows_, new_rows_);
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
        memory, sort_bytes_, keys, rows, static_cast<std::int32_t>(rows_), 0, kRowKeyBits, stream));
    cluster_rows_ = rows.Current();
    new_rows_ = rows.Alternate();
  }
  static std::uint32_t* keys_of(std::int32_t* array) {
    return reinterpret_cast<std::uint32_t*>(array);
  }
  // Where each row is among those that are sorted by their first columns. They are sorted beside
  // what the device does until `sorted_mark_`.
  const std::int32_t* sort_rows_beside() {
    const auto beside = static_cast<cudaStream_t>(stream_beside(device_).handle);
    level_mark_.set(stream_);
    SPMMBENCH_CUDA(cudaStreamWaitEvent(beside, level_mark_.event()));
    make_keys<<<ctas_for(rows_), kThreads, 0, beside>>>(a_, RowKeys(a_.cols), keys_of(mates_),
                                                        cluster_rows_);
    SPMMBENCH_CUDA_LAUNCHED();
    sort_rows(sort_memory_, beside);
    invert_order<<<ctas_for(rows_), kThreads, 0, beside>>>(cluster_rows_, rows_, number_);
    SPMMBENCH_CUDA_LAUNCHED();
    sorted_mark_.set(beside);
    return number_;
  }

  // Rows that are not empty are the clusters of the first level. Returns how many.
  std::int32_t begin(std::int32_t* order) {
    auto* const told = told_.as<Told>();
    columns_of_low_ = partners_.count + kCounters;
    const std::int32_t* const place = sorts_rows(rows_, a_.nnz) ? sort_rows_beside() : nullptr;
    SPMMBENCH_CUDA(cudaMemsetAsync(partners_.count, 0, zero_bytes_, stream_));
    launch_after(count_columns, a_.nnz, a_, counts_, before_);
    const std::int64_t sizes = rows_ + 1 + a_.cols;
    const std::int64_t sum_ctas = std::min((sizes + kSizesAtOnce - 1) / kSizesAtOnce, join_ctas_);
    launch_dependent(sum_sizes, dim3(static_cast<unsigned>(sum_ctas)), dim3(kSizeThreads), 0,
                     device_.stream(), overlap_,
                     SizeSums{Size{a_.row_ptr, rows_, counts_}, sizes, sums_, size_totals_});
    constexpr std::int64_t kThreadsOfEntries = 32;
    const std::int64_t of_entries = (a_.nnz + kEntries - 1) / kEntries * kThreadsOfEntries;
    const FirstLevel first{a_,          counts_,          before_,    sums_,    place,
                           columns_of_, cluster_rows_,    order,      list_of_, lists_,
                           most_,       told_.arrivals(), &told->most};
    const std::int64_t threads = std::max({rows_, a_.cols, of_entries});
    if (place != nullptr) {
      SPMMBENCH_CUDA(cudaStreamWaitEvent(stream_, sorted_mark_.event()));
      launch_after(place_level, threads, first);
    } else {
      launch(place_level, threads, first);
    }
    told_mark_.set(stream_);
    launch(sort_lists, (a_.cols + kListsOfCta - 1) / kListsOfCta * kThreads,
           Lists{list_of_, lists_, a_.cols, static_cast<std::int32_t>(rows_)});
    level_mark_.set(stream_);
    told_mark_.wait();
    const Most most = told_.read<Told>(sizeof(Most)).most;
    level_ = {columns_of_, a_.col_idx, list_of_, lists_, most.filled};
    most_columns_ = most.columns;
    most_of_list_ = std::min(most.list, match::kMostPlaces);
    return most.filled;
  }

  // The rows nearest to each. `between`: what the host does between two launches.
  template <class Word, class Between>
  void find_with(std::int32_t clusters, const Partners& out, Stream stream,
                 const Between& between) {
    constexpr std::int64_t kWarps = kWarpThreads / 32;
    launch_dependent(find_partners<Word>,
                     dim3(static_cast<unsigned>((clusters + kWarps - 1) / kWarps)),
                     dim3(kWarpThreads), 0, stream, overlap_, level_, out);
    between();
    // None reads more places.
    const std::int64_t places =
        std::min<std::int64_t>(most_columns_ * most_of_list_, match::kMostPlacesOfAll);
    if (places <= most_warp_places(level_.clusters)) return;
    const std::int64_t ctas =
        std::min<std::int64_t>(clusters, kPartnerCtasPerSm<Word> * device_.info().sm_count);
    launch_dependent(find_partners_by_cta<Word>, dim3(static_cast<unsigned>(ctas)),
                     dim3(kCtaThreads), kCtaBytes<Word>, stream, overlap_, level_, out);
  }
  template <class Between>
  void find_rows(std::int32_t clusters, const Partners& out, Stream stream,
                 const Between& between) {
    if (level_.clusters <= kMostOfNarrow) find_with<Narrow>(clusters, out, stream, between);
    else find_with<Wide>(clusters, out, stream, between);
  }

  // Asks a sample of rows whether an order can gain, beside the search for the partners of all,
  // which ends where none can.
  void ask_sample(std::int32_t rows) {
    static_assert(sizeof(Sample) == 4 * sizeof(unsigned long long));
    const Stream stream = stream_beside(device_);
    const auto beside = static_cast<cudaStream_t>(stream.handle);
    SPMMBENCH_CUDA(cudaStreamWaitEvent(beside, level_mark_.event()));
    sample_.step = match::sample_step(rows);
    const std::int32_t sampled = (rows + sample_.step - 1) / sample_.step;
    find_rows(sampled, sample_, stream, [] {});
    launch_dependent(gather_samples, dim3(static_cast<unsigned>(sampled)), dim3(kThreads), 0,
                     stream, overlap_, level_, sample_,
                     NaturalRows{a_.row_ptr, rows_, cluster_rows_},
                     SampleVerdict{told_.arrivals(), stops_, &told_.as<Told>()->stops});
    told_mark_.set(beside);
  }
  // What the sample says. The device goes on meanwhile.
  bool stops() {
    told_mark_.wait();
    return told_.read<Told>(sizeof(Told::stops)).stops != 0;
  }

  // The clusters of a level after the first, and how each ranks others.
  void find_near(int level, std::int32_t clusters, const Suits& suits) {
    const int own = level % 2, before = 1 - own;
    const dim3 ctas(static_cast<unsigned>((clusters + kNearWarps - 1) / kNearWarps)),
        threads(kNearWarps * 32);
    launch_dependent(
        level == 1 ? unite_clusters<true> : unite_clusters<false>, ctas, threads, 0,
        device_.stream(), overlap_,
        Uniting{clusters, joined_, level_, sketches_[before], lengths_[before], sketches_[own],
                lengths_[own], level < match::kLowLevels ? columns_of_low_ + level - 1 : nullptr});
    launch_dependent(
        find_near_clusters, ctas, threads, 0, device_.stream(), overlap_,
        Nearing{clusters, ranks_[before], number_, joined_, sketches_[own], lengths_[own], suits});
  }

  // Joins partners. `left`: where the rows of a cluster go that is left over, `order`: where all
  // others go, or null. `asks`: the columns of the first levels are told to the host.
  void join(int level, const Suits& suits, std::int32_t clusters, std::int32_t rows_of_one,
            std::int32_t* left, std::int32_t* order, bool asks) {
    const Asked all{suits,
                    further_suits(level, suits),
                    clusters,
                    mates_,
                    arrived_ + level,
                    columns_of_low_,
                    asks ? told_.as<Told>()->columns_of_low : nullptr,
                    {totals_, first_left_, cluster_rows_, rows_of_one, number_, joined_, new_rows_,
                     left, order}};
    cudaLaunchAttribute attribute = overlap_attribute();
    if (!overlap_) {
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    const std::int64_t ctas =
        std::min<std::int64_t>((clusters + kJoinClusters - 1) / kJoinClusters, join_ctas_);
    launch_with({&attribute, 1}, join_clusters, dim3(static_cast<unsigned>(ctas)),
                dim3(kJoinThreads), 0, device_.stream(), all);
    if (asks) told_mark_.set(stream_);
    std::swap(cluster_rows_, new_rows_);
  }

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  bool overlap_;
  ToldToHost told_;
  Mark told_mark_, level_mark_, sorted_mark_;
  std::int64_t rows_ = 0;
  Buffer memory_;
  std::size_t bytes_ = 0, zero_bytes_ = 0, sort_bytes_ = 0;
  char* sort_memory_ = nullptr;
  static constexpr std::int64_t kJoinCtasPerSm = 2;  // no more than fit: they wait for each other
  std::int64_t join_ctas_ = 0;
  std::uint64_t* totals_ = nullptr;
  std::int32_t* first_left_ = nullptr;
  Span *columns_of_ = nullptr, *list_of_ = nullptr;  // of rows, and of columns
  std::int32_t *before_ = nullptr, *lists_ = nullptr;
  // The sketches and lengths of two levels.
  uint4* sketches_[2] = {};
  std::int32_t* lengths_[2] = {};
  std::int32_t *cluster_rows_ = nullptr, *new_rows_ = nullptr, *number_ = nullptr;
  std::int32_t *joined_ = nullptr, *mates_ = nullptr;
  std::uint64_t* ranks_[2] = {};  // of two levels
  unsigned long long *best_ = nullptr, *best_of_further_ = nullptr, *taken_ = nullptr;
  std::int32_t* counts_ = nullptr;  // of columns
  unsigned* sums_ = nullptr;        // of Size
  unsigned long long* size_totals_ = nullptr;
  Partners partners_{}, sample_{};
  std::int32_t* stops_ = nullptr;           // what a sample says
  std::int32_t* columns_of_low_ = nullptr;  // of all pairs, and of all clusters of four
  Most* most_ = nullptr;
  unsigned* arrived_ = nullptr;  // at the barriers of each level
  // At most this many columns of a row, and places of a list that are read.
  std::int64_t most_columns_ = 0, most_of_list_ = 0;
  Level level_{};
};

}  // namespace

bool can_match(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  return nnz < INT32_MAX && match::is_filled(static_cast<double>(rows), static_cast<double>(cols),
                                             static_cast<double>(nnz));
}

std::int64_t match_bytes(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  constexpr std::int64_t kWord = sizeof(std::int32_t);
  constexpr std::int64_t kWordsOfEntry = 2;
  constexpr std::int64_t kWordsOfRow = 7,
                         kWordsOfCluster = 15 + 3 * match::kNear + match::kSketchWords * 3 / 4,
                         kWordsOfColumn = 4,
                         kWordsOfSampled = 2 + 2 * match::kNear;  // see lay_out
  return kWord * (kWordsOfEntry * nnz + kWordsOfRow * rows + kWordsOfCluster * std::min(rows, nnz) +
                  kWordsOfColumn * cols + kWordsOfSampled * std::min(rows, kMostSampled));
}

Buffer match_order(const DeviceCsr& a, match::Height height, Device& device) {
  return Matching(a, device).order(height);
}

}  // namespace spmmbench
