#pragma once

#include <string>

#include "spmmbench/kernel.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

// A kernel with the options asked for.
struct KernelChoice {
  const Kernel* kernel = nullptr;
  Options options;
  KernelInfo info() const { return info_with(kernel->info(), options); }
  std::string label() const { return Spec{kernel->info().name, options}.to_string(); }
};

}  // namespace spmmbench
