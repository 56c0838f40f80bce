#pragma once
// The product of a caller, measured as the program measures a kernel. What is brought is a function
// that launches it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "measure/case_input.hpp"
#include "measure/exact_test.hpp"
#include "measure/operands.hpp"
#include "process/processors.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/verdict.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

using Launch = std::function<void(const DenseView& b, const DenseView& c, Stream stream)>;

struct BroughtProduct {
  std::string name;
  Accumulation accumulation = Accumulation::fp32_fma;
  bool ignores_stream = false;
  Launch launch = {};
  // Copies the C of the last launch to `c`, and fills with NaN the memory that it lay in; null
  // where launches write the C that they are given.
  std::function<void(const DenseView& c, Stream stream)> take_c = {};
  // The same product with other values of A; null where there is none.
  std::function<Launch(const CsrMatrix& a)> with_values = {};
};

// What a product is measured with.
struct BenchSettings {
  std::string matrix;  // A's name
  Precision precision = Precision::fp32;
  Shape shape;
  bool packed = false;  // lines of B and C follow each other without a gap
  std::uint64_t seed = 1;
  SampleLimits limits;
};

// B, C and the reference of one A and one shape on one device, for any number of products. Each has
// B as it was made.
class Bench {
 public:
  // Rounds A's values to the precision. Throws OutOfMemory.
  Bench(CsrMatrix a, BenchSettings settings, std::unique_ptr<Device> device);
  Bench(const Bench&) = delete;  // its reference points into it
  Bench& operator=(const Bench&) = delete;

  ResultRow run(const BroughtProduct& product);

 private:
  ResultRow new_row(const BroughtProduct& product) const;

  Processors processors_;
  BenchSettings settings_;
  MatrixSummary summary_;  // of A as given
  CsrMatrix a_;
  std::unique_ptr<Device> device_;  // before what lies on it
  std::unique_ptr<RowOrders> orders_;
  double compulsory_bytes_;
  Operands operands_;
  std::unique_ptr<ReferenceChecker> reference_;
  std::uint64_t a_checksum_;
  std::shared_ptr<FoundInA> found_ = std::make_shared<FoundInA>();
  std::map<std::pair<bool, int>, ExactOperands> exact_;  // by keeps_a and sum_bits
};

}  // namespace spmmbench
