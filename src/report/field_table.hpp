#pragma once
// The fields of a struct as a table: name, meaning, type and place of each. The JSON writer and
// reader, the CSV columns and the JSON schema are loops over it. Only the tables of a document
// include this header (document_fields.hpp): it needs the whole JSON library.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "report/fields.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

using Json = nlohmann::ordered_json;

// Thrown by Codec::read; the reader of the table adds the field's name.
struct UnexpectedType {
  std::string expected;
};

inline void expect(bool condition, const char* expected) {
  if (!condition) throw UnexpectedType{expected};
}

// Throws UnexpectedType for a value outside `limits`, by those keywords of JSON Schema that the
// tables use. Patterns are left to the schema's own validators.
inline void expect_within(const Json& limits, const Json& value) {
  const auto limit = [&](const char* keyword) {
    const auto it = limits.find(keyword);
    return it == limits.end() ? std::nullopt : std::optional<double>(it->get<double>());
  };
  if (value.is_number()) {
    if (const auto least = limit("minimum"); least && !(value.get<double>() >= *least))
      throw UnexpectedType{fmt::format("at least {}", *least)};
    if (const auto bound = limit("exclusiveMinimum"); bound && !(value.get<double>() > *bound))
      throw UnexpectedType{fmt::format("more than {}", *bound)};
  }
  const bool empty = (value.is_string() && value.get_ref<const std::string&>().empty()) ||
                     (value.is_array() && value.empty());
  if (empty && value.is_string() && limit("minLength")) throw UnexpectedType{"text, not empty"};
  if (empty && value.is_array() && limit("minItems")) throw UnexpectedType{"a list, not empty"};
  const auto values = limits.find("enum");
  if (values == limits.end()) return;
  if (std::find(values->begin(), values->end(), value) == values->end())
    throw UnexpectedType{"one of " + values->dump()};
}

// How a type is written to JSON, read back, described in the schema and put into a CSV cell.
template <class T, class = void>
struct Codec;

template <>
struct Codec<std::string> {
  static Json schema() { return {{"type", "string"}}; }
  static Json write(const std::string& value) { return value; }
  static std::string read(const Json& json) {
    expect(json.is_string(), "text");
    return json.get<std::string>();
  }
  static std::string text(const std::string& value) { return value; }
};

template <>
struct Codec<bool> {
  static Json schema() { return {{"type", "boolean"}}; }
  static Json write(bool value) { return value; }
  static bool read(const Json& json) {
    expect(json.is_boolean(), "true or false");
    return json.get<bool>();
  }
  static std::string text(bool value) { return value ? "1" : "0"; }
};

// Counts, sizes and indices: none is negative.
template <class T>
struct Codec<T, std::enable_if_t<std::is_integral_v<T>>> {
  static Json schema() { return {{"type", "integer"}, {"minimum", 0}}; }
  static Json write(T value) { return value; }
  static T read(const Json& json) {
    expect(json.is_number_integer(), "an integer");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : json.get<std::int64_t>() >= 0 &&
                                                      std::in_range<T>(json.get<std::int64_t>());
    if (!fits)
      throw UnexpectedType{fmt::format("an integer from 0 to {}", std::numeric_limits<T>::max())};
    return json.get<T>();
  }
  static std::string text(T value) { return fmt::format("{}", value); }
};

// JSON has no infinity and no NaN: they are written as text.
template <>
struct Codec<double> {
  static Json schema() { return {{"$ref", "#/$defs/number"}}; }
  static Json write(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : "inf";
  }
  static double read(const Json& json) {
    if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json == "inf") return std::numeric_limits<double>::infinity();
    expect(json.is_number(), "a number");
    return json.get<double>();
  }
  static std::string text(double value) { return fmt::format("{}", value); }
};

