#pragma once
// What `auto` may run before it has looked at A. Choosing it has to take a small part of one
// product, so kernels are sought once: the registry reads the names of all.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auto/candidates.hpp"
#include "select/product.hpp"
#include "select/rank.hpp"

namespace spmmbench {

// After less products nothing that has to be prepared pays, nor does comparing what might.
constexpr double kNothingPaysUs = 50;

// The product that needs no preparation.
struct Start {
  Choice choice;
  Candidate candidate;  // its estimate is made without features of A
  Product of_sizes;     // from this
};

// Ours before a vendor's. Empty where none supports the problem.
std::optional<Start> start_of(const SparseOperand& a, const Shape& shape, const DeviceInfo& device);

// What may be chosen by the sizes of A alone, with the start, in any order.
std::vector<Candidate> candidates_by_sizes(const Start& start);
// What is prepared from an A on the device, by its features, in any order.
std::vector<Candidate> candidates_on_device(const Product& product);

// Of `start`, or of one of these candidates; empty where it does not support the problem.
std::optional<Choice> early_choice(const Candidate& candidate, const Start& start,
                                   const SparseOperand& a, const Shape& shape,
                                   const DeviceInfo& device);

}  // namespace spmmbench
