#pragma once

#include <cstdint>

#include "gpu/rows_of_b.hpp"

namespace spmmbench {

// What cuda_fill_rows does, on any device.
void fill_rows(const DenseView& view, const std::int32_t* rows, const ValuesOfB& values,
               Device& device);

}  // namespace spmmbench
