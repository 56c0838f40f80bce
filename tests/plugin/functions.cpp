// A plug-in for the tests, made of functions by spmmbench/plugin.hpp.

#include "spmmbench/plugin.hpp"

namespace {

using namespace spmmbench::plugin;

Plan by_rows(std::vector<std::int32_t> row_ptr, std::vector<std::int32_t> col_idx,
             std::vector<float> values) {
  return {[=](const spmmbench_dense& b, const spmmbench_dense& c, void*) {
            for (std::int64_t i = 0; i < c.rows; ++i)
              for (std::int64_t j = 0; j < c.cols; ++j) {
                float sum = 0;
                for (std::int32_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
                  sum += values[e] * static_cast<const float*>(b.data)[col_idx[e] * b.ld + j];
                static_cast<float*>(c.data)[i * c.ld + j] = sum;
              }
          },
          [](spmmbench_report& report) { report.issued_flops = 1; }};
}

Bind prepare(const spmmbench_problem& problem, Stages& stages) {
  const spmmbench_csr& a = *problem.a;
  const auto copy = [](auto* data, std::int64_t count) { return std::vector(data, data + count); };
  auto row_ptr = copy(static_cast<const std::int32_t*>(a.row_ptr), a.rows + 1);
  auto col_idx = copy(static_cast<const std::int32_t*>(a.col_idx), a.nnz);
  auto values =
      stages.time("copy", [&] { return copy(static_cast<const float*>(a.values), a.nnz); });
  return [=](const spmmbench_shape& shape, Stages&) -> Plan {
    if (shape.n == 7) throw Refused(SPMMBENCH_UNSUPPORTED, "does not like 7 columns");
    if (shape.n == 9) throw std::runtime_error("9 columns are too many");
    return by_rows(row_ptr, col_idx, values);
  };
}

// alpha * A * B + beta * C by the launch above and what C was.
Bind prepare_scaled(const spmmbench_problem& problem, Stages& stages) {
  return [bind = prepare(problem, stages)](const spmmbench_shape& shape, Stages& told) -> Plan {
    Plan plan = bind(shape, told);
    plan.launch_scaled = [launch = plan.launch](const spmmbench_dense& b, const spmmbench_dense& c,
                                                double alpha, double beta, void* stream) {
      auto* const values = static_cast<float*>(c.data);
      const std::vector<float> before(values, values + c.rows * c.ld);
      launch(b, c, stream);
      for (std::int64_t i = 0; i < c.rows; ++i)
        for (std::int64_t at = i * c.ld; at < i * c.ld + c.cols; ++at) {
          values[at] *= static_cast<float>(alpha);
          if (beta != 0) values[at] += static_cast<float>(beta) * before[at];
        }
    };
    return plan;
  };
}

const Kernel by_functions(describe("by_functions", "for tests", "tests"), prepare);
spmmbench_kernel scaled_description() {
  spmmbench_kernel kernel = describe("scaled", "for tests", "tests");
  kernel.data_alignment = 256;
  return kernel;
}

const Kernel scaled(scaled_description(), prepare_scaled, Scalars::taken);
const char* const kernels = "a name that the entry must not hide";

}  // namespace

extern "C" SPMMBENCH_PLUGIN("functions", kernels, by_functions.c(), scaled.c())
