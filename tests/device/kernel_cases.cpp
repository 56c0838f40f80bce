#include "kernel_cases.hpp"

#include <cctype>
#include <ostream>
#include <span>

#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

// As NAME?key=value.
const char* const kVariants[] = {
    "csr_row_split?split=1",
    "csr_row_split?split=8",
    "csr_row_split?split=100000",
    "dense_cluster?tile_n=32&cluster=8",
    "dense_cluster?tile_m=64&tile_n=64&cluster=1",
    "dense_cluster?tile_m=128&tile_n=64&cluster=4",
    "dense_cluster?tile_m=128&tile_n=128&cluster=1",
    "dense_cluster?tile_m=128&tile_n=128&cluster=8",
    "gap_slices?row_lanes=4&gap_bits=8",
    "gap_slices?row_lanes=32&gap_bits=4",
    "jagged_slices?steps=1",
    "jagged_slices?steps=64",
    "jagged_slices?order=degree",
    "jagged_slices?order=search",
    "cusparse_blocked_ell?block=16",
    "cusparse_blocked_ell?block=32",
    "cusparse_bsr?block=16",
    "async_wcsr?window=8&order=degree&feature_tile=128&span=1",
    "async_wcsr?window=8&feature_tile=256&warps=1&whole=1&part=1",
    "async_wcsr?window=16&order=degree&feature_tile=256&warps=4&span=32",
    "async_wcsr?window=16&feature_tile=128&cta_tiles=1&whole=1&part=1&build=host",
    "async_wcsr?window=32&warps=2&whole=1&part=32",
    "async_wcsr?window=8&feature_tile=64&whole=1&part=1",
    "async_wcsr?window=16&feature_tile=32&order=degree",
    "async_wcsr?window=32&feature_tile=32&whole=1&part=1",
    "async_wcsr?window=32&feature_tile=64&cta_tiles=2",
    "rsh?window=16&feature_tile=256&cta_tiles=1&order=degree",
    "rsh?window=32&reduce=atomic&whole=1&part=1",
    "rsh?window=8&reduce=fixup&whole=1&part=1&feature_tile=128",
    "rsh?tau_nnz=32&span=12",
    "async_bcsr?min_fill=0&tile_n=256&producer=cp_async",
    "async_bcsr?min_fill=0&tile_n=256&producer=cp_async&specialise=0&stages=1",
    "async_bcsr?min_fill=0&tile_n=256&specialise=0&stages=2",
    "async_bcsr?min_fill=0&tile_n=256&cluster=2&stages=1",
    "async_bcsr?min_fill=0&tile_n=256&cluster=2&grid=static",
    "async_bcsr?min_fill=0&tile_n=256&cluster=1&group=consecutive&stages=1",
    "async_bcsr?min_fill=0&tile_n=64&grid=static&swath=1",
    "async_bcsr?min_fill=0&block=128x64",
    "esmm?path=warp",
    "esmm?path=block",
    "esmm?extract=a",
    "esmm?extract=ab",
    "esmm_mma?path=lists",
    "esmm_mma?path=dense&extract=a",
    "esmm_mma?path=lists&extract=ab",
    "esmm_skip?block_skip=0",
};

// With every layout and type of C: they store C in another way than what is chosen for small
// matrices, or take column-major operands alone.
const char* const kVariantsOfC[] = {
    "async_bcsr?min_fill=0&promote=0",
    "async_wcsr?window=8&order=degree&whole=1&part=1&warps=4",
    "async_wcsr?window=16&span=32",
    "async_wcsr?window=32&whole=1&part=1",
    "bitmap_dense?stored=values",
    "dense_cluster?tile_m=128&tile_n=64&cluster=1",
    "csr_merge?own_rows=1",
    "csr_merge?whole_rows=0",
    "csr_merge?whole_rows=1",
    "gather_mma?bands=1",
    "gather_mma?copies=1",
    "gather_mma?forms=2",
    "gather_mma?forms=2&bands=1",
};

void add_cases(std::vector<Case>& cases, const Kernel& kernel, const Options& options,
               std::span<const Layout> layouts, std::span<const ElementType> c_types) {
  for (const Precision precision : kernel.info().precisions)
    for (const Layout layout : layouts)
      for (const ElementType c_type : c_types)
        if (const ElementType type = type_of_c(precision, c_type);
            precision != Precision::fp64 || c_type == c_types.front())
          cases.push_back({&kernel, precision, layout, type, options});
}

// Of a kernel that the program was built without, none.
void add_variants(std::vector<Case>& cases, std::span<const char* const> variants, bool all_of_c) {
  for (const char* text : variants) {
    const Spec spec = Spec::parse(text);
    const Kernel* kernel = Registry<Kernel>::instance().find(spec.name);
    if (kernel == nullptr) continue;
    const std::span<const Layout> layouts = kernel->info().layouts;
    const std::span<const ElementType> c_types = kernel->info().c_types;
    add_cases(cases, *kernel, spec.options, all_of_c ? layouts : layouts.first(1),
              all_of_c ? c_types : c_types.first(1));
  }
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
    add_cases(cases, *kernel, {}, kernel->info().layouts, kernel->info().c_types);
  add_variants(cases, kVariants, false);
  add_variants(cases, kVariantsOfC, true);
  return cases;
}

std::string name_of(const Case& c) {
  std::string name = c.kernel->info().name + "__" + std::string(to_string(c.precision)) +
                     (c.layout == Layout::row_major ? "__row" : "__col") + "__c_" +
                     std::string(to_string(c.c_type));
  for (const auto& [key, value] : c.options.values()) name += "__" + key + "_" + value;
  for (char& ch : name)
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  return name;
}

void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

}  // namespace spmmbench::test
