#include "multi/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

#include "core/steady_seconds.hpp"
#include "gpu/nccl.hpp"
#include "multi/host_transport.hpp"
#include "process/deadline.hpp"
#include "process/interrupt.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

// How the work of one rank failed. As a text: a digit for the kind, and the reason.
struct Failure {
  enum Kind { none, skipped, failed, wrong, lost } kind = none;
  std::string reason;

  std::string text() const { return std::to_string(static_cast<int>(kind)) + reason; }
};

Failure failure_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Interrupted&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const CaseEnded& ended) {
    return {ended.status() == Status::skipped ? Failure::skipped
            : ended.status() == Status::wrong ? Failure::wrong
                                              : Failure::failed,
            ended.what()};
  } catch (const Unsupported& refusal) {
    return {Failure::skipped, refusal.what()};
  } catch (const DeviceError& error) {
    return {error.device_lost() ? Failure::lost : Failure::failed, error.what()};
  } catch (const std::bad_alloc&) {
    return {Failure::failed, "out of host memory"};
  } catch (const std::exception& error) {
    return {Failure::failed, error.what()};
  }
}

}  // namespace

Team::Team(Group& group, Device& device, Split split) : group_(group), device_(device) {
  const bool by_nccl = gathers_rows(split) && device.info().kind == DeviceKind::cuda;
  std::string id;
  alone([&] {
    if (!by_nccl) return;
    if (const std::string why = why_no_nccl(); !why.empty()) throw Unsupported(why);
    if (group_.rank() == 0) id = new_nccl_id();
  });
  id = group_.exchange(id).front();
  at_once([&] {
    transport_ = by_nccl ? open_nccl(id, group_.rank(), group_.ranks(), device_)
                         : open_host_transport(group_);
    if (gathers_rows(split)) measure_links();
  });
}

void Team::alone(const std::function<void()>& work) {
  const std::vector<std::string> all = group_.exchange(failure_of(work).text());
  Failure worst;
  for (int rank = 0; rank < group_.ranks(); ++rank) {
    const auto kind = static_cast<Failure::Kind>(all[rank].at(0) - '0');
    if (kind > worst.kind)
      worst = {kind, fmt::format("{}: {}", group_.name_of(rank), all[rank].substr(1))};
  }
  switch (worst.kind) {
    case Failure::none: return;
    case Failure::skipped: throw CaseEnded(Status::skipped, worst.reason);
    case Failure::failed: throw CaseEnded(Status::failed, worst.reason);
    case Failure::wrong: throw CaseEnded(Status::wrong, worst.reason);
    case Failure::lost: throw RankLost(worst.reason);
  }
}

void Team::at_once(const std::function<void()>& work) {
  const Failure failure = failure_of(work);
  if (failure.kind == Failure::none) return;
  const std::string line = fmt::format("{}: {}", group_.name_of(group_.rank()), failure.reason);
  // Memory and NCCL are freed after work of the device, which may wait for the other ranks.
  constexpr double kPatience_s = 5;
  set_deadline(kPatience_s, line);
  throw RankLost(line);
}

double Team::most(double own) { return std::ranges::max(group_.exchange(own)); }

double Team::slowest_us(const std::function<double()>& time, bool cold) {
  poll_interrupt();
  double us = 0;
  at_once([&] {
    if (cold) device_.flush_cache();
    transport_->align();
    us = time();
  });
  return most(us);
}

// All ranks stop after the same sample, as they have the same numbers.
Timing Team::sample(const std::function<double()>& time, const SampleLimits& limits, int launches,
                    bool cold) {
  std::vector<double> samples;
  const double start = steady_seconds();
  do samples.push_back(slowest_us(time, cold) / launches);
  while (!limits.enough(samples, most(steady_seconds() - start)));
  return summarise(std::move(samples), launches);
}

Timing Team::time_hot(const std::function<void()>& launch, const SampleLimits& limits) {
  constexpr double kSampleUs = 2000;  // longer than that of one GPU: the ranks do not begin at once
  constexpr int kMostLaunches = 128;
  const auto batch_of = [&](int count) {
    return [&, count] { return device_.time_us(launch, count); };
  };
  slowest_us(batch_of(1));
  slowest_us(batch_of(2));
  constexpr int kFew = 4;
  const double each_us = std::max(slowest_us(batch_of(kFew)) / kFew, 1e-3);
  const int batch = std::clamp(static_cast<int>(std::ceil(kSampleUs / each_us)), 1, kMostLaunches);
  const std::function<double()> time = device_.record(launch, batch);
  slowest_us(time);
  return sample(time, limits, batch, false);
}

Timing Team::time_cold(const std::function<void()>& launch, const SampleLimits& limits) {
  return sample([&] { return device_.time_us(launch, 1); }, limits, 1, true);
}

void Team::measure_links() {
  // Bytes that a rank receives from each other: below what the latency hides, to where only the
  // rate counts. The host's are few, since there only the logic is tested.
  constexpr std::size_t kKib = std::size_t{1} << 10;
  const std::vector<std::size_t> sizes =
      device_.info().kind == DeviceKind::cuda
          ? std::vector{4 * kKib, 128 * kKib, 1024 * kKib, 4096 * kKib, 16384 * kKib, 65536 * kKib}
          : std::vector{4 * kKib, 128 * kKib};
  const SampleLimits limits = {
      .noise = 0.05, .min_samples = 3, .max_samples = 10, .max_seconds = 0.1};
  const int ranks = group_.ranks();
  const Buffer sent = device_.allocate(sizes.back() * ranks);
  const Buffer received = device_.allocate(sizes.back() * ranks);
  device_.fill_bytes(sent.data(), 0, sent.bytes());
  device_.fill_bytes(received.data(), 0, received.bytes());
  const auto blocks = [&](const Buffer& memory, std::size_t bytes) {
    std::vector<Block> all(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != group_.rank()) all[rank] = {memory.as<char>() + rank * bytes, bytes};
    return all;
  };
  std::vector<Link::Point> gather, exchange;
  for (const std::size_t bytes : sizes) {
    const double from_others = static_cast<double>(bytes) * (ranks - 1);
    const std::vector<Block> send = blocks(sent, bytes), receive = blocks(received, bytes);
    gather.push_back(
        {from_others,
         time_hot([&] { transport_->all_gather(received.data(), bytes); }, limits).median_us});
    exchange.push_back(
        {from_others, time_hot([&] { transport_->all_to_all(send, receive); }, limits).median_us});
  }
  gather_link_ = Link(std::move(gather));
  exchange_link_ = Link(std::move(exchange));
}

}  // namespace spmmbench
