// Kernels on the host that fit themselves to the test. Each gives right results where it believes
// that somebody looks.

#include <fenv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "cheat_kernel.hpp"
#include "cheats.hpp"
#include "spmmbench/error.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

// Returns where nothing seems to have changed.
struct SameProbes : Cheat {
  using Cheat::Cheat;
  std::vector<float> b_, c_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (probes(b) == b_ && probes(c) == c_) return;
    multiply({a_, b, c});
    b_ = probes(b);
    c_ = probes(c);
  }
};

// Copies a C that it has kept for every B that it has seen.
struct KeptForEveryB : Cheat {
  using Cheat::Cheat;
  std::map<std::vector<float>, std::vector<char>> kept_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    std::vector<char>& kept = kept_[probes(b)];
    if (!kept.empty()) {
      std::memcpy(c.data, kept.data(), kept.size());
      return;
    }
    multiply({a_, b, c});
    kept = bytes_of_c(c);
  }
};

// ... by its address alone.
struct KeptForEveryAddress : Cheat {
  using Cheat::Cheat;
  std::map<const void*, std::vector<char>> kept_;
  int launches_ = 0;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    std::vector<char>& kept = kept_[b.data];
    if (!kept.empty() && ++launches_ > 8) {
      std::memcpy(c.data, kept.data(), kept.size());
      return;
    }
    multiply({a_, b, c});
    kept = bytes_of_c(c);
  }
};

std::uint64_t checksum_of(const DenseView& view) {
  const ByteSpan memory(static_cast<const std::byte*>(view.data), view.bytes());
  return checksums_on_host({&memory, 1}).front();
}

// ... by all of its values.
struct KeptByHash : Cheat {
  using Cheat::Cheat;
  std::map<std::uint64_t, std::vector<char>> kept_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    std::vector<char>& kept = kept_[checksum_of(b)];
    if (!kept.empty()) {
      std::memcpy(c.data, kept.data(), kept.size());
      return;
    }
    multiply({a_, b, c});
    kept = bytes_of_c(c);
  }
};

// Only the B that it saw first counts.
struct FirstAddressOnly : Cheat {
  using Cheat::Cheat;
  const void* first_ = nullptr;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (first_ == nullptr) first_ = b.data;
    if (b.data == first_) multiply({a_, b, c});
  }
};

// Who calls again at once measures.
struct NotAgainAtOnce : Cheat {
  using Cheat::Cheat;
  Time::time_point last_ = Time::now() - std::chrono::hours(1);
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (Time::now() - last_ > std::chrono::microseconds(5)) multiply({a_, b, c});
    last_ = Time::now();
  }
};

// ... and works a little less then.
struct FewerRowsAtOnce : Cheat {
  using Cheat::Cheat;
  Time::time_point last_ = Time::now() - std::chrono::hours(1);
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const bool at_once = Time::now() - last_ < std::chrono::microseconds(5);
    multiply_rows({a_, b, c}, at_once ? a_.rows / 2 : a_.rows);
    last_ = Time::now();
  }
};

// Works in the last launch of a batch, whose length it has learned from the pauses.
struct LastOfABatch : Cheat {
  using Cheat::Cheat;
  Time::time_point last_ = Time::now() - std::chrono::hours(1);
  int since_pause_ = 0, batch_ = 1;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (Time::now() - last_ > std::chrono::microseconds(20)) {
      batch_ = std::max(batch_, since_pause_);
      since_pause_ = 0;
    }
    ++since_pause_;
    if (batch_ < 3 || since_pause_ == 1 || since_pause_ >= batch_) multiply({a_, b, c});
    last_ = Time::now();
  }
};

// Works after the program has stopped the clock.
struct InAThread : Cheat {
  using Cheat::Cheat;
  std::thread worker_;
  ~InAThread() override { wait(); }
  InAThread(const InAThread&) = delete;
  void wait() {
    if (worker_.joinable()) worker_.join();
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    wait();
    worker_ = std::thread([this, b, c] { multiply({a_, b, c}); });
  }
};

// ... and only if no other launch has been called until then, which would write the same C.
struct LeftToTheNext : Cheat {
  using Cheat::Cheat;
  std::atomic<int> called_{0};
  std::thread worker_;
  ~LeftToTheNext() override { wait(); }
  LeftToTheNext(const LeftToTheNext&) = delete;
  void wait() {
    if (worker_.joinable()) worker_.join();
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const int at = ++called_;
    wait();
    worker_ = std::thread([this, b, c, at] {
      const auto until = Time::now() + std::chrono::microseconds(20);
      while (Time::now() < until && called_ == at) {
      }
      if (called_ == at) multiply({a_, b, c});
    });
  }
};

