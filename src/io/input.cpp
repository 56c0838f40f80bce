#include "io/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <istream>
#include <memory>
#include <new>

#include "core/drop_repeats.hpp"
#include "core/matrix_memory.hpp"
#include "core/steady_seconds.hpp"
#include "core/transpose.hpp"
#include "io/archive.hpp"
#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/file.hpp"
#include "io/generator_util.hpp"
#include "io/mat.hpp"
#include "io/matrix_market.hpp"
#include "io/matrix_market_header.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/prune.hpp"
#include "io/safetensors.hpp"
#include "io/sha256.hpp"
#include "io/smtx.hpp"
#include "io/tensor_path.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

// Longest first, so that a name's whole extension is found.
constexpr std::string_view kExtensions[] = {
    ".safetensors", ".mtx.zst", ".tar.zst", ".mtx.gz", ".mtx.xz", ".tar.gz", ".tar.xz", ".smtx",
    ".mtx",         ".tgz",     ".csr",     ".npy",    ".npz",    ".bin",    ".mat",    ".mm"};

bool is_packed(std::string_view extension) {
  return extension == ".tgz" || extension.starts_with(".tar") || extension.starts_with(".mtx.");
}

std::string_view extension_of(std::string_view path) {
  for (const std::string_view extension : kExtensions)
    if (path.size() > extension.size() && path.ends_with(extension)) return extension;
  return {};
}

std::string stem_of(const std::string& path) {
  if (const auto tensor = parse_tensor_path(path); tensor && !tensor->tensor.empty())
    return tensor->tensor;
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, name.size() - extension_of(name).size());
}

// Links to files are files. Links to folders are not followed. What cannot be read, such as a link
// that leads nowhere or a folder, stays in the list: loading it fails then.
void add_matrices_below(const std::string& folder, std::vector<std::string>& found) {
  std::error_code error, unreadable;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!entry->is_directory(unreadable)) {
      if (!extension_of(path).empty()) found.push_back(path);
    } else if (!entry->is_symlink(unreadable)) {
      add_matrices_below(path, found);
    }
  }
  if (error) found.push_back(folder);
}

std::vector<std::string> matrices_below(const std::string& folder) {
  std::vector<std::string> found;
  add_matrices_below(folder, found);
  if (found.empty()) throw Error(fmt::format("{}: no matrix files in this folder", folder));
  std::sort(found.begin(), found.end());
  return found;
}

bool has_header(const std::string& tensor_file) try {
  read_safetensors_header(tensor_file);
  return true;
} catch (const Error&) {
  return false;
}

// A file, or the tensors in it. A broken file stays in the list: loading it fails then, and the
// other inputs are still measured. Names that match no tensor of a good file are an error.
void expand_file(const std::string& path, std::vector<std::string>& out) {
  const std::optional<TensorPath> tensor = parse_tensor_path(path);
  std::vector<std::string> found = {path};
  try {
    if (tensor) found = expand_tensors(*tensor);
  } catch (const Error&) {
    if (!tensor->tensor.empty() && has_header(tensor->file)) throw;
  }
  for (std::string& one : found) out.push_back(std::move(one));
}

void require_there(const std::string& path) {
  constexpr std::size_t kMostShown = 200;
  std::error_code error;
  const bool is_a_name = path.find('\0') == std::string::npos;
  if (is_a_name && fs::exists(file_of(path), error)) return;
  const std::string name = printable_message(path.substr(0, kMostShown));
  throw Error(fmt::format("{}{}: {}", name, path.size() > kMostShown ? "..." : "",
                          error ? error.message() : "no such file"));
}

Spec spec_of(const std::string& text) {
  return Spec::parse(std::string_view(text).substr(kGeneratorPrefix.size()));
}

