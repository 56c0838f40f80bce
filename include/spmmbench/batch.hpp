#pragma once
// Row-major batches C_i = A * B_i: the rows of each member follow those of the one before, so that
// all of B is one matrix of K * members rows, and all of C of M * members.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// Member `at` of all of B or C.
inline DenseView member_of(const DenseView& all, std::int64_t members, std::int64_t at) {
  DenseView view = all;
  view.rows = all.rows / members;
  view.data = static_cast<unsigned char*>(all.data) +
              static_cast<std::size_t>(at * view.rows * view.ld) * bytes_of(view.type);
  return view;
}

// A second base class of the Prepared of kernels that multiply all members in one call. A plan of
// any other kernel is launched once for each member.
class BatchPrepared {
 public:
  virtual ~BatchPrepared() = default;

  // As Prepared::bind, for the shape of one member. Launches of the plan are given all of B and C.
  // Null where it cannot.
  virtual std::unique_ptr<Plan> bind_batch(const Shape& shape, std::int64_t members,
                                           StageTimer& stages) = 0;
};

}  // namespace spmmbench
