#include "io/mat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <matio.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/shared_library.hpp"
#include "io/csr_assembly.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

const SharedLibrary& matio() {
  static const SharedLibrary library(SPMMBENCH_MATIO);
  return library;
}

#define CALL_MATIO(function, ...) SPMMBENCH_FUNCTION(matio(), function)(__VA_ARGS__)

struct CloseMat {
  void operator()(mat_t* file) const { CALL_MATIO(Mat_Close, file); }
  void operator()(matvar_t* variable) const { CALL_MATIO(Mat_VarFree, variable); }
};
using File = std::unique_ptr<mat_t, CloseMat>;
using Variable = std::unique_ptr<matvar_t, CloseMat>;

// libmatio does not say that a file of version 5 ends within a variable.
void require_whole(std::string_view file, const std::string& path) {
  constexpr std::size_t kHeaderBytes = 128, kTagBytes = 8;
  if (!file.starts_with("MATLAB 5.0") || file.size() < kHeaderBytes) return;
  const bool big_endian = file.substr(kHeaderBytes - 2, 2) == "MI";
  std::size_t end = kHeaderBytes;
  while (end + kTagBytes <= file.size()) {
    std::uint32_t bytes = 0;  // of an element, behind its tag
    std::memcpy(&bytes, file.data() + end + kTagBytes / 2, sizeof bytes);
    end += kTagBytes + (big_endian ? __builtin_bswap32(bytes) : bytes);
  }
  if (end != file.size())
    throw Error(fmt::format("{}: truncated: expected {} bytes, got {}", path,
                            end < file.size() ? end + kTagBytes : end, file.size()));
}

File open(const std::string& path) {
  if (!matio().error().empty())
    throw Error(fmt::format("{}: reading .mat needs libmatio: {}", path, matio().error()));
  const MappedFile mapped(path);
  require_whole(mapped.bytes(), path);
  File file(CALL_MATIO(Mat_Open, path.c_str(), MAT_ACC_RDONLY));
  // Of version 4 libmatio misplaces entries that do not stand column by column.
  if (file != nullptr && CALL_MATIO(Mat_GetVersion, file.get()) == MAT_FT_MAT4)
    throw Error(fmt::format("{}: expected version 5 or newer, got {}", path,
                            mapped.bytes().empty() ? "an empty file" : "version 4"));
  if (file != nullptr) return file;
  if (mapped.bytes().starts_with("MATLAB 7.3"))
    throw Error(fmt::format("{}: expected a libmatio with HDF5, which version 7.3 needs", path));
  throw Error(
      fmt::format("{}: expected a .mat of MATLAB, got {}", path, describe_content(mapped.bytes())));
}

// The name of the variable that has the matrix: "Problem", or that of a sparse matrix.
std::string variable_of(mat_t* file, const std::string& path) {
  std::vector<std::string> sparse;
  while (const Variable variable{CALL_MATIO(Mat_VarReadNextInfo, file)}) {
    std::string name = variable->name != nullptr ? variable->name : "";
    if (variable->class_type == MAT_C_STRUCT && name == "Problem") return name;
    if (variable->class_type == MAT_C_SPARSE) sparse.push_back(name);
  }
  if (sparse.size() != 1)
    throw Error(fmt::format("{}: expected one sparse matrix, or a struct Problem, got {}", path,
                            sparse.empty() ? "none" : fmt::format("{}", fmt::join(sparse, ", "))));
  return sparse.front();
}

