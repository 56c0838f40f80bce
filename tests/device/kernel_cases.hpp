#pragma once
// What kernels_test.cpp runs: every kernel of the registry, and options that choose other device
// code.

#include <iosfwd>
#include <string>
#include <vector>

#include "spmmbench/kernel.hpp"

namespace spmmbench::test {

struct Case {
  const Kernel* kernel;
  Precision precision;
  Layout layout;
  ElementType c_type;
  Options options = {};
};

// Every precision, layout and C type that a kernel declares, and at every precision the variants,
// whose options choose other device code than the defaults do. A kernel that the build lacks is
// passed over.
std::vector<Case> all_cases();

// csr_row_split__fp16__row__c_fp32 or csr_row_split__fp16__row__c_fp32__split_1: two underscores
// end the kernel's name in a filter.
std::string name_of(const Case& c);

void PrintTo(const Case& c, std::ostream* out);  // found by GoogleTest

}  // namespace spmmbench::test
