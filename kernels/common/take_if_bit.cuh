#pragma once
// Values of a queue in shared memory, taken where a bit of a word is set: one test, one load and
// one step of the address, all predicated.

#include <cstdint>

namespace spmmbench {

// x = the 16 bits at `from`, which moves on by one * kStep; or both stay as they are. `one` is 1: a
// multiplication runs beside the pipe that tests bits, as long as the compiler cannot know it.
template <int kBit, int kStep>
__device__ inline void take_low_if_bit(std::uint32_t& x, std::uint32_t& from, std::uint32_t word,
                                       std::uint32_t one) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 t;\nand.b32 t, %2, %3;\nsetp.ne.u32 p, t, 0;\n"
      "@p ld.shared.u16 %0, [%1];\n@p mad.lo.u32 %1, %4, %5, %1;\n}\n"
      : "+r"(x), "+r"(from)
      : "r"(word), "n"(1U << kBit), "r"(one), "n"(kStep));
}
// The same, x = the 32 bits at `from`.
template <int kBit, int kStep>
__device__ inline void take_word_if_bit(std::uint32_t& x, std::uint32_t& from, std::uint32_t word,
                                        std::uint32_t one) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 t;\nand.b32 t, %2, %3;\nsetp.ne.u32 p, t, 0;\n"
      "@p ld.shared.u32 %0, [%1];\n@p mad.lo.u32 %1, %4, %5, %1;\n}\n"
      : "+r"(x), "+r"(from)
      : "r"(word), "n"(1U << kBit), "r"(one), "n"(kStep));
}

}  // namespace spmmbench
