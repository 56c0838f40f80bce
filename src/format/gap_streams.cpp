#include "format/gap_streams.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Gaps = GapStreams;
constexpr int kStreams = Gaps::kLanes * Gaps::kHalves;
constexpr std::int64_t kGroupValues = std::int64_t{Gaps::kGroupBatches} * kStreams * Gaps::kBatch;

// Where an element of a slot lies.
struct Place {
  int stream, word;
};
Place place_of(int row, int col) {
  const int word = row / 2, chunk = (col / 8) ^ (word % 4);
  const int lane = row % 2 * 16 + chunk * 4 + col % 8 / 2;
  return {lane * Gaps::kHalves + col % 2, word};
}
struct Position {
  int row, col;
};
Position position_of(int stream, int word) {
  const int lane = stream / Gaps::kHalves, half = stream % Gaps::kHalves;
  const int chunk = (lane / 4 % 4) ^ (word % 4);
  return {2 * word + lane / 16, chunk * 8 + lane % 4 * 2 + half};
}

struct Entry {
  std::int32_t word;  // of the segment
  std::uint16_t value;
};
using Streams = std::array<std::vector<Entry>, kStreams>;

// Appends an entry, and zeros before it where it is too far from the last.
void append(std::vector<Entry>& stream, std::int32_t word, std::uint16_t value) {
  std::int32_t last = stream.empty() ? 0 : stream.back().word;
  while (word - last > Gaps::kMostGap) {
    last += Gaps::kMostGap;
    stream.push_back({last, 0});
  }
  stream.push_back({word, value});
}

// Zeros to the end of the segment, so that no stream stays behind where it has no more entries.
void append_end(std::vector<Entry>& stream, std::int32_t words) {
  std::int32_t last = stream.empty() ? 0 : stream.back().word;
  while ((last += Gaps::kMostGap) < words) stream.push_back({last, 0});
}

Streams gather(const CsrMatrix& matrix, ElementType type, const Gaps::Range& range) {
  Streams out;
  const std::int64_t first_row = std::int64_t{range.panel} * Gaps::kPanelRows;
  const auto rows =
      static_cast<int>(std::min<std::int64_t>(Gaps::kPanelRows, matrix.rows - first_row));
  std::array<std::int64_t, Gaps::kPanelRows> at{};
  for (int row = 0; row < rows; ++row) {
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[first_row + row];
    const auto end = matrix.col_idx.begin() + matrix.row_ptr[first_row + row + 1];
    at[row] = std::lower_bound(begin, end, std::int64_t{range.first_slot} * Gaps::kSlotCols) -
              matrix.col_idx.begin();
  }
  std::array<std::array<std::uint16_t, Gaps::kSlotWords>, kStreams> values;
  for (int slot = 0; slot < range.slots; ++slot) {
    const std::int64_t first_col = (std::int64_t{range.first_slot} + slot) * Gaps::kSlotCols;
    std::array<std::uint32_t, kStreams> present{};  // a bit per word
    for (int row = 0; row < rows; ++row)
      for (std::int64_t& i = at[row]; i < matrix.row_ptr[first_row + row + 1]; ++i) {
        const std::int64_t col = matrix.col_idx[i] - first_col;
        if (col >= Gaps::kSlotCols) break;
        const Place place = place_of(row, static_cast<int>(col));
        present[place.stream] |= 1U << place.word;
        values[place.stream][place.word] =
            static_cast<std::uint16_t>(encode(type, matrix.values[i]));
      }
    for (int stream = 0; stream < kStreams; ++stream)
      for (std::uint32_t rest = present[stream]; rest != 0; rest &= rest - 1) {
        const int word = std::countr_zero(rest);
        append(out[stream], slot * Gaps::kSlotWords + word, values[stream][word]);
      }
  }
  for (auto& stream : out) append_end(stream, range.slots * Gaps::kSlotWords);
  return out;
}

// One segment, batch after batch.
struct Packed {
  std::vector<Gaps::Group> groups;
  std::vector<std::uint32_t> ends;
};

Packed pack(const Streams& streams, int slots) {
  Packed out;
  std::array<std::size_t, kStreams> next{};
  std::array<Entry, kStreams> last{};  // starts as a zero in word 0
  const auto complete = [&](int slot) {
    for (int s = 0; s < kStreams; ++s)
      if (next[s] < streams[s].size() && streams[s][next[s]].word < (slot + 1) * Gaps::kSlotWords)
        return false;
    return true;
  };
  for (int slot = 0, batch = 0; slot < slots; batch = (batch + 1) % Gaps::kGroupBatches) {
    if (batch == 0) {
      out.groups.emplace_back();
      out.ends.push_back(0);
    }
    Gaps::Group& group = out.groups.back();
    const std::int32_t limit = (slot + Gaps::kOpenSlots) * Gaps::kSlotWords;
    for (int s = 0; s < kStreams; ++s) {
      const int lane = s / Gaps::kHalves, half = s % Gaps::kHalves;
      for (int i = 0; i < Gaps::kBatch; ++i) {
        std::uint32_t gap = 0;
        if (next[s] < streams[s].size() && streams[s][next[s]].word < limit) {
          const Entry entry = streams[s][next[s]++];
          gap = static_cast<std::uint32_t>(entry.word - last[s].word);
          last[s] = entry;
        }
        group.values[batch][lane][half][i] = last[s].value;
        group.gaps[lane][batch] |= gap << (8 * i + 4 * half);
      }
    }
    if ((batch + 1) % Gaps::kEndBatches != 0) continue;
    for (; slot < slots && complete(slot); ++slot) out.ends.back() += 1U << (8 * batch);
  }
  return out;
}

constexpr const char* kName = "gap_streams";

