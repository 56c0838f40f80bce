#pragma once
// The same memory of processes without a GPU.

#include <memory>

#include "gpu/peer_memory.hpp"

namespace spmmbench {

std::unique_ptr<PeerMemory> open_host_peer_memory();

}  // namespace spmmbench
