#pragma once
// The ranks of a product with their devices: what they do alone, what they do at once, and how
// long that takes the slowest of them.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "gpu/transport.hpp"
#include "multi/forecast.hpp"
#include "multi/partition.hpp"
#include "process/group.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/measurement.hpp"
#include "spmmbench/result.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// The case has ended, on all ranks alike.
class CaseEnded : public std::runtime_error {
 public:
  CaseEnded(Status status, const std::string& reason)
      : std::runtime_error(reason), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

class Team {
 public:
  // Opens NCCL, or on the host its stub, and measures the links. Throws CaseEnded where there is no
  // NCCL. Where the split gathers no rows, nothing of that is needed, and NCCL would take memory of
  // the GPU. `group` and `device` outlive the team.
  Team(Group& group, Device& device, Split split);

  Group& group() { return group_; }
  Device& device() { return device_; }
  Transport& transport() { return *transport_; }
  const Link& gather_link() const { return gather_link_; }      // of all_gather
  const Link& exchange_link() const { return exchange_link_; }  // of all_to_all

  // Work of each rank for itself. Throws CaseEnded on all where it fails on one, and RankLost where
  // that one's device is lost.
  void alone(const std::function<void()>& work);
  // Work in which ranks wait for each other. One that fails cannot be waited for: throws RankLost.
  void at_once(const std::function<void()>& work);
  double most(double own);  // of all ranks

  // As timing/sampler.hpp, of all ranks at once: a sample takes as long as on the slowest. Hot
  // launches, transfers too, are replayed from a graph.
  Timing time_hot(const std::function<void()>& launch, const SampleLimits& limits);
  Timing time_cold(const std::function<void()>& launch, const SampleLimits& limits);

 private:
  void measure_links();
  // `time` gives microseconds of this many launches on this rank.
  Timing sample(const std::function<double()>& time, const SampleLimits& limits, int launches,
                bool cold);
  double slowest_us(const std::function<double()>& time, bool cold = false);

  Group& group_;
  Device& device_;
  std::unique_ptr<Transport> transport_;
  Link gather_link_, exchange_link_;
};

}  // namespace spmmbench
