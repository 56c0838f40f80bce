// Memory that a build keeps for the process: making it must not disturb what others do on the GPU.

#include "gpu/told_to_host.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "devices.hpp"

namespace spmmbench::test {
namespace {

TEST(ToldToHost, IsMadeWhileAnotherStreamIsCaptured) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  std::vector<std::unique_ptr<ToldToHost>> all;
  for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<ToldToHost>(device));  // some are new
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  for (const auto& told : all) {
    unsigned arrivals = 1;
    device.download(&arrivals, told->arrivals(), sizeof arrivals);
    EXPECT_EQ(arrivals, 0U);
  }
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace spmmbench::test
