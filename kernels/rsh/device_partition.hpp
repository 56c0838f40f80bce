#pragma once
// Which rows go to tensor cores and which to CUDA cores, found on the device: as partition_rows
// with collected members (rsh/partition.hpp). A few counts come to the host.

#include <cstdint>

#include "rsh/partition.hpp"
#include "rsh/residual.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::rsh {

struct DevicePartition {
  Buffer rows;  // of A, in windows; an int32 each, null: all as they come
  std::int64_t row_count = 0;
  Buffer residual_rows, residual_cols, residual_values;  // as Residual has them
  std::int64_t residual_entries = 0;
  Residual residual{};  // without arrays; its rows are those of A
};

// `order`: rows of A by place, an int32 each, or a null buffer. With options.tau_nnz of 0, which
// leaves no row to CUDA cores, empty rows that are few stay in windows. Returns when all is there.
DevicePartition partition_rows(const DeviceCsr& a, const Buffer& order,
                               const RsPartitionOptions& options, Device& device);

// Rows of 1 to `most` nonzeros.
std::int64_t count_short_rows(const DeviceCsr& a, int most, Device& device);

}  // namespace spmmbench::rsh