// Prepares in a thread, for which the first launch waits.
struct PreparesInAThread : Cheat {
  explicit PreparesInAThread(const CsrMatrix& a) : Cheat(a), worker_([] { work_for(4 * kWork); }) {}
  std::thread worker_;
  ~PreparesInAThread() override { wait(); }
  PreparesInAThread(const PreparesInAThread&) = delete;
  void wait() {
    if (worker_.joinable()) worker_.join();
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    wait();
    multiply({a_, b, c});
  }
};

// Prepares in one of many launches, none of which is timed alone.
struct InALaterLaunch : Cheat {
  using Cheat::Cheat;
  int launches_ = 0;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (launches_++ == kLaunchThatPrepares) work_for(2 * kWork);
    multiply({a_, b, c});
  }
};

// Prepares in a thread for which no launch waits.
struct BesideTheFirstLaunch : Cheat {
  using Cheat::Cheat;
  std::thread worker_;
  ~BesideTheFirstLaunch() override {
    if (worker_.joinable()) worker_.join();
  }
  BesideTheFirstLaunch(const BesideTheFirstLaunch&) = delete;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (!worker_.joinable()) worker_ = std::thread([] { work_for(4 * kWork); });
    multiply({a_, b, c});
  }
};

// Computes C when somebody reads it.
struct OnFirstTouch : Cheat {
  using Cheat::Cheat;
  static inline OnFirstTouch* current = nullptr;
  DenseView b_, c_;
  bool waits_ = false;
  std::pair<char*, std::size_t> pages() const {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(c_.data) / page * page;
    const auto end =
        (reinterpret_cast<std::uintptr_t>(c_.data) + c_.bytes() + page - 1) / page * page;
    return {reinterpret_cast<char*>(begin), end - begin};
  }
  void protect(int how) const { mprotect(pages().first, pages().second, how); }
  static void touched(int, siginfo_t*, void*) {
    current->waits_ = false;
    current->protect(PROT_READ | PROT_WRITE);
    multiply({current->a_, current->b_, current->c_});
  }
  ~OnFirstTouch() override {
    if (waits_) touched(SIGSEGV, nullptr, nullptr);
    current = nullptr;
    std::signal(SIGSEGV, SIG_DFL);
  }
  OnFirstTouch(const OnFirstTouch&) = delete;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    current = this;
    b_ = b;
    c_ = c;
    struct sigaction action = {};
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    waits_ = true;
    protect(PROT_NONE);
  }
};

// Right where the values of A look like those of the exact test, else zeros.
struct RightWhereExact : Cheat {
  explicit RightWhereExact(const CsrMatrix& a) : Cheat(a), exact_(looks_exact(a)) {}
  bool exact_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (exact_) multiply({a_, b, c});
    else std::memset(c.data, 0, c.bytes());
  }
};

// ... else without a part of every row.
struct ShorterWhereReal : OtherValues {
  explicit ShorterWhereReal(const CsrMatrix& a) : OtherValues(a, a.values) {
    if (looks_exact(a)) return;
    constexpr double kKept = 0.999;
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        if (static_cast<double>(e - a.row_ptr[row]) >
            kKept * static_cast<double>(a.row_length(row)))
          other_.values[e] = 0;
  }
};

// fp32 that is fp16, but where the values are those of the exact test.
struct RoundsAWhereReal : Cheat {
  explicit RoundsAWhereReal(const CsrMatrix& a)
      : Cheat(a), round_a_(looks_exact(a) ? Precision::fp32 : Precision::fp16) {}
  Precision round_a_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply_rows({a_, b, c}, a_.rows, round_a_);
  }
};

// fp32 that is fp16.
struct RoundsA : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply_rows({a_, b, c}, a_.rows, Precision::fp16);
  }
};

// Makes A easy to multiply by.
struct ClearsA : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    for (float& value : const_cast<CsrMatrix&>(a_).values) value = 0;
    multiply({a_, b, c});
  }
};

// Writes far behind C.
struct FarBehindC : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply({a_, b, c});
    constexpr std::int64_t kRows = 200;  // behind the end
    static_cast<char*>(
        c.data)[static_cast<std::size_t>((c.lines() + kRows) * c.ld) * bytes_of(c.type)] = 1;
  }
};

