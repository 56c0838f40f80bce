#pragma once
// A in the image that the kernel rsh reads, for one order of rows, one height of windows and one
// longest residual row.

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/resident_csr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/upload_values.hpp"
#include "row_order/degree_order.hpp"
#include "row_order/device_orders.hpp"
#include "rsh/device_build.hpp"
#include "rsh/device_partition.hpp"
#include "rsh/format.hpp"
#include "rsh/image.hpp"
#include "rsh/residual.hpp"
#include "spmmbench/reordering.hpp"
#include "window/bound.hpp"
#include "window/choice.hpp"
#include "window/device_build.hpp"

namespace spmmbench::rsh {

// Decoding makes a tile slower than a dense box, so warps share windows sooner than in async_wcsr.
constexpr window::MeanLimits kLimits = {.whole = 7.3, .part = 10};

inline bool is_identity(const std::vector<std::int32_t>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != static_cast<std::int32_t>(i)) return false;
  return true;
}

// A in the kernel's image of one order, height and longest residual row.
struct Matrix {
  // From A on the host. Throws the exceptions of the builds.
  Matrix(const SparseOperand& a, const window::Choice& windows, const Options& format_options,
         Device& device, StageTimer& stages)
      : choice(windows), options(format_options), scale(a.scale()) {
    const ElementType type = storage_type(a.precision);
    RsTile host;
    RsImage image;
    {
      const auto timed = stages.scope("build");
      host = choice.row_order->empty()
                 ? RsTile::build(*a.a, options)
                 : RsTile::build(permute_rows(*a.a, *choice.row_order), options);
      image = RsImage::build(host, type);
    }
    const auto timed = stages.scope("upload");
    window_rows = host.window_rows;
    groups = host.windows.back().group;
    residual_entries = static_cast<std::int64_t>(host.residual_value.size());
    stats = host.stats(static_cast<int>(bytes_of(type)));
    upload(a, host, std::move(image), device);
    device.synchronize();
  }

