#pragma once
// What `inspect` prints of the documents that it makes of matrices.

#include <nlohmann/json.hpp>

namespace spmmbench {

// Structure, windows of RS-Tile and bytes of formats, with a line of each for every reordering.
void print_inspection(const nlohmann::ordered_json& matrix);

// The mean over the matrices that have nonzeros: others have no ratios.
class MeanInspection {
 public:
  void count(const nlohmann::ordered_json& matrix);
  void print();  // nothing for less than two matrices

 private:
  nlohmann::ordered_json sum_;
  int count_ = 0;
};

}  // namespace spmmbench
