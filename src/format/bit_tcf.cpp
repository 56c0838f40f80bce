// BitTCF (Acc-SpMM, PPoPP 2025): 8 x 8 blocks with a 64-bit mask. Only its size is needed, to
// compare formats.

#include "format/window_blocks.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bit_tcf {
namespace {

constexpr std::int64_t kWindowRows = 8;
constexpr std::int64_t kGroupBlocks = 32;  // the largest group of the balanced variant

class BitTcf final : public Format {
 public:
  explicit BitTcf(bool balanced) : balanced_(balanced) {}
  std::string name() const override { return balanced_ ? "bit_tcf_balanced" : "bit_tcf"; }
  std::string summary() const override {
    return balanced_ ? "BitTCF with group offsets and the row window of every block (Acc-SpMM)"
                     : "8x8 blocks, 64-bit mask per block (Acc-SpMM)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const WindowBlocks blocks = count_window_blocks(matrix, kWindowRows);
    std::int64_t bytes = 4 * (blocks.windows + 1)   // row_window_offset
                         + 4 * (blocks.blocks + 1)  // tc_offset
                         + 8 * blocks.blocks        // mask
                         + 4 * 8 * blocks.blocks;   // col
    if (balanced_) {
      const std::int64_t groups = (blocks.blocks + kGroupBlocks - 1) / kGroupBlocks;
      bytes += 4 * blocks.blocks + 4 * (groups + 1);  // row index per block, group offsets
    }
    FormatStats out = block_stats(matrix, blocks, kWindowRows, bytes);
    out.name = name();
    return out;
  }

 private:
  bool balanced_;
};

SPMMBENCH_REGISTER_FORMAT(BitTcf, false);
SPMMBENCH_REGISTER_FORMAT(BitTcf, true);

}  // namespace
}  // namespace spmmbench::bit_tcf
