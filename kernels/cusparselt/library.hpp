#pragma once
// NVIDIA cuSPARSELt as it is found when the program runs. Nothing of it is linked, so that the
// program starts where the library is missing.

#include <cusparseLt.h>

#include <string>

namespace spmmbench {

// The functions that we call: X(NAME) for cusparseLtNAME. All are there since version 0.8.
#define SPMMBENCH_CUSPARSELT_FUNCTIONS(X) \
  X(Init)                                 \
  X(GetProperty)                          \
  X(GetErrorString)                       \
  X(DenseDescriptorInit)                  \
  X(StructuredDescriptorInit)             \
  X(MatDescriptorDestroy)                 \
  X(MatmulDescriptorInit)                 \
  X(MatmulAlgSelectionInit)               \
  X(MatmulAlgSelectionDestroy)            \
  X(MatmulAlgGetAttribute)                \
  X(MatmulAlgSetAttribute)                \
  X(MatmulPlanInit)                       \
  X(MatmulPlanDestroy)                    \
  X(MatmulGetWorkspace)                   \
  X(MatmulSearch)                         \
  X(Matmul)                               \
  X(SpMMACompressedSize2)                 \
  X(SpMMACompress2)

struct CusparseLt {
#define SPMMBENCH_MEMBER(name) decltype(&::cusparseLt##name) name = nullptr;
  SPMMBENCH_CUSPARSELT_FUNCTIONS(SPMMBENCH_MEMBER)
#undef SPMMBENCH_MEMBER

  std::string version() const;
};

struct CusparseLtLookup {
  const CusparseLt* library = nullptr;  // stays loaded until the process ends
  std::string reason;                   // where there is none
};

// Looks where docs/install.md says, once per process if it finds a library.
CusparseLtLookup find_cusparselt();

}  // namespace spmmbench
