#pragma once
// What the two files with the tables of a result document share: fields.cpp has those of a row,
// document_fields.cpp those of the context and of the answers, and the schema of the whole.

#include "report/field_table.hpp"

namespace spmmbench {

template <>
struct Codec<DeviceKind> {
  static Json schema() { return {{"enum", {"cuda", "host"}}}; }
  static Json write(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "host"; }
  static DeviceKind read(const Json& json) {
    expect(json == "cuda" || json == "host", "cuda or host");
    return json == "cuda" ? DeviceKind::cuda : DeviceKind::host;
  }
  static std::string text(DeviceKind kind) { return write(kind).get<std::string>(); }
};

inline const Json kNotEmpty = {{"minLength", 1}};
inline const Json kAtLeastOne = {{"minimum", 1}};
inline const Json kNotNegative = {{"minimum", 0}};

const FieldTable<ResultRow>& row_fields();

}  // namespace spmmbench
