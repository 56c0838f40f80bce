// Slot streams built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "../../kernels/gather_mma/device_build.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

using gather_mma::SlotStreams;

template <class T>
void expect_array(Device& device, const Buffer& got, const std::vector<T>& host, const char* what) {
  ASSERT_EQ(got.bytes(), host.size() * sizeof(T)) << what;
  EXPECT_TRUE((downloaded<T>(device, got.data(), host.size()) == host)) << what;
}

// For each row, the rows of the workspace that hold its sums.
std::vector<std::vector<std::int32_t>> parts_of(const SlotStreams& host) {
  std::vector<std::vector<std::int32_t>> out(host.rows);
  for (std::size_t piece = 0; piece < host.pieces.size(); ++piece)
    for (int i = 0; i < SlotStreams::kRows; ++i)
      if (const std::int32_t row = host.slices[host.pieces[piece].slice].rows[i]; row >= 0)
        out[row].push_back(static_cast<std::int32_t>(piece) * SlotStreams::kRows + i);
  return out;
}

// For each row in each chunk, where its sums lie in the block of its band and chunk.
std::vector<std::array<std::uint16_t, 2>> row_parts_of(const SlotStreams& host) {
  std::vector<std::array<std::uint16_t, 2>> out(host.chunks * host.rows);
  for (std::size_t piece = 0; piece < host.pieces.size(); ++piece) {
    const SlotStreams::Slice& slice = host.slices[host.pieces[piece].slice];
    const std::int32_t first_of_block =
        host.ranges[std::size_t(slice.stream) * host.warps].first_piece;
    for (int i = 0; i < SlotStreams::kRows; ++i) {
      if (slice.rows[i] < 0) continue;
      auto& [first, count] = out[slice.stream % host.chunks * host.rows + slice.rows[i]];
      if (count++ == 0)
        first = static_cast<std::uint16_t>(
            (static_cast<std::int32_t>(piece) - first_of_block) * SlotStreams::kRows + i);
    }
  }
  return out;
}

void expect_host_bytes(Device& device, const CsrMatrix& matrix, Precision precision,
                       const SlotStreams::Cut& cut) {
  const SlotStreams host = SlotStreams::build(matrix, storage_type(precision), cut);
  const CsrOnDevice a(matrix, precision, device);
  const gather_mma::DeviceStreams got = gather_mma::build_streams(a.view(), cut, device);
  EXPECT_EQ(got.bands, host.bands);
  EXPECT_EQ(got.chunks, host.chunks);
  EXPECT_EQ(got.band_rows, host.band_rows);
  EXPECT_EQ(got.chunk_cols, host.chunk_cols);
  EXPECT_EQ(got.block_count, std::ssize(host.block_chunk));
  EXPECT_EQ(got.piece_count, std::ssize(host.pieces));
  EXPECT_EQ(got.stats.bytes, host.stats().bytes);
  EXPECT_EQ(got.stats.windows, host.stats().windows);
  EXPECT_EQ(got.stats.window_imbalance, host.stats().window_imbalance);
  expect_array(device, got.block_chunk, host.block_chunk, "block_chunk");
  expect_array(device, got.ranges, host.ranges, "ranges");
  expect_array(device, got.pieces, host.pieces, "pieces");
  expect_array(device, got.words, host.words, "words");
  expect_array(device, got.starts, host.starts, "starts");
  if (host.bands > 1) {
    expect_array(device, got.row_parts, row_parts_of(host), "row_parts");
    return;
  }
  std::vector<std::int32_t> part_ptr = {0}, parts;
  std::int32_t most = 0;
  for (const std::vector<std::int32_t>& of_row : parts_of(host)) {
    parts.insert(parts.end(), of_row.begin(), of_row.end());
    part_ptr.push_back(static_cast<std::int32_t>(parts.size()));
    most = std::max(most, static_cast<std::int32_t>(of_row.size()));
  }
  expect_array(device, got.part_ptr, part_ptr, "part_ptr");
  expect_array(device, got.parts, parts, "parts");
  EXPECT_EQ(got.most_parts, most);
}

// Rows of very different lengths over several chunks, some with gaps longer than a move.
CsrMatrix uneven(std::int64_t rows, std::int64_t cols) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t every = row % 13 == 0 ? 2 : row % 5 == 0 ? 1 << 20 : 3 + row * 37 % 900;
    for (std::int64_t col = row * 7 % 50; col < cols && row % 17 != 3; col += every) {
      m.col_idx.push_back(static_cast<std::int32_t>(col));
      m.values.push_back(uniform_at(4, row, col));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(SlotStreamsDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"uneven", uneven(700, 13'000)});
  shapes.push_back({"one chunk", uneven(90, 4096)});
  for (NamedShape& shape : shapes)
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      CsrMatrix matrix = shape.matrix;
      for (float& value : matrix.values) value = round_to(precision, value);
      if (SlotStreams::least_chunks(matrix.cols) * matrix.rows > 50'000'000) continue;
      for (const int blocks : {1, 132})
        for (const int bands : {1, 5})
          for (const auto& [copies, second_part] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
            SCOPED_TRACE(shape.name + ", blocks " + std::to_string(blocks) + ", bands " +
                         std::to_string(bands) + ", copies " + std::to_string(copies) + ", part " +
                         std::to_string(second_part));
            expect_host_bytes(device, matrix, precision,
                              {.blocks = blocks,
                               .warps = 4,
                               .bands = bands,
                               .chunks = bands - 1,
                               .copies = copies,
                               .second_part = second_part});
          }
    }
}

}  // namespace
}  // namespace spmmbench::test
