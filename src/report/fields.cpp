#include "report/fields.hpp"

#include <algorithm>
#include <iterator>

#include "report/document_fields.hpp"
#include "report/limit.hpp"

namespace spmmbench {

template <>
struct Codec<Status> {
  static Json schema() {
    Json names = Json::array();
    for (const Status status : kStatuses) names.push_back(to_string(status));
    return {{"enum", names}};
  }
  static Json write(Status status) { return to_string(status); }
  static Status read(const Json& json) {
    for (const Status status : kStatuses)
      if (json == to_string(status)) return status;
    throw UnexpectedType{kStatusNames};
  }
  static std::string text(Status status) { return std::string(to_string(status)); }
};

namespace {

Json names_of(const auto& values) {
  Json names = Json::array();
  for (const auto value : values) names.push_back(to_string(value));
  return names;
}

const FieldTable<MatrixSummary>& matrix_fields() {
  using M = MatrixSummary;
  static const FieldTable<M> table = {
      field("name", &M::name, "of the file or the generator", kNotEmpty).csv("matrix"),
      field("source", &M::source, "path or gen: spec as given", kNotEmpty),
      field("sha256", &M::sha256, "of the matrix: sizes, structure and values",
            {{"pattern", "^[0-9a-f]{64}$"}}),
      field("rows", &M::rows, ""),
      field("cols", &M::cols, ""),
      field("nnz", &M::nnz, "nonzeros"),
      field("mean_row", &M::mean_row, "mean nonzeros of a row", kNotNegative),
      field("max_row", &M::max_row, "nonzeros of the longest row"),
      field("cv_row", &M::cv_row, "coefficient of variation of the row lengths", kNotNegative),
      field("q1_row", &M::q1_row, "first quartile of the nonzeros in a row").added_later(),
      field("median_row", &M::median_row, "their median").added_later(),
      field("q3_row", &M::q3_row, "their third quartile").added_later(),
      field("p99_row", &M::p99_row, "their 99th percentile").added_later(),
      field("block_fill", &M::block_fill, "nonzeros / entries of the 16 x 16 blocks that have any")
          .added_later(),
  };
  return table;
}

const FieldTable<FormatStats>& format_fields() {
  using F = FormatStats;
  static const FieldTable<F> table = {
      field("name", &F::name, "").csv(""),
      field("bytes", &F::bytes, "everything the kernel reads of A"),
      field("index_bytes", &F::index_bytes, "of which indices and metadata"),
      field("stored", &F::stored, "stored entries, padding included"),
      field("tiles", &F::tiles, "tiles or blocks; 0 where the format has none"),
      field("windows", &F::windows, "row windows; 0 where the format has none"),
      field("fill", &F::fill, "nonzeros / entries that the tiles have room for"),
      field("nnz_per_tile", &F::nnz_per_tile, ""),
      field("nnz_per_window", &F::nnz_per_window, ""),
      field("window_imbalance", &F::window_imbalance,
            "tiles of the largest window / mean tiles of a window that has any"),
      field("extra", &F::extra, "the format's own; units are in the names"),
  };
  return table;
}

const FieldTable<Verdict>& verdict_fields() {
  using V = Verdict;
  // Whether the result is correct follows from the error, so that no document can contradict
  // itself.
  Field<V> error = field("error_over_bound", &V::error_over_bound,
                         "largest |C - Cref| / bound of any element; at most 1 is correct");
  error.read = [read = error.read](V& verdict, const Json& json, const std::string& path) {
    read(verdict, json, path);
    verdict.ok = verdict.error_over_bound <= 1;
    // Until they are read:
    verdict.error_over_typical = verdict.error_over_mean = std::numeric_limits<double>::quiet_NaN();
  };
  static const FieldTable<V> table = {
      error,
      field("worst_row", &V::worst_row, "where the largest error is"),
      field("worst_col", &V::worst_col, ""),
      field(
          "error_over_typical", &V::error_over_typical,
          "largest |C - Cref| / what random rounding errors of a sum of k terms stay below "
          "(8 sqrt(k) instead of k roundings); more is no proof of a fault; nan in rows taken over "
          "from before it was known")
          .added_later(),
      field("incomparable", &V::incomparable,
            "elements of which nothing can be said: the order of the sums decides whether they "
            "overflow")
          .added_later(),
      field("relative_frobenius", &V::relative_frobenius, "||C - Cref|| / ||Cref||"),
      field("error_over_mean", &V::error_over_mean,
            "||C - Cref|| / what it may be for a random B; more than 1 is wrong; nan where B is "
            "given, "
            "and in rows taken over from before it was known")
          .added_later(),
  };
  return table;
}

const FieldTable<ExactTest>& exact_fields() {
  using E = ExactTest;
  static const FieldTable<E> table = {
      field("passed", &E::passed, "every element of C was equal to the reference"),
      field("not_made", &E::not_made, "why there was no test; empty when there was"),
      field("worst_row", &E::worst_row, "the first element that differs, 0 without one"),
      field("worst_col", &E::worst_col, ""),
      field("ms", &E::ms, "what the test took, its own preparation included; in no other figure",
            kNotNegative),
      field("timed_plan", &E::timed_plan,
            "whether the plan that is timed was tested, with other values in place; else a plan of "
            "its own")
          .added_later(),
  };
  return table;
}

const FieldTable<Pick>& pick_fields() {
  using P = Pick;
  static const FieldTable<P> table = {
      field("kernel", &P::kernel, "that it runs", kNotEmpty).csv("picked"),
      field(
          "first", &P::first,
          "the kernel of the first launch, where a plan prepares more while it is launched and was "
          "settled before it was timed; empty where all was prepared when it was bound")
          .not_in_csv()
          .added_later(),
      field("measured_us", &P::measured_us,
            "time of a call of each kernel that was measured, in that order; with a share of the "
            "preparation where calls were given")
          .not_in_csv(),
      field("remembered", &P::remembered, "the times were kept by another run (--cache)")
          .not_in_csv(),
      field("why", &P::why, "the predictions").not_in_csv(),
  };
  return table;
}

const FieldTable<Timing>& timing_fields() {
  using T = Timing;
  static const FieldTable<T> table = {
      field("median_us", &T::median_us, "time of one launch", kNotNegative),
      field("q1_us", &T::q1_us, "first quartile", kNotNegative),
      field("q3_us", &T::q3_us, "third quartile", kNotNegative),
      field("min_us", &T::min_us, "", kNotNegative),
      derived<T>(
          "n", [](const T& timing) { return timing.n(); }, "samples", kAtLeastOne),
      field("launches_per_sample", &T::launches_per_sample, "", kAtLeastOne),
      field("samples_us", &T::samples_us, "time per launch of every sample, in the order measured",
            {{"minItems", 1}})
          .not_in_csv(),
  };
  return table;
}

const FieldTable<Speedups>& speedup_fields() {
  using S = Speedups;
  static const FieldTable<S> table = {
      field("cusparse_default_fp32", &S::cusparse_default_fp32,
            "over cusparse_csr_default at fp32"),
      field("cusparse_best", &S::cusparse_best,
            "over the fastest correct cuSPARSE at the same input precision"),
      field("cublas", &S::cublas, "over cuBLAS on the dense A at the same input precision"),
      field("eigen_fp32", &S::eigen_fp32, "over eigen_csr at fp32, of CPU kernels").added_later(),
      field("eigen", &S::eigen, "over eigen_csr at the same input precision, of CPU kernels")
          .added_later(),
      field("best_in_all", &S::best_in_all,
            "over the best of cuSPARSE, on the CPU over Eigen, by in_all_us")
          .added_later(),
      field("best_is", &S::best_is,
            "the row behind best_in_all, or else behind cusparse_best, on the CPU behind eigen")
          .added_later(),
  };
  return table;
}

const FieldTable<SplitProduct>& split_fields() {
  using S = SplitProduct;
  static const FieldTable<S> table = {
      field("name", &S::name, "as asked for", kNotEmpty).csv("split"),
      field("gpus", &S::gpus, "", kAtLeastOne),
      field("way", &S::way, "of gathering B",
            {{"enum", {"none", "all_gather", "needed_rows", "peer", "pulled"}}}),
      field("received_share", &S::received_share,
            "of the rows of B that other GPUs have, those that one receives"),
      field("sent_bytes", &S::sent_bytes, "in a product, by the GPU that sends most"),
      field("received_bytes", &S::received_bytes, "by the GPU that receives most"),
      field("link_gb_per_s", &S::link_gb_per_s,
            "into a GPU, that way, 1e9 bytes; null where nothing is sent"),
      field("link_latency_us", &S::link_latency_us, "of a transfer of 4 KiB", kNotNegative),
      field("transfer_us", &S::transfer_us, "gathering B alone", kNotNegative),
      field("product_us", &S::product_us, "the product of the slowest part alone", kNotNegative),
      field("one_gpu_us", &S::one_gpu_us, "the product on one GPU; null where it was not measured"),
      field("one_gpu_of_bound", &S::one_gpu_of_bound,
            "the share of its own bound that the product on one GPU reaches")
          .added_later(),
      field("pays_from_us", &S::pays_from_us,
            "the split should pay where one_gpu_us is more than that", kNotNegative),
      field("should_pay", &S::should_pay, "said before it was run"),
      field("pays", &S::pays, "the hot median is less than one_gpu_us"),
  };
  return table;
}

// Writes infinity as "never".
Field<ResultRow> break_even_field() {
  Field<ResultRow> result =
      field("break_even_calls", &ResultRow::break_even_calls,
            "calls from which preparation + calls x hot is less than that of break_even_against; "
            "never: nothing is saved; null: it is that row itself",
            kNotNegative);
  result.schema = {
      {"anyOf", {{{"type", "number"}, {"minimum", 0}}, {{"enum", {"never", nullptr}}}}}};
  result.write = [write = result.write](const ResultRow& row) {
    const Json json = write(row);
    return json == "inf" ? Json("never") : json;
  };
  result.read = [read = result.read](ResultRow& row, const Json& json, const std::string& path) {
    read(row, json == "never" ? Json("inf") : json, path);
  };
  result.columns[0].text = [text = result.columns[0].text](const ResultRow& row) {
    const std::string calls = text(row);
    return calls == "inf" ? "never" : calls;
  };
  return result;
}

// The stages that every row may have, and the sum of all but `load`, empty where nothing was
// prepared. A plug-in's own stages are in the JSON alone.
std::vector<CsvColumn<ResultRow>> stage_columns() {
  std::vector<CsvColumn<ResultRow>> columns;
  for (const std::string name :
       {"load", "reorder", "build", "upload", "tune", "choose", "compare", "transpose"})
    columns.push_back({name + "_ms",
                       [name](const ResultRow& row) {
                         const auto it = row.stages_ms.find(name);
                         return it == row.stages_ms.end() ? std::string()
                                                          : Codec<double>::text(it->second);
                       },
                       true});
  columns.push_back({"prepare_ms",
                     [](const ResultRow& row) {
                       const double ms = preprocessing_ms(row);
                       return ms > 0 ? Codec<double>::text(ms) : std::string();
                     },
                     true});
  return columns;
}

// What was asked for.
FieldTable<ResultRow> case_fields() {
  using R = ResultRow;
  return {
      group("matrix", &R::matrix, matrix_fields(), ""),
      field("n", &R::n, "columns of B and C", kAtLeastOne),
      field("kernel", &R::kernel, "name with the options asked for", kNotEmpty),
      field("baseline", &R::baseline, "a vendor's"),
      field("binary", &R::binary, "treats A's values as 1, so it is not ranked with others"),
      field("params", &R::params, "options in force, chosen ones included"),
      group("pick", &R::pick, pick_fields(), "of a kernel that runs another (auto)", "")
          .added_later(),
      field("precision", &R::precision, "what A and B are rounded to",
            {{"enum", names_of(kPrecisions)}}),
      field("c_type", &R::c_type, "what C is stored as", {{"enum", names_of(kElementTypes)}}),
      field("layout", &R::layout, "of B and C", {{"enum", {"row", "col"}}}),
      field("reorder", &R::reorder, "row ordering", kNotEmpty),
      field("alpha", &R::alpha, "of C = alpha A B + beta C").added_later(),
      field("beta", &R::beta, "likewise").added_later(),
      field("batch", &R::batch, "products C_i = A B_i of n columns each, in one launch",
            kAtLeastOne)
          .added_later(),
      group("split", &R::split, split_fields(), "of a case on several GPUs", "split_")
          .added_later(),
  };
}

// How it went until the product was ready.
FieldTable<ResultRow> preparation_fields() {
  using R = ResultRow;
  return {
      field("status", &R::status, ""),
      field("reason", &R::reason, "why not ok; empty otherwise"),
      field(
          "a_memory", &R::a_memory,
          "where A lies before it is prepared, cuda: in the GPU's memory alone, so that no copy to "
          "it counts (--a-memory); null where A was not prepared")
          .added_later(),
      field("stages_ms", &R::stages_ms,
            "load, reorder, build, upload, tune, compare, choose, transpose, and a plug-in's own")
          .csv(stage_columns()),
      field("kept_stages", &R::kept_stages,
            "stages whose result --cache had, and whose time is that of the run that made it")
          .added_later(),
      group("format", &R::format, format_fields(), "what A was stored as", "format_"),
      field("device_index", &R::device_index,
            "the GPU of the case, as --device counts; null on a CPU, and where the case did not "
            "begin or its process died")
          .added_later(),
      field("device_bytes", &R::device_bytes,
            "held by the kernel besides B and C: on the device, of a CPU kernel in host memory"),
  };
}

FieldTable<ResultRow> check_fields() {
  using R = ResultRow;
  return {
      group("verify", &R::verify, verdict_fields(), "against the fp64 reference"),
      group("exact", &R::exact, exact_fields(),
            "the same structure with values for which every product and sum is exact; null when "
            "the case ended before",
            "exact_")
          .added_later(),
      field("bit_identical", &R::bit_identical,
            "every one of repeated launches gave the same C; null: not asked for (--repeat-check)")
          .added_later(),
  };
}

FieldTable<ResultRow> time_fields() {
  using R = ResultRow;
  return {
      group("hot", &R::hot, timing_fields(), "back-to-back launches", "hot_"),
      group("cold", &R::cold, timing_fields(), "the L2 cache flushed before each launch", "cold_"),
      field("gflops", &R::gflops, "2 nonzeros N / hot median, 1e9 per second", kNotNegative),
      field("issued_flops", &R::issued_flops, "of one launch, padding included", kNotNegative),
      field("compulsory_bytes", &R::compulsory_bytes,
            "A in CSR, every referenced row of B once, C once", kNotNegative),
      field("bound_us", &R::bound_us, "compulsory_bytes / measured copy bandwidth", kNotNegative),
      field("of_bound", &R::of_bound, "bound_us / hot median", kNotNegative),
      derived<R>("gb_per_s", gb_per_s, "compulsory_bytes / hot median, 1e9 per second")
          .added_later(),
      derived<R>("limit", limit_of,
                 "what takes most of its time, by count: launch, output, gathers, padding "
                 "or A; empty on a CPU and without a time")
          .added_later(),
  };
}

// What compares it with other rows, several calls with preparation, and the rest.
FieldTable<ResultRow> comparison_fields() {
  using R = ResultRow;
  return {
      group("speedup", &R::speedup, speedup_fields(),
            "hot median of a baseline / this one's; null without a correct baseline", "speedup_"),
      break_even_field(),
      field("break_even_against", &R::break_even_against,
            "for an ordered row the same kernel without the order, for others the row that is done "
            "first when it is called once")
          .added_later(),
      field("in_all_us", &R::in_all_us,
            "(preparation + calls x hot median) / calls, for the calls of the context")
          .added_later(),
      field("calls_us", &R::calls_us,
            "time of preparation and so many calls together, measured from a flushed cache, by the "
            "number of calls (--calls-curve)")
          .not_in_csv()
          .added_later(),
      field("metrics", &R::metrics, "a kernel's own figures and a profiler's counters"),
      field("command", &R::command, "measures this one case again",
            {{"pattern", "^spmmbench run "}}),
  };
}

}  // namespace

const FieldTable<ResultRow>& row_fields() {
  static const FieldTable<ResultRow> table = [] {
    FieldTable<ResultRow> fields;
    for (const auto& part :
         {case_fields, preparation_fields, check_fields, time_fields, comparison_fields})
      std::ranges::move(part(), std::back_inserter(fields));
    return fields;
  }();
  return table;
}

const std::vector<CsvColumn<ResultRow>>& row_columns() {
  static const std::vector<CsvColumn<ResultRow>> columns = columns_of(row_fields());
  return columns;
}

Json to_json(const ResultRow& row) { return write_fields(row_fields(), row); }

ResultRow row_from_json(const Json& json) { return read_fields(row_fields(), json); }

}  // namespace spmmbench
