#pragma once
// One measured case, and the run that it belongs to. JSON, CSV, table and compare are made from
// these. results/schema.json describes the JSON form, where absent optionals are null.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/measurement.hpp"
#include "spmmbench/pick.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

inline constexpr int kSchemaVersion = 1;

enum class Status { ok, wrong, skipped, failed, timeout };
std::string_view to_string(Status);

struct MatrixSummary {
  std::string name, source, sha256;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  // Nonzeros in a row: mean, coefficient of variation, and those of the longest row.
  double mean_row = 0, cv_row = 0;
  std::int64_t max_row = 0;
  // Quartiles and the 99th percentile of the nonzeros in a row.
  std::optional<double> q1_row = {}, median_row = {}, q3_row = {}, p99_row = {};
  // Nonzeros over the entries of the 16 x 16 blocks that have any; 1 without nonzeros.
  std::optional<double> block_fill = {};
};

// Hot median of a baseline over that of this case, for the same matrix, N and layout. Null where
// the baseline has no correct row. In runs without a GPU, Eigen takes the place of cuSPARSE.
struct Speedups {
  std::optional<double> cusparse_default_fp32, cusparse_best, cublas;
  std::optional<double> eigen_fp32, eigen;
  // The best cuSPARSE algorithm by ResultRow::in_all_us, on the CPU Eigen, over this case.
  std::optional<double> best_in_all;
  // The row that cusparse_best divides by, without a GPU the one that `eigen` does; for
  // best_in_all, where that is given.
  std::optional<std::string> best_is;
};

// How a product was divided among GPUs. Bytes are those of the GPU that has most of them, times
// those of the slowest.
struct SplitProduct {
  std::string name;  // as asked for
  int gpus = 1;
  std::string way;            // of gathering B: none, all_gather, needed_rows, peer or pulled
  double received_share = 0;  // of the rows of B that others have, those that a GPU receives
  double sent_bytes = 0, received_bytes = 0;  // in a product
  // Of that way, measured at the start; empty where nothing is sent.
  std::optional<double> link_gb_per_s, link_latency_us;
  double transfer_us = 0, product_us = 0;  // alone; together they are the row's hot time
  std::optional<double> one_gpu_us;  // the same product on one GPU; empty where it does not fit
  std::optional<double> one_gpu_of_bound;  // the share that it reaches of its own memory bound
  double pays_from_us = 0;               // what one_gpu_us must be at the least, by the link alone
  std::optional<bool> should_pay, pays;  // said beforehand, and measured
};

struct ResultRow {
  MatrixSummary matrix;
  std::int64_t n = 0;
  std::string kernel;  // name with the options asked for, as Spec::to_string
  bool baseline = false;
  bool binary = false;
  std::map<std::string, std::string> params;  // in force
  std::optional<Pick> pick;                   // of a kernel that runs another
  std::string precision, c_type, layout, reorder;
  double alpha = 1, beta = 0;         // of C = alpha * A * B + beta * C
  std::int64_t batch = 1;             // products C_i = A * B_i of N columns each
  std::optional<SplitProduct> split;  // of a case on several GPUs
  Status status = Status::failed;
  std::string reason;  // why not ok; empty otherwise
  // Before A was prepared; cuda: in the GPU's memory alone. Null where it was not prepared.
  std::optional<DeviceKind> a_memory;
  // Wall time of load, reorder, build, upload, tune, compare, choose, and of a plug-in's own
  // stages.
  std::map<std::string, double> stages_ms;
  std::vector<std::string> kept_stages;  // StageTimer::kept
  std::optional<FormatStats> format;
  std::optional<int> device_index;  // the GPU of the case, as --device counts; empty on a CPU
  std::optional<std::uint64_t> device_bytes;
  std::optional<Verdict> verify;
  std::optional<ExactTest> exact;
  std::optional<bool> bit_identical;  // C of repeated launches, where that was asked for
  std::optional<Timing> hot, cold;
  std::optional<double> gflops;        // 2 * nnz * N / hot median, 1e9 per second
  std::optional<double> issued_flops;  // with padding
  std::optional<double> compulsory_bytes, bound_us, of_bound;
  Speedups speedup;
  // After how many calls this row, preparation included, overtakes `break_even_against`: for an
  // ordered row the same kernel without the order, for others the row that is cheapest for one
  // call. Null for that row itself. Infinity ("never" in JSON) where a call takes no less time.
  std::optional<double> break_even_calls;
  std::optional<std::string> break_even_against;
  // (preparation + calls x hot) / calls, for RunContext::calls. Null where that is 0.
  std::optional<double> in_all_us;
  // Of each number of calls asked for, as text: microseconds of preparation and this many calls
  // together, measured.
  std::vector<std::pair<std::string, double>> calls_us;
  std::map<std::string, double> metrics;
  std::string command;  // reproduces this one row
};

struct RunContext {
  std::string tool_version, git_revision, build_flags, started_utc, hostname;
  std::string build_id;  // the linker's, of the executable; empty where it is not known
  std::vector<std::string> argv;
  std::map<std::string, std::string> tags;  // --tag KEY=VALUE
  std::vector<std::string> shards;          // of the inputs, as "1/3"; empty: all
  std::uint64_t seed = 0;
  std::int64_t calls = 0;  // rankings spread preparation over this many calls; 0: they leave it out
  DeviceInfo device;
  // Error correction of the GPU's memory, and its division into instances; null where the driver
  // does not say.
  std::optional<bool> ecc, mig;
  double copy_gb_per_s = 0;  // measured at start, read + written
  // What `auto` predicts with; absent in a run without it. Gather: rows of 256 bytes at random
  // places of a table of 16 MiB (less where a third of the L2 cache is less), 1e9 bytes per second.
  // Dense: cuBLAS on two fp16 matrices of 8192 x 8192 (smaller where a quarter of the free memory
  // is less), 1e12 operations per second; absent also without cuBLAS.
  std::optional<double> gather_gb_per_s, dense_tflops;
  double timer_floor_us = 0;  // time of two events with nothing between, part of every cold time
  ClockState clocks_before, clocks_after;
  // Caps of sampling and noise limit; what the inputs depend on (b_file and its SHA-256, bin_type,
  // dims, prune); isolated; and the hash of each plug-in.
  std::map<std::string, std::string> protocol;
};

struct ResultDocument {
  RunContext context;
  std::vector<ResultRow> rows;
  bool complete = false;  // false while running or after an interruption
};

}  // namespace spmmbench
