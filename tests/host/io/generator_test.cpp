// Every generator: deterministic whatever the thread count, valid, of the declared shape, and
// strict about its options.

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <new>
#include <set>

#include "core/available_memory.hpp"
#include "io/generator_util.hpp"
#include "io/input.hpp"
#include "io_fixtures.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

struct GeneratorCase {
  std::string spec;
  std::int64_t rows, cols;  // 0: whatever the generator makes
};

std::ostream& operator<<(std::ostream& out, const GeneratorCase& c) { return out << c.spec; }

const std::vector<GeneratorCase> kCases = {
    {"uniform?rows=700&cols=300&density=0.02", 700, 300},
    {"uniform?rows=3000&cols=90&nnz_per_row=60", 3000, 90},
    {"uniform?rows=40&cols=50&density=1", 40, 50},
    {"uniform?rows=1&cols=1&density=0", 1, 1},
    {"rmat?scale=11&edge_factor=8", 2048, 2048},
    {"rmat?scale=10&symmetric=1&shuffle=0", 1024, 1024},
    {"banded?rows=3000&bandwidth=9&fill=0.4", 3000, 3000},
    {"banded?rows=1&bandwidth=0", 1, 1},
    {"blocks?rows=1000&cols=700&block_rows=16&block_cols=24&density=0.1&fill=0.5", 1000, 700},
    {"blocks?rows=1000&cols=100&layout=diagonal&fill=0.5", 1000, 100},
    {"powerlaw?rows=4000&mean=9&exponent=2", 4000, 4000},
    {"powerlaw?rows=100&cols=30&mean=4&max_row=30", 100, 30},
    {"block_weights?rows=300&cols=500&block=64&sparsity=0.7", 300, 500},
    {"qwen2.5-7b/ffn_gate?sparsity=0.99", 18944, 3584},
    {"qwen2.5-7b/ffn_up?sparsity=0.99", 18944, 3584},
    {"qwen2.5-7b/ffn_down?block=128&sparsity=0.99", 3584, 18944},
    {"qwen2.5-7b/attn_q?sparsity=0.99", 3584, 3584},
    {"qwen2.5-7b/attn_k?sparsity=0.95", 512, 3584},
    {"qwen2.5-7b/attn_v?sparsity=0.95", 512, 3584},
    {"qwen2.5-7b/attn_o?sparsity=1", 3584, 3584},
    {"qwen2.5-7b/attn_k?zeros=random&sparsity=0.7", 512, 3584},
    {"qwen2.5-7b/attn_k?zeros=magnitude&sparsity=0.7", 512, 3584},
    {"qwen2.5-7b/attn_k?zeros=2:4", 512, 3584},
    {"llama3-70b/ffn_gate?sparsity=0.99&block=128", 28672, 8192},
    {"llama3-70b/ffn_up?sparsity=1", 28672, 8192},
    {"llama3-70b/ffn_down?sparsity=1", 8192, 28672},
    {"llama3-70b/attn_q?sparsity=0.99", 8192, 8192},
    {"llama3-70b/attn_k?sparsity=0.99", 1024, 8192},
    {"llama3-70b/attn_v?sparsity=0.99", 1024, 8192},
    {"llama3-70b/attn_o?sparsity=1", 8192, 8192},
    {"esmm?size=100", 100, 100},
    {"esmm?m=70&k=50&n=130&pattern_a=10101010&pattern_b=11110000", 70, 50},
    {"stencil?points=5&nx=20&ny=30", 600, 600},
    {"stencil?points=7&nx=9", 729, 729},
    {"stencil?points=9&nx=17", 289, 289},
    {"stencil?points=27&nx=5&ny=6&nz=7", 210, 210},
    {"community?vertices=3000&mean=12&shuffle=1", 3000, 3000},
    {"circuit?nodes=3000", 3000, 3000},
    {"fem2d?vertices=2500&dof=2", 5000, 5000},
    {"fem3d?vertices=1500&dof=3&numbering=random", 4500, 4500},
    {"fem3d?vertices=4&holes=0", 4, 4},
};

// Those above, and with its defaults every generator that is not among them.
std::vector<GeneratorCase> all_cases() {
  std::vector<GeneratorCase> cases = kCases;
  std::set<std::string> named;
  for (const GeneratorCase& c : cases) named.insert(Spec::parse(c.spec).name);
  for (const Generator* generator : Registry<Generator>::instance().sorted())
    if (!named.contains(generator->name())) cases.push_back({generator->name(), 0, 0});
  return cases;
}

