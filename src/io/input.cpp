#include "io/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "io/archive.hpp"
#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/matrix_market.hpp"
#include "io/prune.hpp"
#include "io/sha256.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGeneratorPrefix = "gen:";

// Longest first, so that a name's whole extension is found.
constexpr std::string_view kExtensions[] = {".mtx.gz", ".tar.gz", ".mtx", ".tgz",
                                            ".csr",    ".npy",    ".bin", ".mm"};

std::string_view extension_of(std::string_view path) {
  for (const std::string_view extension : kExtensions)
    if (path.size() > extension.size() && path.ends_with(extension)) return extension;
  return {};
}

std::string stem_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, name.size() - extension_of(name).size());
}

std::vector<std::string> matrices_below(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !extension_of(entry.path().string()).empty())
      found.push_back(entry.path().string());
  if (found.empty()) throw Error(fmt::format("{}: no matrix files in this folder", folder));
  std::sort(found.begin(), found.end());
  return found;
}

void expand(const std::string& argument, int depth, std::vector<std::string>& out) {
  constexpr int kDeepest = 8;  // a list that names itself ends here
  if (argument.starts_with(kGeneratorPrefix)) {
    out.push_back(argument);
  } else if (argument.starts_with('@')) {
    const std::string path = argument.substr(1);
    std::ifstream list(path);
    if (!list) throw Error(fmt::format("{}: cannot open the list", path));
    if (depth == kDeepest) throw Error(fmt::format("{}: lists within lists go too deep", path));
    for (std::string line; std::getline(list, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && !line.starts_with('#')) expand(line, depth + 1, out);
    }
  } else if (fs::is_directory(argument)) {
    for (std::string& path : matrices_below(argument)) out.push_back(std::move(path));
  } else if (fs::exists(argument)) {
    out.push_back(argument);
  } else {
    throw Error(fmt::format("{}: no such file", argument));
  }
}

void draw_values(CsrMatrix& csr, std::uint64_t seed) {
  csr.values.resize(csr.nnz());
  const std::uint64_t stream = stream_seed(seed, kStreamA);
#pragma omp parallel for schedule(dynamic, 4096)
  for (std::int64_t row = 0; row < csr.rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e)
      csr.values[e] = uniform_at(stream, row, csr.col_idx[e]);
}

LoadedInput generate(const std::string& text) {
  const Spec spec = Spec::parse(std::string_view(text).substr(kGeneratorPrefix.size()));
  const Generator& generator = Registry<Generator>::instance().at(spec.name);
  spec.options.require_known(generator.options(), generator.name());
  Generated made = generator.generate(spec.options);
  LoadedInput out;
  out.a.name = spec.to_string();
  out.a.pattern = made.pattern;
  out.a.csr = std::move(made.csr);
  if (!made.b.values.empty()) out.b = std::move(made.b);
  return out;
}

bool is_dense(std::string_view extension) { return extension == ".npy" || extension == ".bin"; }

// `sha256` stays empty where the file does not tell it.
NamedMatrix load_file(const std::string& path, const LoadOptions& options) {
  const std::string_view extension = extension_of(path);
  if (!options.prune.empty() && !is_dense(extension))
    throw Error(fmt::format("{}: only dense inputs (.npy, .bin) can be pruned", path));
  NamedMatrix out;
  out.name = to_printable(stem_of(path));
  const auto take = [&](MatrixMarketMatrix read) {
    out.csr = std::move(read.csr);
    out.pattern = read.pattern;
  };
  if (extension == ".mtx" || extension == ".mm") {
    take(read_matrix_market(path));
  } else if (extension == ".mtx.gz" || extension == ".tar.gz" || extension == ".tgz") {
    const UnpackedText unpacked = unpack_matrix_text(path);
    take(parse_matrix_market(unpacked.text.view(), unpacked.name));
  } else if (extension == ".csr") {
    CachedMatrix cached = read_csr_cache(path);
    out.csr = std::move(cached.csr);
    out.pattern = cached.pattern;
    out.sha256 = std::move(cached.sha256);
  } else if (is_dense(extension)) {
    out.csr = to_csr(load_dense(path, options));
  } else {
    throw Error(
        fmt::format("{}: expected a name that ends in {}", path, fmt::join(kExtensions, ", ")));
  }
  return out;
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) expand(argument, 0, out);
  return out;
}

LoadedInput load_input(const std::string& path_or_spec, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadedInput out;
  if (path_or_spec.starts_with(kGeneratorPrefix)) out = generate(path_or_spec);
  else out.a = load_file(path_or_spec, options);
  out.a.source = to_printable(path_or_spec);
  if (out.a.pattern) draw_values(out.a.csr, options.seed);
  out.a.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (out.a.sha256.empty()) out.a.sha256 = matrix_sha256(out.a.csr, out.a.pattern);
  return out;
}

DenseMatrix load_dense(const std::string& path, const LoadOptions& options) {
  DenseMatrix out;
  if (extension_of(path) == ".npy") {
    out = read_npy(path);
  } else if (extension_of(path) == ".bin") {
    if (!options.dims)
      throw Error(fmt::format("{}: expected --dims ROWS COLS, as .bin has no header", path));
    out = read_bin(path, options.dims->first, options.dims->second);
  } else {
    throw Error(fmt::format("{}: expected a dense .npy or .bin", path));
  }
  if (!options.prune.empty()) prune(out, options.prune, options.seed);
  return out;
}

}  // namespace spmmbench
