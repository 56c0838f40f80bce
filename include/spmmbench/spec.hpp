#pragma once
// `name?key=value&key=value`: the one syntax for generators (after `gen:`), kernels, reorderings
// and formats.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spmmbench {

// One documented option of a kernel, reordering, format or generator. Shown by `spmmbench list`.
struct OptionSpec {
  std::string name;
  std::string default_value;  // as a user would type it; "auto" when chosen from the matrix
  std::string help;           // one line: meaning, unit, choices
};

// Key/value options. Getters parse strictly and throw Error naming the key and what was expected.
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  bool has(std::string_view key) const;
  std::string get(std::string_view key, std::string_view fallback) const;
  std::int64_t get_int(std::string_view key, std::int64_t fallback, std::int64_t min = INT64_MIN,
                       std::int64_t max = INT64_MAX) const;
  double get_double(std::string_view key, double fallback) const;
  bool get_bool(std::string_view key, bool fallback) const;  // 0|1|false|true|no|yes|off|on
  // One of `choices`; throws Error listing them otherwise.
  std::string get_choice(std::string_view key, std::string_view fallback,
                         const std::vector<std::string>& choices) const;

  // Throws Error naming the first key that no OptionSpec declares.
  void require_known(const std::vector<OptionSpec>& known, std::string_view owner) const;

  void set(std::string key, std::string value);
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

struct Spec {
  std::string name;
  Options options;

  static Spec parse(std::string_view text);  // throws Error on an empty name or a key without '='
  std::string to_string() const;             // canonical: keys ascending
};

// Shell-style match of '*' and '?' over the whole text. In a name no '?' is needed, so callers that
// accept specs split them with Spec::parse first.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace spmmbench
