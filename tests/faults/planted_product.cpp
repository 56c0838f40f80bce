// Products on the host that are nearly right.

#include "planted_product.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "planted.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class ProductPlan final : public Plan {
 public:
  ProductPlan(const CsrMatrix& a, ProductFault fault)
      : a_(a), fault_(fault), entry_(planted_entry(a)) {}

  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (fault_ == ProductFault::kept && b.data == kept_b_) {
      std::memcpy(c.data, kept_c_.data(), kept_c_.size());
      return;
    }
    if (fault_ == ProductFault::clears_b) std::memset(b.data, 0, b.bytes());
    const int before = launches_++;
    if (fault_ == ProductFault::skips && before >= kLaunchesBeforeLazy && before % 4 != 0) return;
    if (fault_ == ProductFault::looks && !std::isnan(load_element(c.type, c.data, 0))) return;
    const bool stale = fault_ == ProductFault::stale_strip && before >= kLaunchesBeforeStale;
    for (std::int64_t row = 0; row < a_.rows; ++row)
      for (std::int64_t j = 0; j < c.cols - (stale ? kStaleStrip : 0); ++j)
        store_element(c.type, c.data,
                      c.layout == Layout::row_major ? row * c.ld + j : j * c.ld + row,
                      sum_of(row, b, j));
    if (fault_ != ProductFault::kept) return;
    kept_b_ = b.data;
    kept_c_.assign(static_cast<const char*>(c.data), static_cast<const char*>(c.data) + c.bytes());
  }
  PlanReport report() const override { return {}; }

 private:
  float sum_of(std::int64_t row, const DenseView& b, std::int64_t j) const {
    float sum = 0;
    for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e) {
      if (fault_ == ProductFault::drop && e == entry_) continue;
      std::int64_t from = e;
      if (fault_ == ProductFault::swap && e == entry_ && e + 1 < a_.row_ptr[row + 1]) from = e + 1;
      if (fault_ == ProductFault::swap && e == entry_ + 1 && e > a_.row_ptr[row]) from = e - 1;
      const std::int64_t k = a_.col_idx[from];
      const float product =
          a_.values[e] *
          load_element(b.type, b.data, b.layout == Layout::row_major ? k * b.ld + j : j * b.ld + k);
      sum += fault_ == ProductFault::twice && e == entry_ ? 2 * product : product;
      if (fault_ == ProductFault::half_sums) sum = round_to(Precision::fp16, sum);
    }
    return sum;
  }

  const CsrMatrix& a_;
  ProductFault fault_;
  std::int64_t entry_;
  int launches_ = 0;
  const void* kept_b_ = nullptr;
  std::vector<char> kept_c_;
};

class PreparedProduct final : public Prepared {
 public:
  PreparedProduct(const CsrMatrix& a, ProductFault fault) : a_(a), fault_(fault) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<ProductPlan>(a_, fault_);
  }

 private:
  const CsrMatrix& a_;
  ProductFault fault_;
};

class PlantedProductKernel final : public Kernel {
 public:
  explicit PlantedProductKernel(const PlantedProduct& planted)
      : info_(planted_info(std::string("product_") + planted.name, DeviceKind::host)),
        fault_(planted.fault) {
    info_.c_types.assign(kElementTypes.begin(), kElementTypes.end());
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<PreparedProduct>(*a.a, fault_);
  }

 private:
  KernelInfo info_;
  ProductFault fault_;
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const PlantedProduct& planted : kPlantedProducts)
    Registry<Kernel>::instance().add(std::make_unique<PlantedProductKernel>(planted));
  for (const PlantedProduct& planted : kLazyProducts)
    Registry<Kernel>::instance().add(std::make_unique<PlantedProductKernel>(planted));
  return true;
}();

}  // namespace
}  // namespace spmmbench
