#pragma once
// Parts of a prepared A that several shapes share, such as a format that depends on N only through
// the height of its windows.

#include <map>
#include <utility>

#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

template <class Key, class Part>
class SharedParts {
 public:
  struct Entry {
    Part part;
    StageTimer cost;  // what making it took: counted again by each shape that uses it
  };

  // make(cost) -> Part runs for the first caller of a key. The entry stays where it is.
  template <class Make>
  Entry& get(const Key& key, const Make& make) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    StageTimer cost;
    Part part = make(cost);
    return entries_.emplace(key, Entry{std::move(part), std::move(cost)}).first->second;
  }

 private:
  std::map<Key, Entry> entries_;
};

}  // namespace spmmbench
