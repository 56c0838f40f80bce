#include "io/prune.hpp"

#include <fmt/format.h>

#include <algorithm>
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

struct PruneSpec {
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

std::optional<PruneSpec> parse(std::string_view text) {
  PruneSpec spec;
  if (take(text, "random-block:")) spec.random = true;
  else if (!take(text, "block:")) return {};
  if (!take_number(text, spec.block_rows) || !take(text, "x") ||
      !take_number(text, spec.block_cols) || !take(text, ":") ||
      !take_number(text, spec.zero_fraction) || !text.empty())
    return {};
  const bool in_range = spec.block_rows >= 1 && spec.block_cols >= 1 && spec.zero_fraction >= 0 &&
                        spec.zero_fraction <= 1;
  return in_range ? std::optional(spec) : std::nullopt;
}

}  // namespace

void prune(DenseMatrix& m, std::string_view text, std::uint64_t seed) {
  constexpr std::uint64_t kStreamPrune = 0xC;
  const std::optional<PruneSpec> spec = parse(text);
  if (!spec)
    throw Error(fmt::format(
        "prune {}: expected block:RxC:S or random-block:RxC:S, S the fraction of zero blocks in "
        "[0, 1], as in block:64x64:0.9",
        quote(text)));
  if (m.values.empty()) return;
  const std::int64_t height = std::min(spec->block_rows, m.rows);
  const std::int64_t width = std::min(spec->block_cols, m.cols);
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
    if (spec->random)
      key = uniform_at(stream_seed(seed, kStreamPrune), block / block_cols, block % block_cols);
    else
      for_each_row(block, [&](const float* first, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          key += static_cast<double>(first[i]) * static_cast<double>(first[i]);
      });
    keys[block] = {std::isnan(key) ? std::numeric_limits<double>::infinity() : key, block};
  }
  const auto zeros = std::llround(spec->zero_fraction * static_cast<double>(keys.size()));
  std::nth_element(keys.begin(), keys.begin() + zeros, keys.end());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < zeros; ++i)
    for_each_row(keys[i].second,
                 [](float* first, std::int64_t count) { std::fill_n(first, count, 0.0F); });
}

}  // namespace spmmbench
