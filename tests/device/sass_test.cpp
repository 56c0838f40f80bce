// What the compiler made of the Hopper kernels, read with cuobjdump from this very program. Needs
// no GPU; skips where cuobjdump is missing.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

constexpr const char* kWgmma = "GMMA";  // HGMMA in 16 bits, QGMMA in 8
constexpr const char* kTmaLoad = "UTMALDG";
constexpr const char* kTmaStore = "UTMASTG";
constexpr const char* kTmaMulticast = "UTMALDG.2D.MULTICAST";

// Function -> which of the instructions it has. `mangled_part`: of its name in the program. Only
// those functions are disassembled; all of them would take half a minute.
std::map<std::string, std::set<std::string>> instructions_of(const std::string& mangled_part) {
  std::map<std::string, std::set<std::string>> out;
  const std::string command =
      "exe=/proc/$PPID/exe; { names=$(cuobjdump --dump-resource-usage $exe |"
      " sed -n 's/.*Function \\([^ :]*" +
      mangled_part +
      "[^ :]*\\):.*/\\1/p' | paste -sd ,); cuobjdump --dump-sass --function \"$names\" $exe; }"
      " 2>/dev/null | c++filt";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::set<std::string>* current = nullptr;
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) {
    const std::string line = buffer;
    if (const std::size_t at = line.find("Function : "); at != std::string::npos) {
      current = &out[line.substr(at + 11, line.find('\n') - at - 11)];
    } else if (current != nullptr) {
      for (const char* const instruction : {kWgmma, kTmaLoad, kTmaStore, kTmaMulticast})
        if (line.find(instruction) != std::string::npos) current->insert(instruction);
    }
  }
  return out;
}

TEST(Sass, AsyncBcsrMultipliesWithWgmmaAndCopiesByTma) {
  if (Registry<Kernel>::instance().find("async_bcsr") == nullptr)
    GTEST_SKIP() << "built without code for compute capability 9.0a";
  if (std::system("cuobjdump --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no cuobjdump";
  const auto functions = instructions_of("10async_bcsr6kernel");
  ASSERT_FALSE(functions.empty());
  int with_tma = 0, with_multicast = 0;
  for (const auto& [name, instructions] : functions) {
    EXPECT_TRUE(instructions.contains(kWgmma)) << name;
    EXPECT_TRUE(instructions.contains(kTmaStore)) << name;
    with_tma += instructions.contains(kTmaLoad) ? 1 : 0;
    with_multicast += instructions.contains(kTmaMulticast) ? 1 : 0;
  }
  EXPECT_GT(with_tma, static_cast<int>(functions.size()) / 2);
  EXPECT_LT(with_tma, static_cast<int>(functions.size()))
      << "the variants that load by cp.async have no TMA";
  EXPECT_GT(with_multicast, 0);
}

}  // namespace
}  // namespace spmmbench::test
