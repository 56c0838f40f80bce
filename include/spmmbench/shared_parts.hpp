#pragma once
// Parts of a prepared A that several shapes share. Example: a format whose window height depends on
// N is built once for all N that choose the same height.

#include <map>
#include <optional>
#include <utility>

#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

template <class Key, class Part>
class SharedParts {
 public:
  struct Entry {
    Part part;
    StageTimer cost;  // the time of making it, which each caller of get() adds to its stages
  };

  // make(cost) -> Part runs for the first caller of a key. References to the entry stay valid.
  template <class Make>
  Entry& get(const Key& key, const Make& make) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    StageTimer cost;
    Part part = make(cost);
    return entries_.emplace(key, Entry{std::move(part), std::move(cost)}).first->second;
  }

  bool contains(const Key& key) const { return entries_.contains(key); }
  // Of a key that it contains.
  const Entry& at(const Key& key) const { return entries_.at(key); }

  // function(Part&) for every part that was made.
  template <class Function>
  void for_each(const Function& function) {
    for (auto& [key, entry] : entries_) function(entry.part);
  }

 private:
  std::map<Key, Entry> entries_;
};

// A single part of that kind.
template <class Part>
class SharedPart {
 public:
  // make(cost) -> Part runs for the first caller. The time of making it is added to `stages` of
  // every caller.
  template <class Make>
  const Part& get(StageTimer& stages, const Make& make) {
    if (!part_) part_.emplace(make(cost_));
    stages.add(cost_);
    return *part_;
  }

 private:
  std::optional<Part> part_;
  StageTimer cost_;
};

}  // namespace spmmbench
