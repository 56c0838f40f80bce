#pragma once
// Members of zip archives through minizip.

#include <map>
#include <string>
#include <vector>

namespace spmmbench {

// The members called `names` that the archive has, unpacked, by name; of several of one name the
// last. Throws Error when it is no zip archive, is truncated or corrupt (a member's CRC included),
// or when they would not fit in memory.
std::map<std::string, std::string> unzip_members(const std::string& path,
                                                 const std::vector<std::string>& names);

}  // namespace spmmbench
