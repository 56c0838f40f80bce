#include "io/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "io/matrix_market.hpp"
#include "io/sha256.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGeneratorPrefix = "gen:";

// Longest first, so that a name's whole extension is found.
constexpr std::string_view kExtensions[] = {".mtx", ".mm"};

std::string_view extension_of(std::string_view path) {
  for (const std::string_view extension : kExtensions)
    if (path.size() > extension.size() && path.ends_with(extension)) return extension;
  return {};
}

std::string stem_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, name.size() - extension_of(name).size());
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

LoadedInput load_file(const std::string& path, const LoadOptions&) {
  const std::string_view extension = extension_of(path);
  LoadedInput out;
  out.a.name = stem_of(path);
  if (extension == ".mtx" || extension == ".mm") {
    MatrixMarketMatrix read = read_matrix_market(path);
    out.a.csr = std::move(read.csr);
    out.a.pattern = read.pattern;
  } else {
    throw Error(fmt::format("{}: expected a name that ends in .mtx", path));
  }
  return out;
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) {
    if (argument.starts_with(kGeneratorPrefix)) {
      out.push_back(argument);
    } else if (argument.starts_with('@')) {
      std::ifstream list(argument.substr(1));
      if (!list) throw Error(fmt::format("{}: cannot open the list", argument.substr(1)));
      std::vector<std::string> lines;
      for (std::string line; std::getline(list, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty() && !line.starts_with('#')) lines.push_back(line);
      }
      for (std::string& path : expand_inputs(lines)) out.push_back(std::move(path));
    } else if (fs::is_directory(argument)) {
      std::vector<std::string> found;
      for (const auto& entry : fs::recursive_directory_iterator(argument))
        if (entry.is_regular_file() && !extension_of(entry.path().string()).empty())
          found.push_back(entry.path().string());
      if (found.empty()) throw Error(fmt::format("{}: no matrix files in this folder", argument));
      std::sort(found.begin(), found.end());
      out.insert(out.end(), found.begin(), found.end());
    } else if (fs::exists(argument)) {
      out.push_back(argument);
    } else {
      throw Error(fmt::format("{}: no such file", argument));
    }
  }
  return out;
}

LoadedInput load_input(const std::string& path_or_spec, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadedInput out = path_or_spec.starts_with(kGeneratorPrefix) ? generate(path_or_spec)
                                                               : load_file(path_or_spec, options);
  out.a.source = path_or_spec;
  if (out.a.pattern) draw_values(out.a.csr, options.seed);
  out.a.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  out.a.sha256 = matrix_sha256(out.a.csr, out.a.pattern);
  return out;
}

}  // namespace spmmbench