// The SPEC of `gen:SPEC`, checked.
Spec generator_spec(const std::string& text) {
  Spec spec = spec_of(text);
  const Generator& generator = Registry<Generator>::instance().at(spec.name);
  try {
    check_options(generator, spec.options);
  } catch (const LacksMemory& error) {
    throw LacksMemory(fmt::format("{}: {}", text, error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", text, error.what()));
  }
  return spec;
}

// Lets an input pass that lacks only memory: loading it fails later, and other inputs are measured.
void check_generator(const std::string& text) try {
  generator_spec(text);
} catch (const LacksMemory&) {
  return;
}

struct Expanded {
  std::vector<std::string> inputs, lists;
};

void expand_list(const std::string& path, int depth, Expanded& out);

void expand(const std::string& argument, int depth, Expanded& out) {
  if (argument.starts_with(kGeneratorPrefix)) {
    check_generator(argument);
    out.inputs.push_back(argument);
  } else if (argument == "@") {
    throw Error("@: expected the name of a list behind it");
  } else if (argument.starts_with('@')) {
    expand_list(argument.substr(1), depth, out);
  } else {
    require_there(argument);
    if (const auto index = parse_tensor_index(argument)) {
      for (std::string& tensor : expand_tensor_index(*index))
        out.inputs.push_back(std::move(tensor));
      out.lists.push_back(index->file);
      return;
    }
    std::error_code error;
    if (!fs::is_directory(argument, error)) return expand_file(argument, out.inputs);
    for (const std::string& path : matrices_below(argument)) expand_file(path, out.inputs);
  }
}

void expand_list(const std::string& path, int depth, Expanded& out) {
  constexpr int kDeepest = 8;  // a list that names itself ends here
  const std::unique_ptr<std::istream> list = open_text(path);
  if (depth == kDeepest) throw Error(fmt::format("{}: lists within lists go too deep", path));
  out.lists.push_back(path);
  const std::size_t before = out.inputs.size();
  std::size_t number = 0;
  for (std::string line; std::getline(*list, line);) {
    ++number;
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    constexpr std::string_view kBlanks = " \t\r";
    line.erase(0, line.find_first_not_of(kBlanks));
    line.erase(line.find_last_not_of(kBlanks) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const bool is_list = line.size() > 1 && line.front() == '@';
    try {
      if (is_list) require_there(line.substr(1));
      else expand(line, depth, out);
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path, number, error.what()), error.code());
    }
    if (is_list) expand(line, depth + 1, out);  // whose errors name a line of their own
  }
  if (out.inputs.size() == before) throw Error(fmt::format("{}: no PATH in this list", path));
}

LoadedInput generate(const std::string& text) {
  const Spec spec = generator_spec(text);
  Generated made;
  try {
    made = Registry<Generator>::instance().at(spec.name).generate(spec.options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", text, error.what()));
  }
  LoadedInput out;
  out.a.name = spec.to_string();
  out.a.pattern = made.pattern;
  out.a.csr = std::move(made.csr);
  if (!made.b.values.empty()) out.b = std::move(made.b);
  return out;
}

bool is_dense(const std::string& path) {
  const std::string_view extension = extension_of(path);
  return parse_tensor_path(path) || extension == ".npy" || extension == ".bin";
}

// Reads the size from the name NAME.ROWSxCOLS.bin.
std::optional<std::pair<std::int64_t, std::int64_t>> dims_in_name(const std::string& path) {
  const std::string stem = stem_of(path);
  const char* const end = stem.data() + stem.size();
  const char* const begin = stem.data() + stem.rfind('.') + 1;  // the whole without a dot
  std::int64_t rows = 0, cols = 0;
  const auto height = std::from_chars(begin, end, rows);
  if (height.ec != std::errc{} || height.ptr == end || *height.ptr != 'x') return {};
  const auto width = std::from_chars(height.ptr + 1, end, cols);
  if (width.ec != std::errc{} || width.ptr != end || rows < 1 || cols < 1) return {};
  return std::pair(rows, cols);
}

// A file of one matrix needs no name.
std::string tensor_name(const TensorPath& path) {
  if (!path.tensor.empty()) return path.tensor;
  const std::vector<std::string> tensors = expand_tensors(path);
  if (tensors.size() > 1)
    throw Error(fmt::format("{}: expected {}:NAME, one of its {} matrices", path.file, path.file,
                            tensors.size()));
  return parse_tensor_path(tensors[0])->tensor;
}

std::pair<std::int64_t, std::int64_t> dims_of_bin(const std::string& path,
                                                  const LoadOptions& options) {
  const auto named = dims_in_name(path);
  if (options.dims && named && *options.dims != *named)
    throw Error(fmt::format("{}: expected the {} x {} of its name, got --dims {} {}", path,
                            named->first, named->second, options.dims->first,
                            options.dims->second));
  const auto dims = options.dims ? options.dims : named;
  if (!dims)
    throw Error(fmt::format(
        "{}: expected --dims ROWS COLS, or a name such as NAME.ROWSxCOLS.bin, as .bin has no "
        "header",
        path));
  return *dims;
}

DenseMatrix read_dense(const std::string& path, const LoadOptions& options) {
  if (const auto tensor = parse_tensor_path(path))
    return read_tensor(tensor->file, tensor_name(*tensor), options.fp64);
  if (extension_of(path) == ".npy") return read_npy(path, options.fp64);
  if (extension_of(path) == ".bin") {
    const auto [rows, cols] = dims_of_bin(path, options);
    return read_bin(path, rows, cols, options.bin_type, options.fp64);
  }
  throw Error(fmt::format("{}: expected a dense .npy, .bin or .safetensors:NAME", path));
}

// Returns what `read` returns. Throws where the file became shorter meanwhile, since its data are
// then wrong.
template <class Read>
auto read_whole(const std::string& path, const Read& read) {
  const std::size_t missing = missing_pages();
  const auto check = [&] {
    if (missing_pages() != missing)
      throw Error(fmt::format("{}: became shorter while it was read", path));
  };
  try {
    auto made = read();
    check();
    return made;
  } catch (const Error&) {
    check();
    throw;
  }
}

// A matrix without columns has no values, and yet a row pointer for every row.
void require_row_pointers(const std::string& path, const DenseMatrix& matrix) {
  const double needed = sizeof(std::int64_t) * (static_cast<double>(matrix.rows) + 1);
  const auto available = static_cast<double>(available_memory_bytes());
  if (needed > available)
    throw Error(fmt::format(
        "{}: expected a matrix that fits in memory, got {} x {}: needs {}, {} available", path,
        matrix.rows, matrix.cols, format_bytes(needed), format_bytes(available)));
}

// Throws, since `path` is no matrix by its name.
[[noreturn]] void refuse_kind(const std::string& path) {
  std::error_code error;
  const fs::directory_iterator listed(path, error);
  if (!error) throw Error(fmt::format("{}: expected one matrix, got a folder", path));
  if (error != std::errc::not_a_directory)
    throw Error(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (parse_tensor_index(path))
    throw Error(fmt::format("{}: expected one matrix (FILE.safetensors:NAME), got an index", path));
  throw Error(
      fmt::format("{}: expected a name that ends in {}", path, fmt::join(kExtensions, ", ")));
}

void require_kind(const std::string& path, const LoadOptions& options) {
  const bool dense = is_dense(path);
  if (extension_of(path).empty() && !dense) refuse_kind(path);
  if (!options.prune.empty() && !dense)
    throw Error(
        fmt::format("{}: only dense inputs (.npy, .bin, .safetensors) can be pruned", path));
}

// `sha256` stays empty where the file does not contain it.
NamedMatrix load_file(const std::string& path, const LoadOptions& options) {
  const std::string_view extension = extension_of(path);
  const bool dense = is_dense(path);
  require_kind(path, options);
  NamedMatrix out;
  out.name = name_of_input(path);
  const auto take = [&](MatrixMarketMatrix read) {
    out.csr = std::move(read.csr);
    out.pattern = read.pattern;
  };
  if (dense) {
    const DenseMatrix values = load_dense(path, options);
    require_row_pointers(path, values);
    out.csr = to_csr(values);
  } else if (extension == ".mtx" || extension == ".mm") {
    take(read_matrix_market(path, {.fp64 = options.fp64}));
  } else if (is_packed(extension)) {
    const UnpackedText unpacked = unpack_matrix_text(path);
    take(parse_matrix_market(unpacked.text.view(), unpacked.name, {.fp64 = options.fp64}));
  } else if (extension == ".csr") {
    CachedMatrix cached = read_csr_cache(path);
    out.csr = std::move(cached.csr);
    out.pattern = cached.pattern;
    out.sha256 = std::move(cached.sha256);
  } else if (extension == ".npz") {
    out.csr = read_npz(path, options.fp64);
  } else if (extension == ".mat") {
    out.csr = read_mat(path, options.fp64);
  } else {
    out.csr = read_smtx(path);
    out.pattern = true;
  }
  return out;
}

}  // namespace

std::string name_of_input(const std::string& input) {
  return input.starts_with(kGeneratorPrefix) ? spec_of(input).to_string()
                                             : to_printable(stem_of(input));
}

std::string place_of_input(const std::string& input) {
  if (input.starts_with(kGeneratorPrefix))
    return std::string(kGeneratorPrefix) + spec_of(input).to_string();
  const std::string file = file_of(input);
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(file, error).parent_path(), error);
  return (folder / fs::path(file).filename()).string() + input.substr(file.size());
}

bool is_headerless(const std::string& path) { return extension_of(path) == ".bin"; }

std::vector<std::string> expand_inputs(const std::vector<std::string>& arguments,
                                       std::vector<std::string>* lists) {
  Expanded out;
  for (const std::string& argument : arguments) expand(argument, 0, out);
  drop_repeats(out.inputs, place_of_input);
  if (lists != nullptr) *lists = std::move(out.lists);
  return std::move(out.inputs);
}

LoadedInput load_alone(const std::string& path_or_spec, const LoadOptions& options) try {
  return load_input(path_or_spec, options);
} catch (const std::bad_alloc&) {
  throw Error(fmt::format("{}: out of host memory", path_or_spec));
}

LoadedInput load_input(const std::string& path_or_spec, const LoadOptions& options) {
  const double start = steady_seconds();
  LoadedInput out;
  if (path_or_spec.starts_with(kGeneratorPrefix)) {
    if (!options.prune.empty())
      throw Error(fmt::format("{}: a generated matrix cannot be pruned", path_or_spec));
    out = generate(path_or_spec);
  } else {
    out.a = read_whole(path_or_spec, [&] { return load_file(path_or_spec, options); });
  }
  out.a.source = to_printable(path_or_spec);
  if (out.a.pattern) {
    out.a.csr.values.resize(out.a.csr.nnz());
    if (options.fp64) out.a.csr.values64.resize(out.a.csr.nnz());
    draw_values(out.a.csr, options.seed);
  }
  out.a.load_ms = (steady_seconds() - start) * 1e3;
  if (options.transpose) {
    // Beside the row pointers, transpose() holds the next place of each row.
    const auto rows = static_cast<std::size_t>(out.a.csr.cols);
    require_host_memory(memory_bytes(out.a.csr) + 2 * rows * sizeof(std::int64_t));
    const double before = steady_seconds();
    out.a.csr = transpose(out.a.csr);
    out.transpose_ms = (steady_seconds() - before) * 1e3;
    out.a.sha256.clear();
  }
  if (out.a.sha256.empty()) out.a.sha256 = matrix_sha256(out.a.csr, out.a.pattern);
  return out;
}

std::optional<std::int64_t> columns_of_own_b(const std::string& input) {
  if (!input.starts_with(kGeneratorPrefix)) return {};
  const Spec spec = spec_of(input);
  return Registry<Generator>::instance().at(spec.name).columns_of_b(spec.options);
}

std::int64_t dense_columns(const std::string& path, const LoadOptions& options) {
  if (const auto tensor = parse_tensor_path(path)) {
    const std::string name = tensor_name(*tensor);
    const TensorFile file = read_safetensors_header(tensor->file);
    for (const TensorInfo& info : file.tensors)
      if (info.name == name && info.is_matrix()) return info.shape[1];
  } else if (extension_of(path) == ".npy") {
    const MappedFile file(path);
    if (const NpyArray array = parse_npy(file.bytes(), path); array.shape.size() == 2)
      return array.shape[1];
  } else if (extension_of(path) == ".bin") {
    return dims_of_bin(path, options).second;
  }
  return load_dense(path, options).cols;  // says what is wrong
}

void check_header(const std::string& path, const LoadOptions& options) {
  require_kind(path, options);
  std::error_code error;
  if (!fs::is_regular_file(file_of(path), error)) return;  // a pipe can be read once only
  if (is_dense(path)) {
    dense_columns(path, options);
    return;
  }
  const MappedFile file(path);
  if (const std::string_view extension = extension_of(path);
      extension == ".mtx" || extension == ".mm")
    mm::parse_header(file.bytes(), path);
}

DenseMatrix load_dense(const std::string& path, const LoadOptions& options) {
  DenseMatrix out = read_whole(path, [&] { return read_dense(path, options); });
  if (!options.prune.empty()) prune(out, options.prune, options.seed);
  return out;
}

}  // namespace spmmbench