template <class T>
struct Codec<std::optional<T>> {
  static Json schema() {
    return {{"anyOf", Json::array({Codec<T>::schema(), {{"type", "null"}}})}};
  }
  static Json write(const std::optional<T>& value) {
    return value ? Codec<T>::write(*value) : Json(nullptr);
  }
  static std::optional<T> read(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional<T>(Codec<T>::read(json));
  }
  static std::string text(const std::optional<T>& value) {
    return value ? Codec<T>::text(*value) : std::string();
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static Json schema() { return {{"type", "array"}, {"items", Codec<T>::schema()}}; }
  static Json write(const std::vector<T>& values) {
    Json json = Json::array();
    for (const T& value : values) json.push_back(Codec<T>::write(value));
    return json;
  }
  static std::vector<T> read(const Json& json) {
    expect(json.is_array(), "a list");
    std::vector<T> values;
    for (const Json& item : json) values.push_back(Codec<T>::read(item));
    return values;
  }
  static std::string text(const std::vector<T>& values) {
    std::string text;
    for (const T& value : values)
      text += fmt::format("{}{}", text.empty() ? "" : ";", Codec<T>::text(value));
    return text;
  }
};

// An object whose members are named values, all of one type.
template <class Values, class T>
struct NamedValues {
  static Json schema() {
    return {{"type", "object"}, {"additionalProperties", Codec<T>::schema()}};
  }
  static Json write(const Values& values) {
    Json json = Json::object();
    for (const auto& [name, value] : values) json[name] = Codec<T>::write(value);
    return json;
  }
  static Values read(const Json& json) {
    expect(json.is_object(), "an object");
    Values values;
    for (const auto& [name, value] : json.items())
      values.insert(values.end(), {name, Codec<T>::read(value)});
    return values;
  }
  static std::string text(const Values& values) {
    std::string text;
    for (const auto& [name, value] : values)
      text += fmt::format("{}{}={}", text.empty() ? "" : ";", name, Codec<T>::text(value));
    return text;
  }
};

template <class T>
struct Codec<std::map<std::string, T>> : NamedValues<std::map<std::string, T>, T> {};

// Their order counts.
template <>
struct Codec<std::vector<std::pair<std::string, double>>>
    : NamedValues<std::vector<std::pair<std::string, double>>, double> {};

template <class T>
constexpr bool kReal = std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>;

template <class Owner>
struct Field {
  std::string name;     // the JSON key; its unit is its ending
  std::string meaning;  // in words, with what null means
  Json schema;
  std::function<Json(const Owner&)> write;
  // `path` names the field in messages. Empty for what follows from other fields.
  std::function<void(Owner&, const Json&, const std::string& path)> read;
  std::vector<CsvColumn<Owner>> columns;  // in the CSV: one, none, or those of a nested table
  bool newer = false;

