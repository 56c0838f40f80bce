#pragma once
// Passes open files from one process to another of the same host.

#include <string>
#include <utility>

#include "io/output.hpp"

namespace spmmbench {

class DescriptorSocket {
 public:
  DescriptorSocket();  // throws Error

  std::string address() const;  // for those that send

  // Throws Error where nobody of this host listens there.
  void send(const std::string& address, int number, int descriptor) const;
  // What one process has sent. Throws Error where nothing comes in time.
  std::pair<int, Descriptor> receive() const;

 private:
  Descriptor socket_;
};

}  // namespace spmmbench
