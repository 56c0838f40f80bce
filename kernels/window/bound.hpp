#pragma once
// The members of a window-engine plan for one shape: variant, launch, work list and workspace.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/dependent_launch.hpp"
#include "format/tile_work.hpp"
#include "spmmbench/kernel.hpp"
#include "window/device_cut.hpp"
#include "window/launch.hpp"
#include "window/read_windows.hpp"
#include "window/stage.cuh"
#include "window/sum_order.hpp"

namespace spmmbench::window {

// A in windows, as the engine needs it beside the operand itself. It outlives all plans bound to
// it.
struct MatrixView {
  WindowSizes sizes;
  const std::vector<std::int32_t>* window_ptr_host;  // empty: work is cut on the device
  int window_rows;
  const std::int32_t *window_ptr, *col_idx, *row_ids;  // on the device, as in Arguments
  std::int32_t places;
  // As window_ptr, where the host has waited for it: while `window_ptr` is still being written.
  const std::int32_t* first_tile = nullptr;
  MeanLimits limits;    // of the kernel
  bool cached = false;  // as in Arguments
  float scale = 1;      // of A

  std::int64_t tiles() const { return sizes.tiles; }
  std::int64_t windows() const { return sizes.windows; }
};

template <class Variant>
class Bound {
 public:
  // Chooses variant and launch, and cuts the work. `make`: see make_variant.
  template <class Make>
  Bound(const MatrixView& a, const SparseOperand& operand, const Options& options,
        const spmmbench::Shape& shape, Device& device, const Make& make)
      : a_(a),
        n_(shape.n),
        overlap_(kernels_wait()),
        variant_(make_variant(operand.precision, options, shape, a.tiles(), a.windows(),
                              a.window_rows, make)),
        launch_(choose_launch(options, variant_, n_, TileCounts{a.sizes, a.limits},
                              cta_row_bytes(a.tiles() * kTileColumns, operand), device.info())) {
    if (a.window_ptr_host->empty()) {
      const bool is_early = a.first_tile != nullptr;
      on_device_ = cut_windows(is_early ? a.first_tile : a.window_ptr, a.sizes, launch_.cut,
                               is_early, device);
    } else {
      work_ = spmmbench::cut_windows(*a.window_ptr_host, launch_.cut);
      on_device_.size = size_of(work_);
    }
  }

  const Variant& variant() const { return variant_; }
  // Columns of C that are computed, those past the last included.
  std::int64_t features() const { return launch_.feature_tiles() * variant_.features; }
  const LaunchShape& launch_shape() const { return launch_; }
  const WorkSize& work_size() const { return on_device_.size; }
  unsigned ctas() const { return static_cast<unsigned>(work_size().spans / launch_.cut.team); }

  // Of which rows sum_order will be asked.
  void will_ask(const SparseOperand& a, std::span<const std::int64_t> rows, Device& device) {
    std::vector<std::int32_t> wanted;
    for (const std::int64_t row : rows)
      if (const std::int64_t place = place_of(row_of_c(a, row), device); place >= 0)
        wanted.push_back(static_cast<std::int32_t>(place / a_.window_rows));
    read_.read(std::move(wanted), {a_.window_ptr, a_.col_idx, a_.windows()}, device);
    (void)work(device);
  }

  // How a row of the operand is added up, once `upload` has been called; none for a row that the
  // windows do not have. What lies on the device is copied: rows and work at the first call.
  std::optional<SumOrder> sum_order(const SparseOperand& a, std::int64_t row, Device& device) {
    const std::int64_t place = place_of(row_of_c(a, row), device);
    if (place < 0) return std::nullopt;
    const auto window = static_cast<std::int32_t>(place / a_.window_rows);
    std::vector<std::int32_t> alone;
    return window::sum_order(
        *a.a, row, read_.get(window, {a_.window_ptr, a_.col_idx, a_.windows()}, device, alone),
        work(device), {a.precision, launch_.cut.team, arguments_.ordered, variant_.for_vectors()});
  }

