#include "spmmbench/stage_timer.hpp"

#include "core/steady_seconds.hpp"

namespace spmmbench {

StageTimer::Scope::Scope(double& total_ms) : total_ms_(&total_ms), start_s_(steady_seconds()) {}

StageTimer::Scope::~Scope() { *total_ms_ += 1e3 * (steady_seconds() - start_s_); }

}  // namespace spmmbench