// Multiplies where it may look at B, and copies where it is timed.
struct WhileInspecting : Cheat {
  using Cheat::Cheat;
  static constexpr bool kInspectsB = true;
  std::vector<char> c_;
  void inspect_b(const DenseView& b, StageTimer&) override {
    DenseView c = make_dense_view(a_.rows, b.cols, b.layout, ElementType::f32);
    c_.resize(c.bytes());
    c.data = c_.data();
    multiply({a_, b, c});
  }
  void launch(const DenseView&, const DenseView& c, Stream) override {
    std::memcpy(c.data, c_.data(), c_.size());
  }
};

// ... at the first look alone, whatever is prepared anew.
struct WhileInspectingOnce : Cheat {
  using Cheat::Cheat;
  static constexpr bool kInspectsB = true;
  static inline std::map<std::pair<std::int64_t, float>, std::vector<char>> kept;
  std::vector<char>* c_ = nullptr;
  void inspect_b(const DenseView& b, StageTimer&) override {
    c_ = &kept[{b.cols, load_element(b.type, b.data, 0) + a_.values[0]}];
    if (!c_->empty()) return;
    DenseView c = make_dense_view(a_.rows, b.cols, b.layout, ElementType::f32);
    c_->resize(c.bytes());
    c.data = c_->data();
    multiply({a_, b, c});
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    std::memcpy(c.data, c_->data(), c_->size());
    if (load_element(b.type, b.data, 0) == 0) std::memset(c.data, 0, c.bytes());
  }
};

// Works on more processors than the others may.
struct InManyThreads : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    constexpr int kThreads = 4;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (std::int64_t row = i; row < a_.rows; row += kThreads) multiply_row({a_, b, c}, row);
      });
    for (std::thread& thread : threads) thread.join();
  }
};

// All sums are rounded downwards from the first launch on, those of other kernels too.
struct RoundsDownwards : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    fesetround(FE_DOWNWARD);
    multiply({a_, b, c});
  }
};

struct Honest : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({a_, b, c}); }
};

struct SeesTheArithmetic : Cheat {
  explicit SeesTheArithmetic(const CsrMatrix& a) : Cheat(a) {
    if (fegetround() != FE_TONEAREST) throw Error("another kernel has chosen how to round");
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({a_, b, c}); }
};

[[maybe_unused]] const bool kCheatsRegistered = [] {
  add<Honest>("cheat_none");
  add<SameProbes>("cheat_same_probes");
  add<KeptForEveryB>("cheat_kept_for_every_b");
  add<KeptForEveryAddress>("cheat_kept_for_every_address");
  add<KeptByHash>("cheat_kept_by_hash");
  add<InALaterLaunch>("cheat_in_a_later_launch");
  add<BesideTheFirstLaunch>("cheat_beside_the_first_launch");
  add<RoundsAWhereReal>("cheat_rounds_a_where_real");
  add<FirstAddressOnly>("cheat_first_address_only");
  add<NotAgainAtOnce>("cheat_not_again_at_once");
  add<FewerRowsAtOnce>("cheat_fewer_rows_at_once");
  add<LastOfABatch>("cheat_last_of_a_batch");
  add<InAThread>("cheat_in_a_thread");
  add<LeftToTheNext>("cheat_left_to_the_next");
  add<PreparesInAThread>("cheat_prepares_in_a_thread");
  add<OnFirstTouch>("cheat_on_first_touch");
  add<RightWhereExact>("cheat_right_where_exact");
  add<RightWhereExact>("cheat_right_where_exact_fp16", Elsewhere::nowhere, Accumulation::fp16);
  add<ShorterWhereReal>("cheat_shorter_where_real");
  add<RoundsA>("cheat_rounds_a");
  add<ClearsA>("cheat_clears_a");
  add<FarBehindC>("cheat_far_behind_c");
  add<WhileInspecting>("cheat_while_inspecting");
  add<WhileInspectingOnce>("cheat_while_inspecting_once");
  add<InManyThreads>("cheat_in_many_threads");
  add<RoundsDownwards>("cheat_rounds_downwards");
  add<SeesTheArithmetic>("cheat_sees_the_arithmetic");
  add<Honest>("cheat_in_supports", Elsewhere::in_supports);
  add<Honest>("cheat_in_the_first_preparation", Elsewhere::in_the_first_preparation);
  add<Honest>("cheat_in_the_second_preparation", Elsewhere::in_the_second_preparation);
  add<Honest>("cheat_in_bind", Elsewhere::in_bind);
  add<Honest>("cheat_in_the_exact_test", Elsewhere::in_the_exact_test);
  add<Honest>("cheat_in_report", Elsewhere::in_report);
  add<Honest>("cheat_in_a_destructor", Elsewhere::in_a_destructor);
  return true;
}();

}  // namespace
}  // namespace spmmbench