  // `ordered` as in Arguments. Does not synchronise.
  void upload(bool ordered, Device& device) {
    if (on_device_.spans.data() == nullptr) {
      on_device_.spans = device.upload(work_.spans);
      on_device_.splits = device.upload(work_.splits);
    }
    workspace_ = make_workspace(work_size(), launch_, variant_.sum_vectors, ordered, device);
    arguments_ = {.spans = on_device_.spans.as<TileSpan>(),
                  .splits = on_device_.splits.as<TileSplit>(),
                  .window_ptr = a_.window_ptr,
                  .col_idx = a_.col_idx,
                  .row_ids = a_.row_ids,
                  .places = a_.places,
                  .windows = static_cast<std::int32_t>(a_.windows()),
                  .b = nullptr,
                  .b_row_bytes = 0,
                  .c = nullptr,
                  .ldc = 0,
                  .n = n_,
                  .cached = a_.cached,
                  .ordered = ordered,
                  .sums = workspace_.sums.as<float>(),
                  .arrivals = workspace_.arrivals.as<unsigned>(),
                  .release_early = release_early(work_size(), launch_)};
  }

  // After `upload`; `more_ctas` as in `launch`. See even_share_bytes. Rows of B that come through
  // the L1 cache need it more.
  void share_evenly(unsigned more_ctas, const DeviceInfo& device) {
    if (!overlap_ || !arguments_.release_early || a_.cached) return;
    launch_.shared_bytes = even_share_bytes(launch_, ctas() + more_ctas, device);
    allow_shared_bytes(variant_.kernel, static_cast<int>(launch_.shared_bytes));
  }

  // `more_ctas` follow those of the work list; `operands`: the kernel's parameters after Arguments.
  template <class... Operands>
  void launch(const DenseView& b, const DenseView& c, Stream stream, unsigned more_ctas,
              Operands&&... operands) const {
    const unsigned all = ctas() + more_ctas;
    if (all == 0) return;
    Arguments in = arguments_;
    in.b = b.data;
    in.b_row_bytes =
        static_cast<std::uint32_t>(b.row_stride() * static_cast<std::int64_t>(bytes_of(b.type)));
    in.c = c.data;
    in.ldc = c.row_stride();
    in.scale = a_.scale * b.scale;
    launch_dependent(variant_.kernel, dim3(all, launch_.feature_tile_groups), launch_.cta(),
                     launch_.shared_bytes, stream, overlap_, in,
                     std::forward<Operands>(operands)...);
  }

  // Adds what is held here, and the values in force.
  void describe(unsigned more_ctas, PlanReport& report) const {
    report.device_bytes +=
        sum_of_bytes(on_device_.spans, on_device_.splits, workspace_.sums, workspace_.arrivals);
    const auto set = [&](const char* key, int value) {
      report.params[key] = fmt::format("{}", value);
    };
    set("window", a_.window_rows);
    if (!variant_.for_vectors()) set("feature_tile", variant_.row_bytes);
    set("warps", launch_.warps);
    set("cta_tiles", launch_.cta_feature_tiles);
    set("span", launch_.cut.span_tiles);
    set("whole", launch_.cut.whole_tiles);
    set("part", launch_.cut.part_tiles);
    report.metrics["blocks"] =
        static_cast<double>(ctas() + more_ctas) * launch_.feature_tile_groups;
    report.metrics["split_windows"] = static_cast<double>(work_size().splits);
    if (a_.cached) report.metrics["rows_through_l1"] = 1;
  }

 private:
  const TileWork& work(Device& device) {
    if (work_.spans.empty() && work_size().spans > 0) {
      work_.spans.resize(work_size().spans);
      device.download(work_.spans.data(), on_device_.spans.data(),
                      work_.spans.size() * sizeof(TileSpan));
    }
    return work_;
  }
  static std::int64_t row_of_c(const SparseOperand& a, std::int64_t row) {
    return a.row_ids.empty() ? row : a.row_ids[row];
  }
  // Of a row of C in the windows; -1 without one.
  std::int64_t place_of(std::int64_t row, Device& device) {
    if (a_.row_ids == nullptr || a_.places == 0) return row < a_.places ? row : -1;
    if (places_.empty()) {
      std::vector<std::int32_t> rows(a_.places);
      device.download(rows.data(), a_.row_ids, rows.size() * sizeof(std::int32_t));
      places_.assign(std::max(0, *std::ranges::max_element(rows)) + 1, -1);
      for (std::int32_t place = 0; place < a_.places; ++place)
        if (rows[place] >= 0) places_[rows[place]] = place;
    }
    return row < std::ssize(places_) ? places_[row] : -1;
  }

  MatrixView a_;
  std::int64_t n_;
  bool overlap_;
  Variant variant_;
  LaunchShape launch_;
  TileWork work_;  // empty where it was cut on the device
  DeviceWork on_device_;
  Workspace workspace_;
  Arguments arguments_{};
  // Once sum_order has asked.
  std::vector<std::int32_t> places_;  // of the rows of C
  ReadWindows read_;
};

}  // namespace spmmbench::window
