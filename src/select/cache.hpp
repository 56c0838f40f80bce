#pragma once
// A folder that keeps results for later runs: the rates of a device, what `auto?tune` found, and
// row orders. Each is a JSON file, which is written whole or not at all.

#include <map>
#include <optional>
#include <string>

namespace spmmbench {

// Sets the folder for this process. It is empty at first; then nothing is read or kept.
void set_cache_folder(std::string folder);
bool has_cache_folder();

using CacheEntry = std::map<std::string, std::string>;

// Version and revision, for the key of what depends on this program.
std::string this_program();

// The entry of this kind that was kept for exactly this key. A file that cannot be used
// (unreadable, no JSON, another form or key) counts as absent, and one warning on stderr says so.
std::optional<CacheEntry> read_cache(const std::string& kind, const CacheEntry& key);
// Warns once when the folder cannot be written.
void write_cache(const std::string& kind, const CacheEntry& key, const CacheEntry& entry);
// The number that `text` is; empty when it is none, not finite or not above 0.
std::optional<double> positive_number(const std::string& text);
// Warns once that the entry is well formed but makes no sense to the caller.
void reject_cache(const std::string& kind, const CacheEntry& key, const std::string& reason);

}  // namespace spmmbench
