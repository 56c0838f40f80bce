// Values of a caller, converted on the device.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/given_csr.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

// `count` values from `skipped` values of an allocation on, to a place as far into another one.
void expect_rounded(Device& device, std::int64_t count, std::int64_t skipped) {
  SCOPED_TRACE(count);
  std::vector<float> values(skipped + count);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(uniform_at(5, 0, static_cast<std::int64_t>(i)));
  const Buffer from = device.upload(values);
  const Buffer to = device.allocate(std::max<std::size_t>(values.size(), 1) * sizeof(float));
  device.fill_bytes(to.data(), 0, to.bytes());
  convert_values(from.as<float>() + skipped, ElementType::f32, nullptr, to.as<float>() + skipped,
                 Precision::tf32, count, device.stream());
  device.synchronize();
  const auto got = downloaded<float>(device, to.data(), values.size());
  for (std::int64_t i = 0; i < skipped + count; ++i)
    ASSERT_EQ(got[i], i < skipped ? 0 : round_to(Precision::tf32, values[i])) << i;
}

TEST(GivenValues, AreRoundedWhateverTheirNumberAndTheirAlignment) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const std::int64_t count : {0, 1, 7, 8, 9, 2047, 2048, 2056, 100'003})
    for (const std::int64_t skipped : {0, 1, 4}) expect_rounded(device, count, skipped);
}

TEST(GivenValues, AreNarrowedAndWidened) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kCount = 1003;
  std::vector<float> values(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(uniform_at(6, 0, i));
  const Buffer from = device.upload(values);
  const Buffer half = device.allocate(kCount * sizeof(std::uint16_t));
  const Buffer twice = device.allocate(kCount * sizeof(double));
  convert_values(from.data(), ElementType::f32, nullptr, half.data(), Precision::fp16, kCount,
                 device.stream());
  convert_values(half.data(), ElementType::f16, nullptr, twice.data(), Precision::fp64, kCount,
                 device.stream());
  device.synchronize();
  const auto got = downloaded<double>(device, twice.data(), kCount);
  for (std::int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(got[i], round_to(Precision::fp16, values[i])) << i;
}

// Each number of 16 bits, the middle between it and the next one, and the numbers of fp32 beside
// both: subnormal numbers, infinity and NaN of either sign included.
std::vector<float> hard_to_round(ElementType type) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    const auto number = std::bit_cast<std::uint32_t>(decode(type, bits));
    const std::uint32_t half_apart = type == ElementType::f16 ? 1U << 12 : 1U << 15;
    for (const std::uint32_t at : {number, number + half_apart})
      for (const int aside : {-1, 0, 1}) values.push_back(std::bit_cast<float>(at + aside));
  }
  return values;
}

TEST(GivenValues, HaveTheBitsThatTheHostGivesThem) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const ElementType type = storage_type(precision);
    const std::vector<float> values = hard_to_round(type);
    const auto count = static_cast<std::int64_t>(values.size());
    const Buffer from = device.upload(values);
    const Buffer to = device.allocate(values.size() * sizeof(std::uint16_t));
    convert_values(from.data(), ElementType::f32, nullptr, to.data(), precision, count,
                   device.stream());
    device.synchronize();
    const auto got = downloaded<std::uint16_t>(device, to.data(), values.size());
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(got[i], encode(type, values[i])) << std::bit_cast<std::uint32_t>(values[i]);
  }
}

}  // namespace
}  // namespace spmmbench::test
