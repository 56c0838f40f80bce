#include "select/kept_orders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

#include "io/sha256.hpp"
#include "select/cache.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr const char* kOrderKind = "order";
constexpr const char* kOrderMs = "ms";
constexpr const char* kOrderRows = "rows";

CacheEntry order_key(const CsrMatrix& matrix, const Spec& order) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return {{"structure", matrix_sha256(matrix, true)},
          {"order", order.to_string()},
          {"host", host.data()},
          {"threads", fmt::format("{}", omp_get_max_threads())},
          {"program", this_program()}};
}

// "2 0 1"; empty where that is no permutation of this many rows.
std::optional<Permutation> parse_rows(const std::string& text, std::int64_t rows) {
  Permutation order;
  order.reserve(rows);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const auto [after, error] = std::from_chars(at, end, order.emplace_back());
    if (error != std::errc()) return std::nullopt;
    at = after == end || *after != ' ' ? after : after + 1;
  }
  try {
    validate_permutation(order, rows);
  } catch (const Error&) {
    return std::nullopt;
  }
  return order;
}

std::optional<Permutation> read_order(const CacheEntry& key, std::int64_t rows, StageTimer& cost) {
  const std::optional<CacheEntry> entry = read_cache(kOrderKind, key);
  if (!entry) return std::nullopt;
  const auto ms = entry->find(kOrderMs), text = entry->find(kOrderRows);
  if (ms != entry->end() && text != entry->end())
    if (const std::optional<double> taken = positive_number(ms->second))
      if (std::optional<Permutation> order = parse_rows(text->second, rows)) {
        cost.add(kReorderStage, *taken);
        cost.mark_kept(kReorderStage);
        return order;
      }
  reject_cache(kOrderKind, key, "expected a row order and the milliseconds that it took");
  return std::nullopt;
}

}  // namespace

Permutation kept_order(const CsrMatrix& matrix, const Spec& order, StageTimer& cost) {
  if (!has_cache_folder()) return compute_order(matrix, order, cost);
  const CacheEntry key = order_key(matrix, order);
  if (std::optional<Permutation> kept = read_order(key, matrix.rows, cost)) return *std::move(kept);
  Permutation computed = compute_order(matrix, order, cost);
  write_cache(kOrderKind, key,
              {{kOrderMs, fmt::format("{}", cost.total_ms())},
               {kOrderRows, fmt::format("{}", fmt::join(computed, " "))}});
  return computed;
}

}  // namespace spmmbench
