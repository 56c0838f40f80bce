#include "select/cache.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include "core/parse_json.hpp"
#include "core/parse_number.hpp"
#include "core/this_build.hpp"
#include "io/output.hpp"
#include "io/sha256.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;  // of the files' form

std::mutex mutex;  // guards the next two
std::string folder;
std::set<std::string> warned;

std::string path_of(const std::string& kind, const CacheEntry& key) {
  constexpr std::size_t kDigits = 16;
  const std::lock_guard lock(mutex);
  if (folder.empty()) return {};  // before the hash, which takes 15 us
  Sha256 hash;
  const std::string text = Json(key).dump();
  hash.update(text.data(), text.size());
  return fmt::format("{}/{}-{}.json", folder, kind, hash.hex().substr(0, kDigits));
}

// Warns once for each file.
void warn(const std::string& path, const std::string& message) {
  const std::lock_guard lock(mutex);
  if (!warned.insert(path).second) return;
  say("spmmbench: {}\n", message);
}

}  // namespace

void set_cache_folder(std::string name) {
  const std::lock_guard lock(mutex);
  folder = std::move(name);
}

bool has_cache_folder() {
  const std::lock_guard lock(mutex);
  return !folder.empty();
}

std::string this_program() {
  return fmt::format("{} {}", this_build::version, this_build::revision);
}

std::optional<CacheEntry> read_cache(const std::string& kind, const CacheEntry& key) {
  const std::string path = path_of(kind, key);
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream file(path);
  try {
    const Json json = parse_json(file);
    if (json.at("version") == kVersion && json.at("key").get<CacheEntry>() == key)
      return json.at("entry").get<CacheEntry>();
  } catch (const nlohmann::json::exception&) {
  }
  warn(path,
       fmt::format("{}: ignored: expected what a run of this version keeps with --cache", path));
  return std::nullopt;
}

void write_cache(const std::string& kind, const CacheEntry& key, const CacheEntry& entry) {
  const std::string path = path_of(kind, key);
  if (path.empty()) return;
  const Json json = {{"version", kVersion}, {"key", key}, {"entry", entry}};
  try {
    write_file(path, json.dump(1) + '\n');
  } catch (const Error& error) {
    warn(path, error.what());
  }
}

std::optional<double> positive_number(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

void reject_cache(const std::string& kind, const CacheEntry& key, const std::string& reason) {
  const std::string path = path_of(kind, key);
  warn(path, fmt::format("{}: ignored: {}", path, reason));
}

}  // namespace spmmbench