  // A column of another name than the field's.
  Field csv(std::string column) && {
    columns.front().name = std::move(column);
    return std::move(*this);
  }
  Field csv(std::vector<CsvColumn<Owner>> several) && {
    columns = std::move(several);
    return std::move(*this);
  }
  Field not_in_csv() && {
    columns.clear();
    return std::move(*this);
  }
  // Documents written before the field existed are read without it.
  Field added_later() && {
    newer = true;
    return std::move(*this);
  }
};

template <class Owner>
using FieldTable = std::vector<Field<Owner>>;

// A member. `limits` are keywords of JSON Schema that narrow the type's own.
template <class Owner, class T>
Field<Owner> field(std::string name, T Owner::*member, std::string meaning,
                   const Json& limits = Json::object()) {
  Json schema = Codec<T>::schema();
  schema.update(limits);
  return {name,
          std::move(meaning),
          std::move(schema),
          [member](const Owner& owner) { return Codec<T>::write(owner.*member); },
          [member, limits](Owner& owner, const Json& json, const std::string& path) {
            try {
              owner.*member = Codec<T>::read(json);
              expect_within(limits, json);
            } catch (const UnexpectedType& error) {
              throw Error(fmt::format("'{}': expected {}, got {}", path, error.expected,
                                      json.dump().substr(0, 40)));
            }
          },
          {{name, [member](const Owner& o) { return Codec<T>::text(o.*member); }, kReal<T>}}};
}

// What is written for the reader's comfort and follows from other fields.
template <class Owner, class Get>
Field<Owner> derived(std::string name, Get get, std::string meaning,
                     const Json& limits = Json::object()) {
  using T = std::decay_t<std::invoke_result_t<Get, const Owner&>>;
  Json schema = Codec<T>::schema();
  schema.update(limits);
  return {name,
          std::move(meaning),
          std::move(schema),
          [get](const Owner& owner) { return Codec<T>::write(get(owner)); },
          nullptr,
          {{name, [get](const Owner& o) { return Codec<T>::text(get(o)); }, kReal<T>}}};
}

template <class Owner>
Json write_fields(const FieldTable<Owner>& table, const Owner& owner) {
  Json json = Json::object();
  for (const Field<Owner>& field : table) json[field.name] = field.write(owner);
  return json;
}

template <class Owner>
Owner read_fields(const FieldTable<Owner>& table, const Json& json, const std::string& path = {}) {
  if (!json.is_object())
    throw Error(fmt::format("{}expected an object, got {}",
                            path.empty() ? "" : "'" + path + "': ", json.dump().substr(0, 40)));
  Owner owner;
  for (const Field<Owner>& field : table) {
    if (!field.read) continue;
    const std::string name = path.empty() ? field.name : path + "." + field.name;
    const auto it = json.find(field.name);
    if (it != json.end()) field.read(owner, *it, name);
    else if (!field.newer) throw Error(fmt::format("expected the field '{}'", name));
  }
  return owner;
}

template <class Owner>
Json schema_of(const FieldTable<Owner>& table) {
  Json required = Json::array(), properties = Json::object();
  for (const Field<Owner>& field : table) {
    if (!field.newer) required.push_back(field.name);
    Json schema = field.schema;
    if (!field.meaning.empty()) schema["description"] = field.meaning;
    properties[field.name] = std::move(schema);
  }
  return {{"type", "object"},
          {"required", required},
          {"additionalProperties", false},
          {"properties", properties}};
}

template <class Owner>
std::vector<CsvColumn<Owner>> columns_of(const FieldTable<Owner>& table) {
  std::vector<CsvColumn<Owner>> columns;
  for (const Field<Owner>& field : table)
    columns.insert(columns.end(), field.columns.begin(), field.columns.end());
  return columns;
}

// A nested column without a name takes the group's: `format_` for `format`.
inline std::string column_name(const std::string& prefix, const std::string& name) {
  return name.empty() && !prefix.empty() ? prefix.substr(0, prefix.size() - 1) : prefix + name;
}

// A member that is a struct with a table of its own. Its columns are `prefix` + theirs.
template <class Owner, class T>
Field<Owner> group(std::string name, T Owner::*member, const FieldTable<T>& table,
                   std::string meaning, const std::string& prefix = {}) {
  Field<Owner> field{
      std::move(name),
      std::move(meaning),
      schema_of(table),
      [member, &table](const Owner& owner) { return write_fields(table, owner.*member); },
      [member, &table](Owner& owner, const Json& json, const std::string& path) {
        owner.*member = read_fields(table, json, path);
      },
      {}};
  for (const CsvColumn<T>& column : columns_of(table))
    field.columns.push_back(
        {column_name(prefix, column.name),
         [member, text = column.text](const Owner& owner) { return text(owner.*member); },
         column.real});
  return field;
}

// The same where it may be absent: null, and empty cells.
template <class Owner, class T>
Field<Owner> group(std::string name, std::optional<T> Owner::*member, const FieldTable<T>& table,
                   std::string meaning, const std::string& prefix = {}) {
  Field<Owner> field{std::move(name),
                     std::move(meaning),
                     {{"oneOf", Json::array({{{"type", "null"}}, schema_of(table)})}},
                     [member, &table](const Owner& owner) {
                       return owner.*member ? write_fields(table, *(owner.*member)) : Json(nullptr);
                     },
                     [member, &table](Owner& owner, const Json& json, const std::string& path) {
                       if (!json.is_null()) owner.*member = read_fields(table, json, path);
                     },
                     {}};
  for (const CsvColumn<T>& column : columns_of(table))
    field.columns.push_back({column_name(prefix, column.name),
                             [member, text = column.text](const Owner& o) {
                               return o.*member ? text(*(o.*member)) : std::string();
                             },
                             column.real});
  return field;
}

}  // namespace spmmbench
