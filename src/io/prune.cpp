#include "io/prune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "io/file.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

constexpr std::uint64_t kStreamPrune = 0xC;

enum class Unit { value, block, two_of_four };

struct PruneSpec {
  Unit unit = Unit::value;
  bool random = false;
  std::int64_t block_rows = 0, block_cols = 0;
  double zero_fraction = 0;
};

template <class T>
bool take_number(std::string_view& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(end - text.data());
  return true;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<PruneSpec> parse_if_any(std::string_view text) {
  if (text == "2:4") return PruneSpec{Unit::two_of_four};
  PruneSpec spec;
  if (take(text, "random-block:")) spec = {Unit::block, true};
  else if (take(text, "block:")) spec = {Unit::block};
  else if (take(text, "random:")) spec = {Unit::value, true};
  else if (!take(text, "magnitude:")) return {};
  if (spec.unit == Unit::block && (!take_number(text, spec.block_rows) || !take(text, "x") ||
                                   !take_number(text, spec.block_cols) || !take(text, ":") ||
                                   spec.block_rows < 1 || spec.block_cols < 1))
    return {};
  if (!take_number(text, spec.zero_fraction) || !text.empty() ||
      !(spec.zero_fraction >= 0 && spec.zero_fraction <= 1))
    return {};
  return spec;
}

PruneSpec parse(std::string_view text) {
  if (const std::optional<PruneSpec> spec = parse_if_any(text)) return *spec;
  throw Error(
      fmt::format("--prune {}: expected {}, S the fraction of zeros in [0, 1], as in magnitude:0.6",
                  quote(text), kPruneForms));
}

std::int64_t count_of(double fraction, std::size_t all) {
  return std::llround(fraction * static_cast<double>(all));
}

float magnitude(float value) {
  return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::abs(value);
}

// One key of 4 bytes per value, since weights have hundreds of millions of values. Values whose key
// is below a threshold become zero, and of those equal to it the first, until there are enough.
void prune_values(DenseMatrix& m, const PruneSpec& spec, std::uint64_t seed) {
  const std::int64_t zeros = count_of(spec.zero_fraction, m.values.size());
  if (zeros == 0) return;
  const std::uint64_t stream = stream_seed(seed, kStreamPrune);
  const auto key_of = [&](std::int64_t i) {
    return spec.random ? uniform_at(stream, i / m.cols, i % m.cols) : magnitude(m.values[i]);
  };
  const auto count = static_cast<std::int64_t>(m.values.size());
  std::vector<float> keys(count);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) keys[i] = key_of(i);
  std::nth_element(keys.begin(), keys.begin() + (zeros - 1), keys.end());
  const float threshold = keys[zeros - 1];
  std::int64_t at_threshold = zeros - std::count_if(keys.begin(), keys.begin() + zeros,
                                                    [&](float key) { return key < threshold; });
  for (std::int64_t i = 0; i < count; ++i) {
    const float key = key_of(i);
    if (key < threshold || (key == threshold && at_threshold-- > 0)) m.values[i] = 0;
  }
}

void prune_two_of_four(DenseMatrix& m) {
  constexpr std::int64_t kGroup = 4, kKept = 2;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < m.rows; ++row)
    for (std::int64_t col = 0; col < m.cols; col += kGroup) {
      float* const group = m.values.data() + row * m.cols + col;
      const std::int64_t width = std::min(kGroup, m.cols - col);
      std::array<float, kGroup> keys{};
      for (std::int64_t i = 0; i < width; ++i) keys[i] = magnitude(group[i]);
      for (std::int64_t i = 0; i < width; ++i) {
        std::int64_t smaller = 0;
        for (std::int64_t j = 0; j < width; ++j)
          smaller += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
        if (smaller + kKept < width) group[i] = 0;
      }
    }
}

void prune_blocks(DenseMatrix& m, const PruneSpec& spec, std::uint64_t seed) {
  const std::int64_t height = std::min(spec.block_rows, m.rows);
  const std::int64_t width = std::min(spec.block_cols, m.cols);
  const std::int64_t block_rows = (m.rows + height - 1) / height;
  const std::int64_t block_cols = (m.cols + width - 1) / width;
  const auto for_each_row = [&](std::int64_t block, auto body) {  // body(first value, count)
    const std::int64_t row = block / block_cols * height, col = block % block_cols * width;
    for (std::int64_t r = row; r < std::min(row + height, m.rows); ++r)
      body(m.values.data() + r * m.cols + col, std::min(width, m.cols - col));
  };

  // The lowest keys are pruned. A block with a NaN is kept longest.
  std::vector<std::pair<double, std::int64_t>> keys(block_rows * block_cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < std::ssize(keys); ++block) {
    double key = 0;
    if (spec.random)
      key = uniform_at(stream_seed(seed, kStreamPrune), block / block_cols, block % block_cols);
    else
      for_each_row(block, [&](const float* first, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          key += static_cast<double>(first[i]) * static_cast<double>(first[i]);
      });
    keys[block] = {std::isnan(key) ? std::numeric_limits<double>::infinity() : key, block};
  }
  const std::int64_t zeros = count_of(spec.zero_fraction, keys.size());
  std::nth_element(keys.begin(), keys.begin() + zeros, keys.end());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < zeros; ++i)
    for_each_row(keys[i].second,
                 [](float* first, std::int64_t count) { std::fill_n(first, count, 0.0F); });
}

}  // namespace

void prune(DenseMatrix& m, std::string_view text, std::uint64_t seed) {
  const PruneSpec spec = parse(text);
  if (m.values.empty()) return;
  switch (spec.unit) {
    case Unit::value: prune_values(m, spec, seed); break;
    case Unit::two_of_four: prune_two_of_four(m); break;
    case Unit::block: prune_blocks(m, spec, seed); break;
  }
  for (std::size_t i = 0; i < m.values64.size(); ++i)
    if (m.values[i] == 0) m.values64[i] = 0;
}

void check_prune(std::string_view text) { (void)parse(text); }

}  // namespace spmmbench