// The entries that MATLAB holds column by column.
template <class Value>
CsrMatrix assembled(const matvar_t& variable, const mat_sparse_t& sparse, bool fp64,
                    const std::string& label) {
  const auto rows = static_cast<std::int64_t>(variable.dims[0]);
  const auto cols = static_cast<std::int64_t>(variable.dims[1]);
  const auto* const values = static_cast<const Value*>(sparse.data);
  std::vector<EntryBlock<ValueEntry>> blocks(1);
  if (cols > 0) blocks[0].entries.reserve(sparse.jc[cols]);
  for (std::int64_t col = 0; col < cols; ++col) {
    if (sparse.jc[col] > sparse.jc[col + 1] || sparse.jc[col + 1] > sparse.nir ||
        sparse.jc[col + 1] > sparse.ndata)
      throw Error(fmt::format("{}: column {}: expected rising offsets up to {}, got {} and {}",
                              label, col + 1, std::min(sparse.nir, sparse.ndata), sparse.jc[col],
                              sparse.jc[col + 1]));
    for (auto i = sparse.jc[col]; i < sparse.jc[col + 1]; ++i) {
      if (sparse.ir[i] >= rows)
        throw Error(fmt::format("{}: column {}: expected rows from 1 to {}, got {}", label, col + 1,
                                rows, std::int64_t{sparse.ir[i]} + 1));
      blocks[0].add({static_cast<std::int32_t>(sparse.ir[i]), static_cast<std::int32_t>(col),
                     static_cast<double>(values[i])},
                    Symmetry::general);
    }
  }
  return assemble_csr(rows, cols, Symmetry::general, std::move(blocks), omp_get_max_threads(),
                      fp64);
}

CsrMatrix csr_of(const matvar_t& variable, bool fp64, const std::string& label) {
  if (variable.class_type != MAT_C_SPARSE)
    throw Error(fmt::format("{}: expected a sparse matrix, got another array", label));
  if (variable.isComplex != 0)
    throw Error(fmt::format("{}: expected real values, got complex ones", label));
  const auto* const sparse = static_cast<const mat_sparse_t*>(variable.data);
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (variable.rank != 2 || variable.dims[0] > kMost || variable.dims[1] > kMost)
    throw Error(fmt::format("{}: expected at most {} rows and columns", label, kMost));
  if (sparse == nullptr || sparse->njc != variable.dims[1] + 1)
    throw Error(fmt::format("{}: expected {} offsets for its columns, got {}", label,
                            variable.dims[1] + 1, sparse == nullptr ? 0 : sparse->njc));
  switch (variable.data_type) {
    case MAT_T_DOUBLE: return assembled<double>(variable, *sparse, fp64, label);
    case MAT_T_SINGLE: return assembled<float>(variable, *sparse, fp64, label);
    case MAT_T_INT8: return assembled<std::int8_t>(variable, *sparse, fp64, label);
    case MAT_T_UINT8: return assembled<std::uint8_t>(variable, *sparse, fp64, label);
    case MAT_T_INT16: return assembled<std::int16_t>(variable, *sparse, fp64, label);
    case MAT_T_UINT16: return assembled<std::uint16_t>(variable, *sparse, fp64, label);
    case MAT_T_INT32: return assembled<std::int32_t>(variable, *sparse, fp64, label);
    case MAT_T_UINT32: return assembled<std::uint32_t>(variable, *sparse, fp64, label);
    default: throw Error(fmt::format("{}: expected numbers as values", label));
  }
}

}  // namespace

CsrMatrix read_mat(const std::string& path, bool fp64) {
  const File file = open(path);
  const std::string name = variable_of(file.get(), path);
  const Variable variable(CALL_MATIO(Mat_VarRead, file.get(), name.c_str()));
  std::string label = fmt::format("{}({})", path, name);
  if (variable == nullptr)
    throw Error(fmt::format("{}: expected a whole variable: truncated or corrupt", label));
  if (variable->class_type != MAT_C_STRUCT) return csr_of(*variable, fp64, label);
  // It belongs to the struct.
  const matvar_t* const a = CALL_MATIO(Mat_VarGetStructFieldByName, variable.get(), "A", 0);
  if (a == nullptr) throw Error(fmt::format("{}: expected a field A, got none", label));
  return csr_of(*a, fp64, label.insert(label.size() - 1, ".A"));
}

}  // namespace spmmbench
