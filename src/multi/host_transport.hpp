#pragma once
// The transport of ranks on the host: through the sockets of their group.

#include <memory>

#include "gpu/transport.hpp"
#include "process/group.hpp"

namespace spmmbench {

std::unique_ptr<Transport> open_host_transport(Group& group);  // which outlives it

}  // namespace spmmbench
