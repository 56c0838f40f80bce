// ME-TCF (DTC-SpMM, ASPLOS 2024): 16 x 8 blocks with an 8-bit place per nonzero. Only its size is
// needed, to compare formats.

#include "format/window_blocks.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::me_tcf {
namespace {

constexpr std::int64_t kWindowRows = 16;

class MeTcf final : public Format {
 public:
  explicit MeTcf(bool balanced) : balanced_(balanced) {}
  std::string name() const override { return balanced_ ? "me_tcf_balanced" : "me_tcf"; }
  std::string summary() const override {
    return balanced_ ? "ME-TCF with the row window of every block (DTC-SpMM, load-balanced)"
                     : "16x8 blocks, 8-bit place per nonzero (DTC-SpMM)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const WindowBlocks blocks = count_window_blocks(matrix, kWindowRows);
    std::int64_t bytes = 4 * (blocks.windows + 1)   // row_window_offset
                         + 4 * (blocks.blocks + 1)  // tc_offset
                         + matrix.nnz()             // local_id
                         + 4 * 8 * blocks.blocks;   // col
    if (balanced_) bytes += 4 * blocks.blocks;      // block_row
    FormatStats out = block_stats(matrix, blocks, kWindowRows, bytes);
    out.name = name();
    return out;
  }

 private:
  bool balanced_;
};

SPMMBENCH_REGISTER_FORMAT(MeTcf, false);
SPMMBENCH_REGISTER_FORMAT(MeTcf, true);

}  // namespace
}  // namespace spmmbench::me_tcf
