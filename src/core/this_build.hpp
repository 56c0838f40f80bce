#pragma once
// What is told of the build: in a file of its own, so that little is compiled anew when it changes.

namespace spmmbench::this_build {

extern const char* const version;
extern const char* const revision;  // of git
extern const char* const flags;

}  // namespace spmmbench::this_build
