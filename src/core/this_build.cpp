#include "core/this_build.hpp"

#include "revision.hpp"

namespace spmmbench::this_build {

const char* const version = SPMMBENCH_VERSION;
const char* const revision = SPMMBENCH_REVISION;
const char* const flags = SPMMBENCH_BUILD_FLAGS;

}  // namespace spmmbench::this_build
