#pragma once
// Lists in which nothing stands twice.

#include <set>
#include <type_traits>
#include <vector>

namespace spmmbench {

// Keeps the first of the values that have the same `key(value)`.
template <class Value, class Key>
void drop_repeats(std::vector<Value>& values, const Key& key) {
  std::set<std::decay_t<std::invoke_result_t<Key, const Value&>>> seen;
  std::erase_if(values, [&](const Value& value) { return !seen.insert(key(value)).second; });
}

template <class Value>
void drop_repeats(std::vector<Value>& values) {
  drop_repeats(values, [](const Value& value) { return value; });
}

}  // namespace spmmbench
