#pragma once
// The WCSR build on the device: the same bytes as Wcsr::build.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/resident_csr.hpp"
#include "format/tile_work.hpp"
#include "format/wcsr.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "window/device_choice.hpp"

namespace spmmbench {

struct DeviceWcsr {
  Buffer memory;                       // of the three arrays:
  void* values = nullptr;              // [tiles * window_rows * tile_columns], the shape's type
  std::int32_t* window_ptr = nullptr;  // [windows + 1]
  std::int32_t* col_idx = nullptr;     // [tiles * tile_columns]
  // What the device build reads; is freed once it has ended.
  std::unique_ptr<ResidentCsr> csr;
  std::unique_ptr<ToldToHost> told;
  Buffer input;
  const std::int32_t* first_tile = nullptr;  // as window_ptr, and there before it; in `input`
  bool is_under_way() const { return told != nullptr || input.data() != nullptr; }
  void free_input() {
    csr.reset();
    told.reset();
    input = {};
    first_tile = nullptr;
  }
  // Empty where they are more than kMostOnHost: their work is then cut on the device, which takes
  // as long as cutting that many on the host.
  std::vector<std::int32_t> window_ptr_host;
  static constexpr std::int64_t kMostOnHost = 2048;
  WindowSizes sizes;
  std::int64_t gathered = 0;  // distinct columns, summed over the windows
  WcsrShape shape;
  std::int64_t places = 0;  // rows of the windows

  std::int64_t tiles() const { return sizes.tiles; }
  std::int64_t windows() const { return (places + shape.window_rows - 1) / shape.window_rows; }
};

// `row_order` as in Wcsr: empty is natural, and empty rows may lack. The last kernel may still run
// when this returns, so that the caller can work meanwhile. Stages: "upload" for the row order,
// and for the CSR matrix where it is not on the device, and "build". Throws Error beyond 2^31 - 1
// nonzeros, DeviceError otherwise.
DeviceWcsr build_wcsr(const SparseOperand& operand, const WcsrShape& shape,
                      const Permutation& row_order, Device& device, StageTimer& stages);

// The same for a matrix and a row order on the device; `row_of` may be null, and `places` are the
// rows of the order. Stage: "build".
DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::int64_t places, Device& device, StageTimer& stages);
// Where the distinct columns of each window are known, of at most kMostOnHost windows.
DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::span<const std::int32_t> distinct, std::int64_t places, Device& device,
                      StageTimer& stages);

// A build in natural order that goes on from a survey before the host knows what it has counted:
// the device chooses the height. It may turn out to be another than the host's, or not to be
// needed. The matrix and the device outlive it.
class StartedWcsr final : public window::SurveyFollower {
 public:
  StartedWcsr(const DeviceCsr& csr, ElementType value_type, const window::ChoiceRule& rule,
              Device& device);
  ~StartedWcsr() override;

  window::SurveyCounts* counts() override;
  void follow(const window::SurveyGrid& grid, window::SurveyCounts* told) override;
  // Once: nothing where the device has not chosen windows of this many rows. Stage: "build".
  std::optional<DeviceWcsr> finish(int window_rows, StageTimer& stages);

 private:
  struct Started;
  std::unique_ptr<Started> started_;
};

// build_wcsr from the host build. Stages: "build", "upload".
DeviceWcsr upload_wcsr(const CsrMatrix& matrix, const WcsrShape& shape,
                       const Permutation& row_order, Device& device, StageTimer& stages);

}  // namespace spmmbench
