#include "core/shared_library.hpp"

#include <dlfcn.h>

#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

SharedLibrary::SharedLibrary(const std::string& file)
    : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* reason = dlerror();
  error_ = reason != nullptr ? reason : file + " was not found";
}

void* SharedLibrary::find(const char* function) const {
  return handle_ != nullptr ? dlsym(handle_, function) : nullptr;
}

void* SharedLibrary::require(const char* function) const {
  if (!error_.empty()) throw Unsupported(error_);
  void* const address = find(function);
  if (address == nullptr) throw DeviceError(std::string(function) + ": not in the library", false);
  return address;
}

}  // namespace spmmbench
