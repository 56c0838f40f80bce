// The program's measuring behind the C interface of include/spmmbench/measure.h.

#include "spmmbench/measure.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "library/arguments.hpp"
#include "library/open_device.hpp"
#include "library/status.hpp"
#include "measure/bench.hpp"
#include "plugin/plugin_structs.hpp"
#include "report/fields.hpp"

struct spmmbench_bench : spmmbench::Bench {
  using Bench::Bench;
  std::string row;  // that run() has returned a pointer into
};

namespace spmmbench {
namespace {

DeviceKind read_device(std::int32_t device, const char* what) {
  if (device != SPMMBENCH_HOST && device != SPMMBENCH_CUDA)
    throw Error(fmt::format("{} {}: expected HOST or CUDA", what, device));
  return device == SPMMBENCH_CUDA ? DeviceKind::cuda : DeviceKind::host;
}

SampleLimits read_limits(const spmmbench_case& given) {
  if (!(given.noise >= 0)) throw Error("spmmbench_case.noise: expected a number from 0");
  if (given.min_samples < 1 || given.max_samples < given.min_samples)
    throw Error("spmmbench_case: expected min_samples from 1, and max_samples from that on");
  if (!(given.max_seconds > 0)) throw Error("spmmbench_case.max_seconds: expected one above 0");
  return {given.noise, given.min_samples, given.max_samples, given.max_seconds};
}

// What a function of the product returned, as an exception unless it is SPMMBENCH_OK.
void expect_ok(const spmmbench_product& product, spmmbench_status status) {
  if (status == SPMMBENCH_OK) return;
  const char* const said = product.last_error == nullptr ? nullptr : product.last_error();
  const std::string why =
      said == nullptr || *said == '\0' ? "the product failed and gave no reason" : said;
  if (status == SPMMBENCH_UNSUPPORTED) throw Unsupported(why);
  if (status == SPMMBENCH_OUT_OF_MEMORY) throw OutOfMemory(why);
  if (status == SPMMBENCH_DEVICE_LOST) throw DeviceError(why, true);
  throw Error(why);
}

// `self` is kept until the launch is destroyed.
Launch launch_of(const spmmbench_product& product, std::shared_ptr<void> self) {
  return [&product, self = std::move(self)](const DenseView& b, const DenseView& c, Stream stream) {
    const spmmbench_dense dense_b = dense_of_c(b), dense_c = dense_of_c(c);
    expect_ok(product, product.launch(self.get(), &dense_b, &dense_c, stream.handle));
  };
}

std::shared_ptr<void> not_owned(void* self) { return {std::shared_ptr<void>(), self}; }

// `given` outlives the result.
BroughtProduct read_product(const spmmbench_product& given) {
  (void)required(given.launch, "spmmbench_product.launch");
  if ((given.with_values == nullptr) != (given.release == nullptr))
    throw Error("spmmbench_product: expected both with_values and release, or neither");
  if ((given.flags & ~static_cast<std::uint32_t>(SPMMBENCH_IGNORES_STREAM)) != 0)
    throw Error(
        fmt::format("spmmbench_product.flags {}: expected 0 or IGNORES_STREAM", given.flags));
  BroughtProduct product;
  product.name = &required(given.name, "spmmbench_product.name");
  product.accumulation = read_accumulation(given.accumulation);
  product.ignores_stream = given.flags != 0;
  product.launch = launch_of(given, not_owned(given.self));
  if (given.take_c != nullptr)
    product.take_c = [&given](const DenseView& c, Stream stream) {
      const spmmbench_dense dense = dense_of_c(c);
      expect_ok(given, given.take_c(given.self, &dense, stream.handle));
    };
  if (given.with_values != nullptr)
    product.with_values = [&given](const CsrMatrix& a) {
      void* other = nullptr;
      const void* const values =
          a.values64.empty() ? static_cast<const void*>(a.values.data()) : a.values64.data();
      expect_ok(given, given.with_values(given.self, static_cast<const float*>(values), &other));
      return launch_of(given, std::shared_ptr<void>(other, given.release));
    };
  return product;
}

spmmbench_status open(const spmmbench_case* asked, spmmbench_bench** bench) noexcept {
  return guarded([&] {
    required(bench, "bench");
    const spmmbench_case& given = checked(asked, "spmmbench_case");
    const spmmbench_csr& csr = checked(given.a, "spmmbench_csr", SPMMBENCH_CSR_SIZE_1);
    if (csr.row_ids != nullptr) throw Error("spmmbench_csr.row_ids: expected NULL");
    BenchSettings settings;
    settings.matrix = &required(given.matrix, "spmmbench_case.matrix");
    settings.precision = read_precision(given.precision);
    settings.shape = read_shape(given.shape);
    settings.packed = given.packed != 0;
    settings.seed = given.seed;
    settings.limits = read_limits(given);
    const DeviceKind kind = read_device(given.device, "spmmbench_case.device");
    const DeviceKind memory = read_device(csr.memory, "spmmbench_csr.memory");
    std::unique_ptr<Device> device = open_device(kind);
    const std::unique_ptr<Device> other = memory == kind ? nullptr : open_device(memory);
    // The bench rounds them.
    if (is_scaled(settings.precision))
      throw Unsupported("callables are not measured in fp8: they are given no scale of B");
    const bool fp64 = settings.precision == Precision::fp64;
    CsrMatrix a = read_csr(csr, fp64 ? Precision::fp64 : Precision::fp32, other ? *other : *device);
    check_bytes(a.rows, a.cols, settings.precision, settings.shape);
    *bench = std::make_unique<spmmbench_bench>(std::move(a), std::move(settings), std::move(device))
                 .release();
  });
}

spmmbench_status run(spmmbench_bench* bench, const spmmbench_product* product,
                     const char** row) noexcept {
  return guarded([&] {
    required(row, "row");
    const BroughtProduct read = read_product(checked(product, "spmmbench_product"));
    spmmbench_bench& own = required(bench, "bench");
    own.row = to_json(own.run(read))
                  .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    *row = own.row.c_str();
  });
}

void close(spmmbench_bench* bench) noexcept { delete bench; }

}  // namespace
}  // namespace spmmbench

extern "C" const spmmbench_measure* spmmbench_measuring(std::uint32_t version) {
  static constexpr spmmbench_measure kMeasure = {
      .size = sizeof(spmmbench_measure),
      .version = SPMMBENCH_MEASURE_VERSION,
      .open = spmmbench::open,
      .run = spmmbench::run,
      .close = spmmbench::close,
      .last_error = [] { return spmmbench::last_error.c_str(); }};
  return version == SPMMBENCH_MEASURE_VERSION ? &kMeasure : nullptr;
}
