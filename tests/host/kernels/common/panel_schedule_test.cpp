// How kernels for pruned weights divide their work, without a device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "common/panel_schedule.hpp"

namespace spmmbench {
namespace {

constexpr PanelTiling kTiling = {.warps = 6, .tile_columns = 32, .unit_steps = 4, .piece_units = 2};

struct Case {
  std::int64_t panels, units, columns, blocks;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::int64_t panels : {1, 6, 13, 56, 450})
    for (const std::int64_t units : {1, 2, 9, 148, 700})
      for (const std::int64_t columns : {1, 32, 33, 300})
        for (const std::int64_t blocks : {1, 7, 132, 264})
          out.push_back({panels, units, columns, blocks});
  return out;
}

PanelSchedule schedule_of(const Case& c) {
  return make_panel_schedule(kTiling, c.panels, c.units * kTiling.unit_steps, c.columns, c.blocks);
}

std::int64_t groups_of(const Case& c) { return (c.panels + kTiling.warps - 1) / kTiling.warps; }

// As the device joins the parts of a panel (join_parts): for each counter the parts of its bundle,
// as places in the workspace.
std::vector<std::vector<int>> bundles_of(int parts, int bundle) {
  std::vector<std::vector<int>> out;
  for (int left = parts, tiles = 1; left > 1; left = (left + bundle - 1) / bundle, tiles *= bundle)
    for (int first = 0; first < left; first += bundle) {
      out.emplace_back();
      for (int part = first; part < std::min(first + bundle, left); ++part)
        out.back().push_back(part * tiles);
    }
  return out;
}

TEST(PanelSchedule, EveryStepOfEveryPanelAndTileOfColumnsIsInOnePiece) {
  for (const Case& c : cases()) {
    const PanelSchedule schedule = schedule_of(c);
    std::map<std::pair<int, int>, std::vector<int>> seen;  // of a group and first column: steps
    for (const PanelPiece& piece : schedule.pieces) {
      auto& steps = seen[{piece.first_panel, piece.column}];
      steps.resize(c.units * kTiling.unit_steps);
      for (int i = 0; i < piece.steps; ++i) ++steps.at(piece.first_step + i);
      for (int warp = 0; warp < kTiling.warps; ++warp) {
        const PanelSchedule::Range& range = schedule.ranges.at(piece.first_range + warp);
        EXPECT_EQ(range.panel, piece.first_panel + warp);
        EXPECT_EQ(range.first_step, piece.first_step);
        EXPECT_EQ(range.steps, piece.steps);
      }
    }
    const std::int64_t column_tiles = (c.columns + kTiling.tile_columns - 1) / kTiling.tile_columns;
    EXPECT_EQ(std::ssize(seen), groups_of(c) * column_tiles);
    for (const auto& [place, steps] : seen)
      EXPECT_EQ(std::count(steps.begin(), steps.end(), 1), std::ssize(steps));
    EXPECT_LE(schedule.blocks(), c.blocks);
    EXPECT_EQ(schedule.piece_ptr.back(), std::ssize(schedule.pieces));
  }
}

// The pieces of a block cost the same everywhere, but for the rounding to units and for pieces that
// would be shorter than they cost.
TEST(PanelSchedule, EveryBlockHasTheSameWork) {
  for (const int piece_units : {0, 2}) {
    PanelTiling tiling = kTiling;
    tiling.piece_units = piece_units;
    const PanelSchedule schedule = make_panel_schedule(tiling, 296, 28 * 16, 8, 264);
    EXPECT_EQ(schedule.blocks(), 264);
    int least = 1 << 30, most = 0;
    for (int block = 0; block < schedule.blocks(); ++block) {
      int cost = -piece_units;
      for (int p = schedule.piece_ptr[block]; p < schedule.piece_ptr[block + 1]; ++p)
        cost += piece_units + schedule.pieces[p].steps / tiling.unit_steps;
      least = std::min(least, cost);
      most = std::max(most, cost);
    }
    EXPECT_LE(most - least, 1 + 2 * piece_units);
  }
}

// 74 groups times two tiles of columns are 16 more than 132 blocks: only those are cut.
TEST(PanelSchedule, TheLastRoundOfSeveralTilesOfColumnsIsShared) {
  constexpr int kUnits = 64;
  const PanelSchedule schedule = make_panel_schedule(
      kTiling, 74 * kTiling.warps, kUnits * kTiling.unit_steps, 2 * kTiling.tile_columns, 132);
  for (int block = 0; block < schedule.blocks(); ++block) {
    int units = 0;
    for (int p = schedule.piece_ptr[block]; p < schedule.piece_ptr[block + 1]; ++p)
      units += schedule.pieces[p].steps / kTiling.unit_steps;
    EXPECT_LE(units, kUnits + kUnits / 8);
    EXPECT_LE(schedule.piece_ptr[block + 1] - schedule.piece_ptr[block], 2);
  }
}

// 14 groups times eight tiles fill 112 of 132 blocks once. Seven parts of each would fill six
// rounds to 99 %, but they cost more to join than is gained.
TEST(PanelSchedule, PanelsAreNotCutWherePartsCostMoreToJoinThanIsGained) {
  const auto parts_with = [](int part_units) {
    PanelTiling tiling = kTiling;
    tiling.part_units = part_units;
    return make_panel_schedule(tiling, 14 * tiling.warps, 148 * tiling.unit_steps,
                               8 * tiling.tile_columns, 132)
        .pieces.front()
        .parts;
  };
  EXPECT_EQ(parts_with(0), 7);
  EXPECT_EQ(parts_with(4), 1);
}

TEST(PanelSchedule, NoMoreBlocksThanTheirLeastUnitsAllow) {
  PanelTiling tiling = {.warps = 6, .tile_columns = 32, .unit_steps = 4};
  EXPECT_EQ(make_panel_schedule(tiling, 6, 24 * 4, 8, 264).blocks(), 24 / tiling.least_units);
  tiling.least_units = 8;
  EXPECT_EQ(make_panel_schedule(tiling, 6, 24 * 4, 8, 264).blocks(), 3);
}

TEST(PanelSchedule, ItsSizeIsKnownWithoutIt) {
  for (const Case& c : cases()) {
    const PanelSchedule schedule = schedule_of(c);
    const PanelScheduleSize size =
        panel_schedule_size(kTiling, c.panels, c.units * kTiling.unit_steps, c.columns, c.blocks);
    EXPECT_EQ(size.pieces, std::ssize(schedule.pieces));
    EXPECT_EQ(size.tiles, schedule.tiles);
  }
}

// The same choice, from all numbers of rounds.
TileRounds best_of_all_rounds(const PanelTiling& tiling, std::int64_t groups, std::int64_t units,
                              std::int64_t column_tiles, std::int64_t blocks) {
  TileRounds best{};
  std::int64_t least = INT64_MAX;
  for (std::int64_t rounds = groups * column_tiles / blocks; rounds >= 0; --rounds) {
    const std::int64_t whole = rounds * blocks / column_tiles;
    for (std::int64_t parts = 1; parts <= std::min<std::int64_t>(8, units); ++parts) {
      const std::int64_t pieces = (groups - whole) * column_tiles * parts;
      const std::int64_t join = parts > 1 ? parts * tiling.part_units : 0;
      const std::int64_t of_parts = (units + parts - 1) / parts + 1 + join;
      const std::int64_t cost = rounds * (units + 1) + (pieces + blocks - 1) / blocks * of_parts;
      if (cost >= least) continue;
      least = cost;
      best = {whole, parts};
    }
  }
  return best;
}

TEST(PanelSchedule, TheRoundsAreTheBestOfAll) {
  const auto expect_best = [](const PanelTiling& tiling, std::int64_t groups, std::int64_t units,
                              std::int64_t column_tiles, std::int64_t blocks) {
    const TileRounds chosen = choose_rounds(tiling, groups, units, column_tiles, blocks);
    const TileRounds best = best_of_all_rounds(tiling, groups, units, column_tiles, blocks);
    EXPECT_TRUE(chosen.whole_groups == best.whole_groups && chosen.parts == best.parts)
        << groups << " groups, " << units << " units, " << column_tiles << " tiles, " << blocks
        << " blocks";
  };
  for (const Case& c : cases())
    for (const int part_units : {0, 4}) {
      PanelTiling tiling = kTiling;
      tiling.part_units = part_units;
      expect_best(tiling, groups_of(c), c.units, (c.columns + 31) / 32, c.blocks);
    }
  std::mt19937_64 engine(1);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(1 + engine() % static_cast<std::uint64_t>(most));
  };
  for (int i = 0; i < 5000; ++i) {
    PanelTiling tiling = kTiling;
    tiling.part_units = static_cast<int>(up_to(6)) - 1;
    const std::int64_t groups = up_to(80), units = up_to(200), blocks = up_to(300);
    expect_best(tiling, groups, units, up_to(i % 2 == 0 ? 40 : 2000), blocks);
  }
}

