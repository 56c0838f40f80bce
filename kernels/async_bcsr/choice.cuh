#pragma once
// The variants of async_bcsr's kernel, its options and the choice among the variants.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async_bcsr/device.cuh"
#include "common/resident_scales.hpp"
#include "core/parse_number.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench::async_bcsr {

constexpr std::int64_t kManyTiles = 16;  // tiles of N from which on one more matters little
// Below this share of nonzeros, pairs of CTAs share too few tiles of A to gain by it, and narrower
// bands of B gain more.
constexpr double kFewNonzeros = 0.125;

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  Precision precision;
  Layout layout_b;
  int tile_n;
  Loader loader;
  bool specialised;
  int cluster;
  Sums sums;
  void (*kernel)(CUtensorMap, CUtensorMap, CUtensorMap, Arguments);
  int threads, stage_bytes, staging_bytes, blocks_per_sm;

  int max_stages(std::size_t shared_per_block) const {
    constexpr int kReserved = 1024;  // by the system, per CTA
    const int block = (static_cast<int>(shared_per_block) + kReserved) / blocks_per_sm - kReserved;
    return std::min((block - shared_bytes(0, staging_bytes, 0)) / stage_bytes, kMaxStages);
  }
};

constexpr Precision precision_of(__half) { return Precision::fp16; }
constexpr Precision precision_of(__nv_bfloat16) { return Precision::bf16; }
constexpr Precision precision_of(ptx::Tf32) { return Precision::tf32; }
constexpr Precision precision_of(__nv_fp8_e4m3) { return Precision::fp8_e4m3; }
constexpr Precision precision_of(__nv_fp8_e5m2) { return Precision::fp8_e5m2; }

template <class S>
Variant variant() {
  return {precision_of(typename S::Input{}),
          S::kLayoutB,
          S::kTileN,
          S::kLoader,
          S::kSpecialised,
          S::kCluster,
          S::kSums,
          kernel<S>,
          S::kThreads,
          S::kStageBytes,
          S::kStagingBytes,
          S::kBlocksPerSm};
}

template <class Input, Layout kLayoutB, Sums kSums = Sums::whole>
void add_shapes(std::vector<Variant>& out) {
  constexpr Loader kTma = Loader::tma;
  out.push_back(variant<Shape<Input, kLayoutB, 64, 1, kTma, true, kSums>>());
  out.push_back(variant<Shape<Input, kLayoutB, 128, 1, kTma, true, kSums>>());
  out.push_back(variant<Shape<Input, kLayoutB, 256, 1, kTma, true, kSums>>());
  out.push_back(variant<Shape<Input, kLayoutB, 256, 2, kTma, true, kSums>>());
}

inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_shapes<__half, Layout::row_major>(out);
    add_shapes<__half, Layout::col_major>(out);
    add_shapes<__nv_bfloat16, Layout::row_major>(out);
    add_shapes<__nv_bfloat16, Layout::col_major>(out);
    add_shapes<ptx::Tf32, Layout::col_major>(out);
    add_shapes<__nv_fp8_e4m3, Layout::col_major>(out);
    add_shapes<__nv_fp8_e4m3, Layout::col_major, Sums::promoted>(out);
    add_shapes<__nv_fp8_e4m3, Layout::col_major, Sums::scaled>(out);
    add_shapes<__nv_fp8_e5m2, Layout::col_major>(out);
    add_shapes<__nv_fp8_e5m2, Layout::col_major, Sums::promoted>(out);
    constexpr Layout kRow = Layout::row_major;
    out.push_back(variant<Shape<__half, kRow, 256, 1, Loader::cp_async, true>>());
    out.push_back(variant<Shape<__half, kRow, 256, 1, Loader::cp_async, false>>());
    out.push_back(variant<Shape<__half, kRow, 256, 1, Loader::tma, false>>());
    return out;
  }();
  return all;
}

// ---- Options -----------------------------------------------------------------------------------

struct Block {
  int rows, cols;
};

constexpr int kMostBlock = 1024;  // rows and columns

// "64" or "128x64"; none for anything else.
inline std::optional<Block> parse_block(const std::string& text) {
  const auto size = [](std::string_view digits) {
    const int value = parse_number<int>(digits).value_or(0);
    return value <= kMostBlock ? value : 0;
  };
  const std::size_t cross = text.find('x');
  const std::string_view all = text;
  const Block block{size(all.substr(0, cross)),
                    size(cross == std::string::npos ? all : all.substr(cross + 1))};
  if (block.rows < 1 || block.cols < 1) return std::nullopt;
  return block;
}

