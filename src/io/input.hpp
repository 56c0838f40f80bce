#pragma once
// From what the user typed (file, directory, @list, gen:SPEC) to matrices in memory.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

inline constexpr std::string_view kGeneratorPrefix = "gen:";

struct LoadOptions {
  // Draws the values of pattern matrices: uniform_at(stream_seed(seed, kStreamA), row, col), in
  // fp64 uniform64_at.
  std::uint64_t seed = 1;
  std::optional<std::pair<std::int64_t, std::int64_t>> dims = {};  // rows, cols of headerless .bin
  ElementType bin_type = ElementType::f32;                         // of headerless .bin
  std::string prune = {};  // a spec of io/prune.hpp or empty; dense inputs only
  bool fp64 = false;       // values in fp64 too, where the source has them
  bool transpose = false;  // A^T of what the source has
};

struct LoadedInput {
  NamedMatrix a;
  std::optional<DenseMatrix> b;  // generators of two-operand problems only
  double transpose_ms = 0;       // what the host took
};

// Files with a known extension below a directory (sorted by name), lines of @list, the matrices of
// a .safetensors file, or of all files of a .safetensors.index.json, or those that FILE:GLOB names
// of them, everything else as it is. What is named twice, in whatever way, is there once. Throws
// Error for a path that does not exist, and for a list, an index or a directory without matrices.
// Adds to `lists` the files of the lists and indices, with those within lists.
std::vector<std::string> expand_inputs(const std::vector<std::string>& arguments,
                                       std::vector<std::string>* lists = nullptr);

// The name of the matrix that an input is: its file without folder and ending, the tensor, or the
// spec of a generator.
std::string name_of_input(const std::string& input);

// The same for every way to write one input: its folder without links and dots, and the file; or
// the spec of a generator.
std::string place_of_input(const std::string& input);

// Reads .mtx, .mtx.gz, SuiteSparse .tar.gz, .csr, .npy, .npz, .mat, .bin, .smtx,
// FILE.safetensors:NAME or generates gen:SPEC. Throws Error with file, line and what was expected.
LoadedInput load_input(const std::string& path_or_spec, const LoadOptions& options);

// The same for a command with this one input: where memory lacks, it is an Error too.
LoadedInput load_alone(const std::string& path_or_spec, const LoadOptions& options);

// Throws Error where `path` is no matrix by its name, or where a file cannot be opened or has a
// header of a dense matrix or of Matrix Market that is wrong. Reads no more than that.
void check_header(const std::string& path, const LoadOptions& options);

// A .bin, whose size --dims or its name tells; where both do, they must agree.
bool is_headerless(const std::string& path);

// Dense .npy (fp32, fp64, fp16; C or Fortran order; 2-D), one tensor of a .safetensors file, or
// headerless little-endian .bin of exactly dims, which NAME.ROWSxCOLS.bin need not be given.
DenseMatrix load_dense(const std::string& path, const LoadOptions& options);

// The columns of that matrix, from the header or the name if these tell.
std::int64_t dense_columns(const std::string& path, const LoadOptions& options);

// N of an input that brings its own B.
std::optional<std::int64_t> columns_of_own_b(const std::string& input);

}  // namespace spmmbench