// 24 s if all numbers of rounds were looked at.
TEST(PanelSchedule, TheSizeIsFoundFastWhereThereAreMillionsOfTilesOfColumns) {
  const PanelScheduleSize size = panel_schedule_size(kTiling, 62500, 16 * kTiling.unit_steps,
                                                     (std::int64_t{1} << 31) - 257, 132);
  EXPECT_GE(size.pieces, (std::int64_t{1} << 31) / 32 * (62500 / kTiling.warps));
}

TEST(PanelSchedule, EveryPartHasAPlaceInTheWorkspaceAndACounterOfItsOwn) {
  for (const Case& c : cases()) {
    const PanelSchedule schedule = schedule_of(c);
    std::vector<int> used(schedule.tiles);
    for (const PanelPiece& piece : schedule.pieces)
      for (int warp = 0; piece.parts > 1 && warp < kTiling.warps; ++warp)
        ++used.at(piece.tile + warp * piece.parts + piece.part);
    EXPECT_EQ(std::count(used.begin(), used.end(), 1), schedule.tiles);
  }
}

TEST(ChooseBundle, LevelsOfBundlesAddEveryPartOnceAndFitInTheCounters) {
  for (int parts = 2; parts <= 1000; ++parts) {
    const auto bundles = bundles_of(parts, choose_bundle(parts));
    ASSERT_LT(std::ssize(bundles), parts) << parts;
    std::vector<std::set<int>> sums(parts);  // the parts in the sum at each place
    for (int part = 0; part < parts; ++part) sums[part] = {part};
    for (const auto& places : bundles)
      for (const int place : places) {
        if (place == places.front()) continue;
        EXPECT_GT(place, places.front());
        sums[places.front()].merge(sums[place]);
        EXPECT_TRUE(sums[place].empty()) << parts << ": a part was added twice";
      }
    EXPECT_EQ(std::ssize(sums[0]), parts);
  }
}

TEST(ChooseBundle, FewPartsAreAddedAtOnceAndManyInTwoLevels) {
  for (int parts = 1; parts <= 17; ++parts) EXPECT_EQ(choose_bundle(parts), parts);
  for (int parts = 18; parts <= 36; ++parts) {
    const int of = choose_bundle(parts);
    EXPECT_LT(of, parts);
    EXPECT_GE(of * of, parts) << "more than two levels";
  }
}

}  // namespace
}  // namespace spmmbench
