#pragma once
// The host memory that is left.

#include <cstddef>
#include <filesystem>

namespace spmmbench {

// Bytes that can be allocated without swapping, page cache that the system can free included: those
// of the machine, or of a cgroup (version 2) around this process or of its addresses (`ulimit -v`)
// where those are fewer. SIZE_MAX where the system does not say.
std::size_t available_memory_bytes();

// The same of the folders proc and sys below `root`.
std::size_t available_memory_bytes(const std::filesystem::path& root);

}  // namespace spmmbench
