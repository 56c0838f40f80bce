#pragma once
// A folder that keeps between runs what would be measured again otherwise: the rates of a device
// and what `auto?tune` found. One small JSON file for each, made whole or not at all.

#include <map>
#include <optional>
#include <string>

namespace spmmbench {

// For this process; empty, as at its start: nothing is read or kept.
void set_cache_folder(std::string folder);
bool has_cache_folder();

using CacheEntry = std::map<std::string, std::string>;

// The entry that was kept of `kind` for exactly this key. A file that is there and cannot be used
// (unreadable, no JSON, of another form or key) counts as absent, with one warning on stderr.
std::optional<CacheEntry> read_cache(const std::string& kind, const CacheEntry& key);
// A folder that cannot be written costs one warning.
void write_cache(const std::string& kind, const CacheEntry& key, const CacheEntry& entry);
// One warning that the entry, although well formed, makes no sense to who asked for it.
void reject_cache(const std::string& kind, const CacheEntry& key, const std::string& reason);

}  // namespace spmmbench
