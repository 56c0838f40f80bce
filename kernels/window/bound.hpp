#pragma once
// The members of a window-engine plan for one shape: variant, launch, work list and workspace.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/dependent_launch.hpp"
#include "format/tile_work.hpp"
#include "spmmbench/kernel.hpp"
#include "window/device_cut.hpp"
#include "window/launch.hpp"
#include "window/stage.cuh"

namespace spmmbench::window {

// A in windows, as the engine needs it beside the operand itself. It outlives all plans bound to
// it.
struct MatrixView {
  WindowSizes sizes;
  const std::vector<std::int32_t>* window_ptr_host;  // empty: work is cut on the device
  int window_rows;
  const std::int32_t *window_ptr, *col_idx, *row_ids;  // on the device, as in Arguments
  std::int32_t places;
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
      on_device_ = cut_windows(a.window_ptr, a.windows(), launch_.cut, device);
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
  // What was cut on the device is copied at the first call.
  const TileWork& work(Device& device) {
    if (work_.spans.empty() && work_size().spans > 0) {
      work_.spans.resize(work_size().spans);
      work_.splits.resize(work_size().splits);
      device.download(work_.spans.data(), on_device_.spans.data(), on_device_.spans.bytes());
      device.download(work_.splits.data(), on_device_.splits.data(), on_device_.splits.bytes());
    }
    return work_;
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
  MatrixView a_;
  std::int64_t n_;
  bool overlap_;
  Variant variant_;
  LaunchShape launch_;
  TileWork work_;  // empty where it was cut on the device
  DeviceWork on_device_;
  Workspace workspace_;
  Arguments arguments_{};
};

}  // namespace spmmbench::window
