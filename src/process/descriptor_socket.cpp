#include "process/descriptor_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr timeval kPatience = {.tv_sec = 20, .tv_usec = 0};

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("a socket of this host: {}: {}", what, strerror(errno)));
}

// A message of one number and one descriptor.
struct Message {
  int number = 0;
  iovec text{&number, sizeof number};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};

  Message() {
    header.msg_iov = &text;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;  // it points into itself
  Message& operator=(const Message&) = delete;
};

}  // namespace

DescriptorSocket::DescriptorSocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un any{};
  any.sun_family = AF_UNIX;
  // With no name given, the system gives one that is no file.
  if (socket_.get() < 0 ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family) != 0)
    fail("bind");
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
}

std::string DescriptorSocket::address() const {
  sockaddr_un own{};
  socklen_t length = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
    fail("getsockname");
  return {reinterpret_cast<const char*>(&own), length};
}

void DescriptorSocket::send(const std::string& address, int number, int descriptor) const {
  sockaddr_un to{};
  if (address.size() > sizeof to) throw Error("this is no address of a socket");
  std::memcpy(&to, address.data(), address.size());
  Message message;
  message.number = number;
  message.header.msg_name = &to;
  message.header.msg_namelen = static_cast<socklen_t>(address.size());
  cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  if (sendmsg(socket_.get(), &message.header, MSG_NOSIGNAL) < 0) fail("sendmsg");
}

std::pair<int, Descriptor> DescriptorSocket::receive() const {
  Message message;
  if (recvmsg(socket_.get(), &message.header, MSG_CMSG_CLOEXEC) != sizeof message.number)
    fail("recvmsg");
  const cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS)
    throw Error("a message without a descriptor");
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  return {message.number, Descriptor(descriptor)};
}

}  // namespace spmmbench