bool takes_a_seed(const std::string& spec) {
  const std::vector<OptionSpec> options =
      Registry<Generator>::instance().at(Spec::parse(spec).name).options();
  return std::any_of(options.begin(), options.end(),
                     [](const OptionSpec& option) { return option.name == "seed"; });
}

Generated generate_checked(const std::string& text) {
  const Spec spec = Spec::parse(text);
  const Generator& generator = Registry<Generator>::instance().at(spec.name);
  check_options(generator, spec.options);
  return generator.generate(spec.options);
}

class EveryGenerator : public ::testing::TestWithParam<GeneratorCase> {};

TEST_P(EveryGenerator, MakesAValidMatrixOfTheDeclaredShape) {
  const Generated made = generate_checked(GetParam().spec);
  EXPECT_NO_THROW(validate(made.csr));
  if (GetParam().rows > 0) {
    EXPECT_EQ(made.csr.rows, GetParam().rows);
    EXPECT_EQ(made.csr.cols, GetParam().cols);
  }
  if (!made.b.values.empty()) {
    EXPECT_EQ(made.b.rows, made.csr.cols);
    EXPECT_EQ(made.b.values.size(), static_cast<std::size_t>(made.b.rows * made.b.cols));
  }
}

TEST_P(EveryGenerator, DependsOnTheSeedButNotOnTheThreadCount) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const Generated one = generate_checked(GetParam().spec);
  omp_set_num_threads(3);
  const Generated three = generate_checked(GetParam().spec);
  omp_set_num_threads(threads);
  EXPECT_EQ(one.csr, three.csr);
  EXPECT_EQ(one.b, three.b);
  if (!takes_a_seed(GetParam().spec) || one.csr.rows < 50) return;
  if (one.csr.nnz() == 0 || one.csr.nnz() == one.csr.rows * one.csr.cols) return;
  Spec other = Spec::parse(GetParam().spec);
  other.options.set("seed", "2");
  EXPECT_FALSE(one.csr == generate_checked(other.to_string()).csr)
      << other.name << " ignores its option seed: seed=2 makes the same matrix as the default";
}

INSTANTIATE_TEST_SUITE_P(Specs, EveryGenerator, ::testing::ValuesIn(all_cases()));

TEST(Generators, PassOnWhatARowThrowsInAThread) {
  const auto fill = [](std::int64_t row, Columns&) {
    if (row % 1000 == 7) throw std::bad_alloc();
  };
  EXPECT_THROW(pattern_from_rows(5000, 5, fill), std::bad_alloc);
}

TEST(Generators, RefuseWhatTheMemoryDoesNotHold) {
  const auto available = static_cast<double>(available_memory_bytes());
  require_entries(available / 1e4);
  if (available < 0x1p32) EXPECT_THROW(require_entries(available), LacksMemory);
  else if (available < 12 * 0x1p32) EXPECT_THROW(require_entries(0x1p32), LacksMemory);
  else GTEST_SKIP() << "the largest matrix fits";
  const std::string large = "gen:uniform?rows=65536&cols=65536&density=1";
  EXPECT_EQ(expand_inputs({large}), std::vector{large});
  EXPECT_TRUE(
      test::error_of([&] { load_input(large, {}); }).starts_with(large + ": about 4.29e+09"));
}

TEST(Generators, RefuseImpossibleOptions) {
  for (const char* spec : {"uniform?rows=0",
                           "uniform?rows=99999999999",
                           "uniform?density=1.5",
                           "uniform?density=nan",
                           "uniform?density=0.1&nnz_per_row=3",
                           "uniform?cols=10&nnz_per_row=11",
                           "uniform?seed=-1",
                           "uniform?rows=2000000000&cols=2000000000&density=0.5",
                           "rmat?a=0.9&b=0.9",
                           "rmat?scale=31",
                           "stencil?points=27&nx=1200",
                           "banded?rows=10&bandwidth=10",
                           "blocks?layout=round",
                           "powerlaw?rows=10&mean=20",
                           "block_weights?sparsity=1.01",
                           "block_weights?block=0",
                           "llama3-70b/attn_k?zeros=columns",
                           "esmm?pattern=1000000",
                           "esmm?pattern_a=1000000x",
                           "stencil?points=6",
                           "stencil?points=5&nz=3",
                           "stencil?nx=100000&ny=100000",
                           "community?mixing=-0.1",
                           "community?vertices=10&mean=10",
                           "circuit?rails=10&nodes=5",
                           "fem2d?dof=0",
                           "fem3d?vertices=3",
                           "fem3d?numbering=best",
                           "no_such_generator"})
    EXPECT_THROW(generate_checked(spec), Error) << spec;
}

}  // namespace
}  // namespace spmmbench
