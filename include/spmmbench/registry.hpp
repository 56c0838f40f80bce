#pragma once
// Self-registration. A kernel, reordering, format or generator is one .cpp or .cu file, and its
// last line registers it.

#include <memory>
#include <string_view>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/generator.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

template <class T>
class Registry {
 public:
  static Registry& instance();

  bool add(std::unique_ptr<T> entry) {
    entries_.push_back(std::move(entry));
    return true;
  }
  std::vector<const T*> sorted() const;        // by name
  const T* find(std::string_view name) const;  // null when absent
  const T& at(std::string_view name) const;    // throws Error that lists the names

 private:
  std::vector<std::unique_ptr<T>> entries_;
};

}  // namespace spmmbench

// The last line of a file in kernels/, src/reorder/, src/format/ or src/io/, at namespace scope.
// Constructor arguments may follow Type; without them it must be default-constructible.
#define SPMMBENCH_CONCAT_(a, b) a##b
#define SPMMBENCH_CONCAT(a, b) SPMMBENCH_CONCAT_(a, b)
#define SPMMBENCH_REGISTER_(Interface, Type, ...)                                 \
  [[maybe_unused]] static const bool SPMMBENCH_CONCAT(registered_, __COUNTER__) = \
      ::spmmbench::Registry<::spmmbench::Interface>::instance().add(              \
          std::make_unique<Type>(__VA_ARGS__))
#define SPMMBENCH_REGISTER_KERNEL(Type, ...) \
  SPMMBENCH_REGISTER_(Kernel, Type __VA_OPT__(, ) __VA_ARGS__)
#define SPMMBENCH_REGISTER_REORDERING(Type, ...) \
  SPMMBENCH_REGISTER_(Reordering, Type __VA_OPT__(, ) __VA_ARGS__)
#define SPMMBENCH_REGISTER_FORMAT(Type, ...) \
  SPMMBENCH_REGISTER_(Format, Type __VA_OPT__(, ) __VA_ARGS__)
#define SPMMBENCH_REGISTER_GENERATOR(Type, ...) \
  SPMMBENCH_REGISTER_(Generator, Type __VA_OPT__(, ) __VA_ARGS__)