  // From A on the device; `orders` outlives this. Windows hold rows however far apart they are.
  Matrix(const SparseOperand& a, const window::Choice& windows, const Options& format_options,
         ResidentOrders& orders, Device& device, StageTimer& stages)
      : choice(windows), options(format_options), scale(a.scale()) {
    const DeviceCsr& csr = *a.on_device;
    const Buffer& order = orders.get(csr, choice.order, stages);
    DevicePartition parts;
    {
      const auto timed = stages.scope("build");
      parts = partition_rows(csr, order, RsTile::partition_options(options), device);
    }
    const WcsrShape shape{kWcsrHeights[choice.height_index], RsImage::kTileColumns,
                          storage_type(a.precision)};
    DeviceWcsr boxes =
        build_wcsr(csr, shape, parts.rows.as<std::int32_t>(), parts.row_count, device, stages);
    const auto timed = stages.scope("build");
    DeviceRecords made = build_records(boxes, device);
    window_rows = shape.window_rows;
    groups = made.groups;
    records = std::move(made.records);
    record_ptr = std::move(made.record_ptr);
    const auto copy = [&](const void* from, std::size_t bytes) {
      Buffer to = device.allocate(bytes);
      if (bytes > 0)
        SPMMBENCH_CUDA(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyDeviceToDevice,
                                       static_cast<cudaStream_t>(device.stream().handle)));
      return to;
    };
    window_ptr = copy(boxes.window_ptr, (boxes.windows() + 1) * sizeof(std::int32_t));
    col_idx = copy(boxes.col_idx, boxes.tiles() * shape.tile_columns * sizeof(std::int32_t));
    device.synchronize();  // before the sources go
    places = static_cast<std::int32_t>(parts.row_count);
    take_residual(a, std::move(parts), device);
    describe(a, boxes);
    sizes = boxes.sizes;
    window_ptr_host = std::move(boxes.window_ptr_host);
  }

  window::MatrixView view() const {
    return {.sizes = sizes,
            .window_ptr_host = &window_ptr_host,
            .window_rows = window_rows,
            .window_ptr = window_ptr.as<std::int32_t>(),
            .col_idx = col_idx.as<std::int32_t>(),
            .row_ids = row_ids.as<std::int32_t>(),
            .places = places,
            .limits = kLimits,
            .scale = scale};
  }

  window::Choice choice;
  Options options;  // of the format
  float scale;      // of A
  int window_rows = 0;
  std::int64_t groups = 0;            // of RsTile::kGroupColumns columns
  std::int64_t residual_entries = 0;  // nonzeros of the residual rows
  FormatStats stats;
  WindowSizes sizes;
  std::vector<std::int32_t> window_ptr_host;  // as in DeviceWcsr
  std::int32_t places = 0;                    // rows of the windows
  Buffer window_ptr, col_idx, record_ptr, records, row_ids, residual_rows, residual_cols,
      residual_values;
  Residual residual{};

 private:
  // Rows of A become those of C.
  void take_residual(const SparseOperand& a, DevicePartition parts, Device& device) {
    residual = parts.residual;
    residual_entries = parts.residual_entries;
    row_ids = std::move(parts.rows);
    residual_rows = std::move(parts.residual_rows);
    residual_cols = std::move(parts.residual_cols);
    residual_values = std::move(parts.residual_values);
    if (!a.row_ids.empty()) {
      Buffer of_a = device.upload(a.row_ids);
      const auto of_c = [&](const Buffer& rows, std::int64_t count) {
        return rows_at_places(of_a.as<std::int32_t>(), rows, count, device);
      };
      if (residual.count > 0) residual_rows = of_c(residual_rows, residual.count);
      row_ids = row_ids.data() == nullptr ? std::move(of_a) : of_c(row_ids, places);
    }
    residual.rows = residual_rows.as<std::int32_t>();
    residual.cols = residual_cols.as<std::int32_t>();
    residual.values = residual_values.data();
  }

  // As RsTile::stats.
  void describe(const SparseOperand& a, const DeviceWcsr& boxes) {
    const auto nnz = static_cast<double>(a.nnz() - residual_entries);
    const std::int32_t residual_count = residual.count - residual.first[1];
    const std::int64_t height = window_rows / RsTile::kBlockRows, blocks = groups * height;
    stats.name = "rs_tile";
    stats.index_bytes = static_cast<std::int64_t>(sizeof(RsTile::Window) * (boxes.windows() + 1)) +
                        8 * (a.m() / 64 + 1) + 8 * blocks + 4 * boxes.gathered +
                        4 * residual_count + 4 * residual_entries +
                        static_cast<std::int64_t>(sizeof(RsTile::residual_offset));
    stats.bytes = stats.index_bytes +
                  a.nnz() * static_cast<std::int64_t>(bytes_of(storage_type(a.precision)));
    stats.stored = a.nnz();
    stats.tiles = blocks;
    stats.windows = boxes.windows();
    if (blocks > 0) {
      stats.fill = nnz / static_cast<double>(blocks * RsTile::kBlockRows * RsTile::kGroupColumns);
      stats.nnz_per_tile = nnz / static_cast<double>(blocks);
      stats.nnz_per_window = nnz / static_cast<double>(stats.windows);
      stats.window_imbalance = static_cast<double>(boxes.sizes.longest * stats.windows) /
                               static_cast<double>(boxes.tiles());
    }
    stats.extra["residual_nnz_share"] =
        a.nnz() == 0 ? 0 : static_cast<double>(residual_entries) / static_cast<double>(a.nnz());
    stats.extra["residual_rows"] = residual_count;
    stats.extra["gathered_rows_of_b"] = static_cast<double>(boxes.gathered + residual_entries);
  }

  void upload(const SparseOperand& a, const RsTile& host, RsImage image, Device& device) {
    // Row of the format -> row of C.
    const auto row_of_c = [&](std::int32_t row) {
      if (!choice.row_order->empty()) row = (*choice.row_order)[row];
      return a.row_ids.empty() ? row : a.row_ids[row];
    };
    for (std::int32_t& row : image.row_ids)
      if (row != RsImage::kPadding) row = row_of_c(row);
    std::size_t count = image.row_ids.size();
    while (count > 0 && image.row_ids[count - 1] == RsImage::kPadding) --count;
    places = static_cast<std::int32_t>(count);
    image.row_ids.resize(count);
    if (is_identity(image.row_ids)) image.row_ids.clear();
    window_ptr = device.upload(image.window_ptr);
    col_idx = device.upload(image.col_idx);
    record_ptr = device.upload(image.record_ptr);
    records = device.upload(image.records);
    row_ids = device.upload(image.row_ids);
    upload_residual(storage_type(a.precision), host, row_of_c, device);
    window_ptr_host = std::move(image.window_ptr);
    sizes = sizes_of(window_ptr_host);
  }

  // The residual rows of the format, and before them the rows that are in no part of it, which are
  // empty: C is written there too.
  template <class RowOfC>
  void upload_residual(ElementType type, const RsTile& host, const RowOfC& row_of_c,
                       Device& device) {
    std::vector<std::uint64_t> taken = host.row_bits;
    for (const std::int32_t row : host.residual_row)
      taken[row / 64] |= std::uint64_t{1} << (row % 64);
    std::vector<std::int32_t> rows;
    for (std::int64_t row = 0; row < host.rows; ++row)
      if ((taken[row / 64] >> (row % 64) & 1) == 0) rows.push_back(static_cast<std::int32_t>(row));
    const auto empty = static_cast<std::int32_t>(rows.size());
    rows.insert(rows.end(), host.residual_row.begin(), host.residual_row.end());
    for (std::int32_t& row : rows) row = row_of_c(row);
    for (int length = 1; length <= Residual::kLengths; ++length)
      residual.first[length] = empty + host.residual_offset[length];
    for (int length = 1; length < Residual::kLengths; ++length)
      residual.entry[length] = static_cast<std::int32_t>(host.residual_start(length));
    residual_rows = device.upload(rows);
    residual_cols = device.upload(host.residual_col);
    residual_values = upload_values(device, host.residual_value, type);
    residual.rows = residual_rows.as<std::int32_t>();
    residual.cols = residual_cols.as<std::int32_t>();
    residual.values = residual_values.data();
    residual.count = static_cast<std::int32_t>(rows.size());
  }
};

}  // namespace spmmbench::rsh
