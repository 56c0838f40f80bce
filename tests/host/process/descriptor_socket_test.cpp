#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "process/descriptor_socket.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

TEST(DescriptorSocket, WhatIsSentIsTheSameFile) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  const DescriptorSocket from, to;
  from.send(to.address(), 7, write_end.get());
  const auto [number, received] = to.receive();
  EXPECT_EQ(number, 7);
  EXPECT_NE(received.get(), write_end.get());
  ASSERT_EQ(write(received.get(), "x", 1), 1);
  char got = 0;
  ASSERT_EQ(read(read_end.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
}

TEST(DescriptorSocket, NobodyThereIsAnError) {
  std::string address;
  {
    const DescriptorSocket gone;
    address = gone.address();
  }
  const DescriptorSocket from;
  EXPECT_THROW(from.send(address, 0, STDIN_FILENO), Error);
}

}  // namespace
}  // namespace spmmbench
