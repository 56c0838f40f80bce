#pragma once
// The product of a part while its B is gathered: first the rows of A that need no other part's B,
// then the rest.

#include <cstdint>
#include <memory>

#include "measure/kernel_choice.hpp"
#include "multi/exchange.hpp"
#include "multi/local_product.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

class PartProduct {
 public:
  // The first `inner` rows of `a` refer to the part's own rows of B alone, `own`. With 0 of them,
  // and with all, the product waits for the whole gather. Throws what preparing throws.
  PartProduct(const CsrMatrix& a, std::int64_t inner, const Range& own, Precision precision,
              const KernelChoice& choice, const Shape& shape, Device& device, StageTimer& stages);

  // Enqueues the gather of `b` and its product.
  void launch(Exchange& exchange, const DenseView& b, const DenseView& c);

  std::size_t device_bytes() const;

 private:
  struct Rows {
    Rows(CsrMatrix a, Precision precision, Device& device) : a(std::move(a), precision, device) {}
    LocalA a;
    std::unique_ptr<Prepared> prepared;
    std::unique_ptr<Plan> plan;
  };

  void multiply(Rows& rows, std::int64_t first, const DenseView& b, const DenseView& c);

  Device& device_;
  std::int64_t inner_;
  std::unique_ptr<Rows> own_, rest_;  // the first only where there is something to do meanwhile
};

}  // namespace spmmbench
