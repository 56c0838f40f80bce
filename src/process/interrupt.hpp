#pragma once
// Ctrl-C: the first asks the run to end after the current sample and keep what it has; the second
// ends the process.

#include <stdexcept>

namespace spmmbench {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

void install_interrupt_handler(bool announce);  // SIGINT and SIGTERM; says on stderr what it does
void poll_interrupt();                          // throws Interrupted once a signal came

}  // namespace spmmbench
