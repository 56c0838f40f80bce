#pragma once
// The time of preparation, by stage.

#include <map>
#include <set>
#include <string>

namespace spmmbench {

// Wall-clock milliseconds of preparation, summed by stage name: "build", "upload", "tune", or a
// kernel's own.
class StageTimer {
 public:
  class Scope {
   public:
    explicit Scope(double& total_ms);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    double* total_ms_;
    double start_s_;
  };

  // `auto timed = stages.scope("build");` times until the end of the block. Device work must be
  // synchronised inside the scope for its time to count there.
  [[nodiscard]] Scope scope(const std::string& stage) { return Scope(stages_ms_[stage]); }
  void add(const std::string& stage, double ms) { stages_ms_[stage] += ms; }
  // Adds the time of a part that several users share, such as a row order. It counts once, however
  // often it is added here or by adding another timer that has it.
  void add_once(const std::string& part, const std::string& stage, double ms) {
    if (parts_.emplace(part, Part{stage, ms}).second) stages_ms_[stage] += ms;
  }
  // The result of the stage was kept from an earlier run, whose time the stage has.
  void mark_kept(const std::string& stage) { kept_.insert(stage); }
  const std::set<std::string>& kept() const { return kept_; }
  const std::map<std::string, double>& stages_ms() const { return stages_ms_; }
  double total_ms() const {
    double total = 0;
    for (const auto& [stage, ms] : stages_ms_) total += ms;
    return total;
  }
  // Adds the times of another timer. For a part that several shapes share: it is built once, but
  // each shape reports the time that it would need alone.
  void add(const StageTimer& other) {
    for (const auto& [stage, ms] : other.stages_ms_) stages_ms_[stage] += ms;
    for (const auto& [name, part] : other.parts_)
      if (!parts_.emplace(name, part).second) stages_ms_[part.stage] -= part.ms;
    kept_.insert(other.kept_.begin(), other.kept_.end());
  }

 private:
  struct Part {
    std::string stage;
    double ms;
  };

  std::map<std::string, double> stages_ms_;
  std::map<std::string, Part> parts_;  // by name; stages_ms_ has them too
  std::set<std::string> kept_;         // stages
};

}  // namespace spmmbench