FormatStats count_stats(const GapStreams& sizes, std::int64_t segments, std::int64_t groups,
                        std::int64_t slots) {
  FormatStats out;
  out.name = kName;
  out.stored = groups * kGroupValues;
  out.bytes = groups * std::int64_t{sizeof(Gaps::Group) + sizeof(std::uint32_t)} +
              segments * std::int64_t{sizeof(Gaps::Segment)};
  out.index_bytes = out.bytes - out.stored * std::int64_t{sizeof(std::uint16_t)};
  out.tiles = slots;
  out.windows = Gaps::panels(sizes.rows);
  if (slots == 0) return out;
  const auto entries = static_cast<double>(sizes.nnz), tiles = static_cast<double>(slots);
  out.fill = entries / (tiles * Gaps::kPanelRows * Gaps::kSlotCols);
  out.nnz_per_tile = entries / tiles;
  out.nnz_per_window = entries / static_cast<double>(out.windows);
  out.window_imbalance = 1;
  out.extra["stored_per_nnz"] = static_cast<double>(out.stored) / std::max(entries, 1.0);
  return out;
}

}  // namespace

std::vector<GapStreams::Range> GapStreams::whole_panels(std::int64_t rows, std::int64_t cols) {
  std::vector<Range> out;
  for (std::int64_t panel = 0; panel < panels(rows) && cols > 0; ++panel)
    out.push_back(
        {static_cast<std::int32_t>(panel), 0, static_cast<std::int32_t>(panel_slots(cols))});
  return out;
}

GapStreams GapStreams::build(const CsrMatrix& matrix, ElementType type,
                             const std::vector<Range>& ranges) {
  GapStreams out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.type = type;
  const auto segments = static_cast<std::int64_t>(ranges.size());
  out.segments.resize(ranges.size());
  std::vector<Packed> packed(ranges.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i)
    packed[i] = pack(gather(matrix, type, ranges[i]), ranges[i].slots);
  std::int64_t groups = 0;
  for (std::int64_t i = 0; i < segments; ++i) {
    const auto count = static_cast<std::int32_t>(packed[i].groups.size());
    out.segments[i] = {groups, ranges[i].panel, ranges[i].first_slot, ranges[i].slots, count};
    groups += count;
  }
  const std::int64_t allocated = groups == 0 ? 0 : groups + kGroupsAhead;
  out.groups.resize(allocated);
  out.ends.resize(allocated);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    const std::int64_t first = out.segments[i].first_group;
    std::copy(packed[i].groups.begin(), packed[i].groups.end(), out.groups.begin() + first);
    std::copy(packed[i].ends.begin(), packed[i].ends.end(), out.ends.begin() + first);
    packed[i] = {};
  }
  return out;
}

CsrMatrix GapStreams::unpack() const {
  std::vector<Nonzero> all;
  for (const Segment& segment : segments)
    for (int s = 0; s < kStreams; ++s) {
      // As the kernel does: every entry is written to its word, whatever was there.
      std::vector<std::uint16_t> words(std::size_t(segment.slots) * kSlotWords);
      std::int64_t word = 0;
      int left = segment.slots;
      for (std::int64_t g = segment.first_group; left > 0; ++g)
        for (int batch = 0; batch < kGroupBatches && left > 0; ++batch) {
          for (int i = 0; i < kBatch; ++i) {
            word += groups[g].gaps[s / kHalves][batch] >> (8 * i + 4 * (s % kHalves)) & kMostGap;
            words[word] = groups[g].values[batch][s / kHalves][s % kHalves][i];
          }
          left -= static_cast<int>(ends[g] >> (8 * batch) & 0xFFU);
        }
      for (std::size_t at = 0; at < words.size(); ++at) {
        const float value = decode(type, words[at]);
        if (value == 0) continue;
        const Position p = position_of(s, static_cast<int>(at % kSlotWords));
        const auto slot = static_cast<std::int32_t>(at / kSlotWords);
        all.push_back({segment.panel * kPanelRows + p.row,
                       (segment.first_slot + slot) * kSlotCols + p.col, value});
      }
    }
  return csr_of(rows, cols, std::move(all));
}

FormatStats GapStreams::stats() const {
  std::int64_t count = 0, slots = 0;
  for (const Segment& segment : segments) {
    count += segment.groups;
    slots += segment.slots;
  }
  return count_stats(*this, static_cast<std::int64_t>(segments.size()), count, slots);
}

namespace {

class GapStreamsFormat final : public Format {
 public:
  std::string name() const override { return kName; }
  std::string summary() const override {
    return "16-bit nonzeros and 4-bit gaps in 64 streams per panel of 64 rows (scatter_mma)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const auto ranges = Gaps::whole_panels(matrix.rows, matrix.cols);
    const auto panels = static_cast<std::int64_t>(ranges.size());
    const std::int64_t slots = panels * Gaps::panel_slots(matrix.cols);
    GapStreams sizes;
    sizes.rows = matrix.rows;
    sizes.nnz = matrix.nnz();
    std::int64_t groups = 0;
    if (slots <= kMostSlots) {
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : groups)
      for (std::int64_t i = 0; i < panels; ++i) {
        const Streams streams = gather(matrix, ElementType::f16, ranges[i]);
        groups += static_cast<std::int64_t>(pack(streams, ranges[i].slots).groups.size());
      }
    } else {  // hypersparse: as if streams had nothing but the zeros that bridge gaps
      groups = slots * kStreams * Gaps::kSlotWords / Gaps::kMostGap / kGroupValues;
    }
    return count_stats(sizes, panels, groups, slots);
  }

 private:
  static constexpr std::int64_t kMostSlots = std::int64_t{1} << 17;  // 2048 positions each
};

SPMMBENCH_REGISTER_FORMAT(GapStreamsFormat);

}  // namespace
}  // namespace spmmbench
