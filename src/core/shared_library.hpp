#pragma once
// Libraries that are loaded when something first needs them: the program starts without waiting for
// them, and on machines that lack them.

#include <string>

namespace spmmbench {

class SharedLibrary {
 public:
  // `file` as the loader finds it, such as "libcublas.so.13". It stays loaded until the process
  // ends.
  explicit SharedLibrary(const std::string& file);

  // Empty when it is loaded, else the loader's reason.
  const std::string& error() const { return error_; }
  // The address of a function, null when there is none.
  void* find(const char* function) const;
  // The same. Throws Unsupported without the library, DeviceError when it lacks the function.
  void* require(const char* function) const;

 private:
  void* handle_;
  std::string error_;
};

#define SPMMBENCH_TEXT(tokens) #tokens
#define SPMMBENCH_EXPANDED_TEXT(macro) SPMMBENCH_TEXT(macro)

// A declared function of a SharedLibrary: looked up once and never linked. `library` is an
// expression without local names, and `function` is not overloaded.
#define SPMMBENCH_FUNCTION(library, function)                        \
  ([]() -> decltype(&function) {                                     \
    static const auto found = reinterpret_cast<decltype(&function)>( \
        (library).require(SPMMBENCH_EXPANDED_TEXT(function)));       \
    return found;                                                    \
  }())

}  // namespace spmmbench
