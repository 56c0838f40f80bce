#include "spmmbench/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "spmmbench/error.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

template <class T>
decltype(auto) entry_name(const T& entry) {
  if constexpr (std::is_same_v<T, Kernel>) return (entry.info().name);  // not copied
  else return entry.name();
}

template <class T>
constexpr std::string_view kind_of() {
  if constexpr (std::is_same_v<T, Kernel>) return "kernel";
  else if constexpr (std::is_same_v<T, Reordering>) return "reordering";
  else if constexpr (std::is_same_v<T, Format>) return "format";
  else return "generator";
}

}  // namespace

template <class T>
Registry<T>& Registry<T>::instance() {
  static Registry registry;
  return registry;
}

template <class T>
std::vector<const T*> Registry<T>::sorted() const {
  std::vector<const T*> entries;
  for (const auto& entry : entries_) entries.push_back(entry.get());
  std::sort(entries.begin(), entries.end(),
            [](const T* a, const T* b) { return entry_name(*a) < entry_name(*b); });
  return entries;
}

template <class T>
const T* Registry<T>::find(std::string_view name) const {
  for (const auto& entry : entries_)
    if (entry_name(*entry) == name) return entry.get();
  return nullptr;
}

template <class T>
const T& Registry<T>::at(std::string_view name) const {
  if (const T* entry = find(name)) return *entry;
  std::vector<std::string> names;
  for (const T* entry : sorted()) names.push_back(entry_name(*entry));
  throw Error(fmt::format("unknown {} '{}'{}; there are: {}", kind_of<T>(), name,
                          did_you_mean(name, names), fmt::join(names, ", ")));
}

template class Registry<Kernel>;
template class Registry<Reordering>;
template class Registry<Format>;
template class Registry<Generator>;

}  // namespace spmmbench