const auto kBlock =
    text_option("block", "64x64",
                {fmt::format("ROWSxCOLUMNS, each from 1 to {}", kMostBlock),
                 [](const std::string& text) { return parse_block(text).has_value(); },
                 {"64", "128x64", "1024x1024"}},
                "stored blocks: multiples of 64x64 (tf32: of 64x32, fp8: of 64x128)");
const auto kTileN = auto_choice_option<int>("tile_n", {"64", "128", "256"}, "columns of C per CTA");
const auto kGroup =
    choice_option("group", "overlap", {"overlap", "consecutive"},
                  "unit rows that share A's steps; overlap: those with most common columns");
const auto kStages = auto_integer_option("stages", 1, kMaxStages, "stages of the ring");
constexpr int kUsualStages = 4;
const auto kGrid =
    choice_option("grid", "persistent", {"persistent", "static"}, "static: one CTA per block of C");
const auto kSwath = auto_integer_option<std::int64_t>(
    "swath", 1, INT32_MAX, "width of the bands of C taken in turn, in cluster * tile_n columns");
const auto kProducer =
    choice_option("producer", "tma", {"tma", "cp_async"}, "instruction that fills the ring");
const auto kSpecialise = flag_option("specialise", true, "0: consumers issue the loads themselves");
const auto kCluster =
    auto_integer_option("cluster", 1, 2, "2: pairs of CTAs share A's tiles by multicast; 1: none");
const auto kPromote = flag_option(
    "promote", true, "0: fp8 sums of a whole row stay in the tensor cores, which keep 14 bits");
const auto kMinFill =
    real_option("min_fill", "0.01", 0, 1, "least share of nonzeros in large blocked matrices");

inline int step_columns(Precision precision) {
  return kLineBytes / static_cast<int>(bytes_of(storage_type(precision)));
}

// The stored blocks. In fp8, where a step is 128 columns, the default has as many.
inline Block block_of(const Options& options, Precision precision) {
  Block block = *parse_block(kBlock(options));
  if (is_scaled(precision)) block.cols = std::max(block.cols, step_columns(precision));
  return block;
}

// B as the kernel reads it: wgmma wants operands of 8 and of 32 bits K-major.
inline Layout kernel_layout(const Problem& problem) {
  return bytes_of(storage_type(problem.precision)) == 2 ? problem.layout : Layout::col_major;
}

inline Sums sums_of(const Problem& problem) {
  if (has_scales_of_blocks(problem)) return Sums::scaled;
  return is_scaled(problem.precision) && kPromote(problem.options) ? Sums::promoted : Sums::whole;
}

// As what a variant has it: scales of blocks are in its sums.
constexpr Precision without_scales(Precision precision) {
  return precision == Precision::fp8_e4m3_block ? Precision::fp8_e4m3 : precision;
}

// Null when there is none.
inline const Variant* find_variant(const Problem& problem, int tile_n, int cluster) {
  const Options& o = problem.options;
  const Loader loader = kProducer(o) == "tma" ? Loader::tma : Loader::cp_async;
  const bool specialised = kSpecialise(o);
  const Sums sums = sums_of(problem);
  for (const Variant& v : variants())
    if (v.precision == without_scales(problem.precision) && v.layout_b == kernel_layout(problem) &&
        v.tile_n == tile_n && v.loader == loader && v.specialised == specialised &&
        v.cluster == cluster && v.sums == sums)
      return &v;
  return nullptr;
}

// The shape asked for, else by N. Null when no variant has the requested combination.
inline const Variant* choose_variant(const Problem& problem) {
  const Options& o = problem.options;
  const int wide = problem.n > 128 ? 256 : problem.n > 64 ? 128 : 64;
  const int tile_n = kTileN(o).value_or(wide);
  if (const auto cluster = kCluster(o)) return find_variant(problem, tile_n, *cluster);
  // A second tile that lies outside of C costs more than the multicast saves.
  const std::int64_t tiles = (problem.n + tile_n - 1) / tile_n;
  const bool few =
      static_cast<double>(problem.nnz()) <
      kFewNonzeros * static_cast<double>(problem.m()) * static_cast<double>(problem.k());
  // With promoted sums a pair takes 4 % longer than single CTAs (50 to 80 % zeros).
  const bool promotes = sums_of(problem) != Sums::whole;
  const Variant* const pairs = !few && !promotes && (tiles % 2 == 0 || tiles >= kManyTiles)
                                   ? find_variant(problem, tile_n, 2)
                                   : nullptr;
  return pairs != nullptr ? pairs : find_variant(problem, tile_n, 1);
}

}  // namespace spmmbench::async_bcsr
