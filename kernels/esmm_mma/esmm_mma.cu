// esmm_mma: C = A * B for dense-stored A and B with zeros in both, on tensor cores. From the
// patterns of both operands (32 rows of A, 32 columns of B, as in esmm) every tile of 128 x 256 of
// C gets a list of the k-indices that survive in it. Their lines are gathered into a ring and
// multiplied by wgmma, 32 columns at a time. Where the lists leave nearly all products, cuBLAS
// multiplies A as a dense matrix instead.
//
// The list is in the order of the strips of B that are nonzero: 16 neighbours (8 in tf32) have
// nearly the same, and no others are loaded or multiplied. A survivor is multiplied for all rows of
// the tile, so that an Inf or NaN of B that meets zeros of A only leaves no NaN where its k is
// skipped, and does elsewhere.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <limits>
#include <type_traits>

#include "common/dense_copy.hpp"
#include "common/dependent_launch.hpp"
#include "common/shared_limit.hpp"
#include "esmm_mma/device.cuh"
#include "esmm_mma/patterns.cuh"
#include "format/pattern.hpp"
#include "gpu/cuda_check.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

namespace mma = esmm_mma;

const auto kPath = auto_choice_option(
    "path", {"lists", "dense"},
    "products over lists, or cuBLAS on A with its zeros; auto: by the share that lists leave");
const auto kExtract = choice_option(
    "extract", "none", {"none", "a", "ab"},
    "patterns made inside every launch: none (compute only), a (B's cached), ab (total)");

// Of the dense products, what lists may leave before cuBLAS is faster; measured on an H200 at
// 4096^3.
double dense_share(Precision precision) { return precision == Precision::tf32 ? 0.13 : 0.22; }

const Kernel& cublas_dense() { return Registry<Kernel>::instance().at("cublas_dense"); }

Support supports_cublas(const Problem& problem, const DeviceInfo& device) {
  return check_support(cublas_dense(), Problem{problem, problem, {}}, device);
}

constexpr std::int64_t kListLine = 32;  // entries; lists begin at whole lines of 128 bytes

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Sizes {
  std::int64_t m, n, k;
  std::int64_t panels_a, panels_b, tiles, pitch;

  Sizes(std::int64_t m, std::int64_t n, std::int64_t k)
      : m(m),
        n(n),
        k(k),
        panels_a(ceil_div(m, mma::kTileRows)),
        panels_b(ceil_div(n, mma::kTileColumns)),
        tiles(panels_a * panels_b),
        pitch(ceil_div(k, kListLine) * kListLine) {}

  std::size_t lines_bytes(ElementType type) const {
    return static_cast<std::size_t>(panels_a * mma::kTileRows * k) * bytes_of(type);
  }
  std::size_t masks_bytes() const { return static_cast<std::size_t>(panels_a * k); }
  std::int64_t entries() const { return panels_b * k; }
  std::size_t list_bytes() const {
    return static_cast<std::size_t>(tiles * pitch) * sizeof(std::uint32_t);
  }
  std::size_t work_bytes() const { return static_cast<std::size_t>(tiles) * sizeof(mma::TileWork); }
};

// Calls run.operator()<Input>() with the tag of wgmma's inputs.
template <class Run>
void with_input(Precision precision, Run&& run) {
  switch (precision) {
    case Precision::fp16: run.template operator()<__half>(); break;
    case Precision::bf16: run.template operator()<__nv_bfloat16>(); break;
    default: run.template operator()<ptx::Tf32>(); break;
  }
}

// A in lines of its strips, with its patterns. Where launches extract them, also row by row.
class LinedA {
 public:
  LinedA(const SparseOperand& a, bool keeps_dense, Device& device, StageTimer& stages)
      : precision(a.precision), nnz(a.nnz()), shape_(dense_shape(a)), sizes_(a.m(), 0, a.k()) {
    {
      const auto timed = stages.scope("upload");
      dense_ = upload_dense(*a.a, shape_, device);
      lines = device.allocate(sizes_.lines_bytes(shape_.type));
      masks = device.allocate(sizes_.masks_bytes());
    }
    const auto launch = [&] { launch_extract(device.stream()); };
    {
      const auto timed = stages.scope("a_pattern");
      launch();
      device.synchronize();
    }
    pattern = OperandPattern::of_shape(a.m(), a.k());
    pattern.bits.resize(pattern.strips * pattern.words);
    std::vector<std::uint8_t> host(masks.bytes());
    device.download(host.data(), masks.data(), host.size());
    for (std::int64_t strip = 0; strip < pattern.strips; ++strip)
      for (std::int64_t k = 0; k < pattern.length; ++k)
        if (host[strip / mma::kStripsA * pattern.length + k] >> strip % mma::kStripsA & 1)
          pattern.bits[strip * pattern.words + k / 32] |= 1U << k % 32;
    if (!keeps_dense) Buffer().swap(dense_);
  }

  void launch_extract(Stream stream) const {
    const std::int64_t words = ceil_div(sizes_.k, mma::kWord);
    with_input(precision, [&]<class Input>() {
      using T = typename mma::Shape<Input>::Element;
      mma::extract_a<T><<<static_cast<unsigned>(sizes_.panels_a * words), mma::kStripsA * 32, 0,
                          static_cast<cudaStream_t>(stream.handle)>>>(
          dense_.as<T>(), shape_.ld, static_cast<int>(sizes_.m), static_cast<int>(sizes_.k),
          static_cast<int>(words), masks.as<std::uint8_t>(), lines.as<T>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }
  std::size_t bytes() const { return sum_of_bytes(dense_, lines, masks); }

  Precision precision;
  std::int64_t nnz;
  Buffer lines, masks;
  OperandPattern pattern;

 private:
  DenseView shape_;
  Sizes sizes_;
  Buffer dense_;
};

// B's entries, sorted panel by panel.
class SortedEntries {
 public:
  SortedEntries(const Sizes& sizes, Device& device) : sizes_(sizes) {
    for (int i = 0; i < 2; ++i) {
      keys_[i] = device.allocate(sizes.entries() * sizeof(std::uint32_t));
      entries_[i] = device.allocate(sizes.entries() * sizeof(std::uint32_t));
    }
    std::size_t bytes = 0;
    sort(nullptr, bytes, nullptr);
    temporary_ = device.allocate(bytes);
  }

  void launch(const DenseView& b, Precision precision, Stream stream) {
    auto* const cuda_stream = static_cast<cudaStream_t>(stream.handle);
    const auto blocks =
        static_cast<unsigned>(sizes_.panels_b * ceil_div(sizes_.k, mma::kExtractRows));
    with_input(precision, [&]<class Input>() {
      using T = typename mma::Shape<Input>::Element;
      mma::extract_b<T><<<blocks, mma::kExtractRows * 32, 0, cuda_stream>>>(
          static_cast<const T*>(b.data), b.ld, static_cast<int>(sizes_.k),
          static_cast<int>(sizes_.n), static_cast<int>(sizes_.panels_b),
          keys_[0].as<std::uint32_t>(), entries_[0].as<std::uint32_t>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
    std::size_t bytes = temporary_.bytes();
    sort(temporary_.data(), bytes, cuda_stream);
  }
  const std::uint32_t* sorted() const { return sorted_; }

  OperandPattern pattern(Device& device) const {
    OperandPattern p = OperandPattern::of_shape(sizes_.n, sizes_.k);
    p.bits.resize(p.strips * p.words);
    std::vector<std::uint32_t> host(sizes_.entries());
    device.download(host.data(), sorted_, host.size() * sizeof(std::uint32_t));
    for (std::int64_t at = 0; at < sizes_.entries(); ++at)
      for (int s = 0; s < mma::kStripsB; ++s) {
        const std::int64_t k = host[at] & mma::kIndexMask,
                           strip = at / sizes_.k * mma::kStripsB + s;
        if (host[at] >> (mma::kShiftB + s) & 1) p.bits[strip * p.words + k / 32] |= 1U << k % 32;
      }
    return p;
  }
  std::size_t bytes() const {
    return sum_of_bytes(keys_[0], keys_[1], entries_[0], entries_[1], temporary_);
  }

 private:
  // Without memory it only says how many bytes it needs.
  void sort(void* temporary, std::size_t& bytes, cudaStream_t stream) {
    cub::DoubleBuffer<std::uint32_t> keys(keys_[0].as<std::uint32_t>(),
                                          keys_[1].as<std::uint32_t>());
    cub::DoubleBuffer<std::uint32_t> entries(entries_[0].as<std::uint32_t>(),
                                             entries_[1].as<std::uint32_t>());
    const int bits =
        mma::kStripsB +
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sizes_.panels_b - 1)));
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
        temporary, bytes, keys, entries, static_cast<int>(sizes_.entries()), 0, bits, stream));
    sorted_ = entries.Current();
  }

  Sizes sizes_;
  Buffer keys_[2], entries_[2], temporary_;
  const std::uint32_t* sorted_ = nullptr;
};

class EsmmMmaPlan final : public Plan {
 public:
  EsmmMmaPlan(const LinedA& a, const Problem& problem, Device& device)
      : a_(a),
        device_(device),
        sizes_(problem.m(), problem.n, problem.k()),
        problem_(problem),
        path_(kPath(problem.options)),
        extract_(kExtract(problem.options)),
        entries_(sizes_, device),
        lists_(device.allocate(sizes_.list_bytes())),
        work_(device.allocate(sizes_.work_bytes())),
        ctas_(static_cast<unsigned>(std::min<std::int64_t>(sizes_.tiles, device.info().sm_count))) {
    with_input(a.precision, [&]<class Input>() {
      using S = mma::Shape<Input>;
      allow_shared_bytes(mma::multiply_lists<S>, mma::kSharedBytes<S>);
    });
  }

  void inspect_b(const DenseView& b, StageTimer& stages) override {
    const Stream stream = device_.stream();
    const auto once = [&](const char* name, auto&& launch) {
      {
        const auto timed = stages.scope(name);
        launch();
        device_.synchronize();
      }
      constexpr int kRepeats = 10;
      metrics_[fmt::format("{}_us", name)] = device_.time_us(launch, kRepeats) / kRepeats;
    };
    once("b_pattern", [&] { entries_.launch(b, a_.precision, stream); });
    once("lists", [&] { launch_lists(stream); });
    describe();
    const double share =
        issued_flops_ / (2.0 * static_cast<double>(sizes_.m) * static_cast<double>(sizes_.k) *
                         static_cast<double>(sizes_.n));
    const bool dense =
        path_ ? *path_ == "dense"
              : share > dense_share(a_.precision) && supports_cublas(problem_, device_.info()).ok;
    if (!dense) return;
    dense_a_ = cublas_dense().prepare(problem_, {}, device_, stages);
    dense_ = dense_a_->bind(problem_, stages);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (extract_ != "none") a_.launch_extract(stream);
    if (extract_ == "ab") entries_.launch(b, a_.precision, stream);
    if (extract_ != "none") launch_lists(stream);
    if (dense_) return dense_->launch(b, c, stream);
    if (c.data != c_.data || c.ld != c_.ld) {
      map_c_ = tile_store::map_of(c);
      c_ = c;
    }
    const mma::Arguments args{.a_lines = a_.lines.data(),
                              .lists = lists_.as<std::uint32_t>(),
                              .work = work_.as<mma::TileWork>(),
                              .pitch = sizes_.pitch,
                              .k = static_cast<int>(sizes_.k),
                              .panels_a = static_cast<int>(sizes_.panels_a),
                              .panels_b = static_cast<int>(sizes_.panels_b),
                              .b = b.data,
                              .ldb_bytes = static_cast<unsigned>(b.ld * bytes_of(b.type)),
                              .n = static_cast<int>(sizes_.n),
                              .type_c = c.type};
    with_input(a_.precision, [&]<class Input>() {
      using S = mma::Shape<Input>;
      launch_dependent(mma::multiply_lists<S>, dim3(ctas_), dim3(S::kThreads), mma::kSharedBytes<S>,
                       stream, true, args, map_c_);
    });
  }

  PlanReport report() const override {
    PlanReport r;
    r.device_bytes = a_.bytes() + entries_.bytes() + sum_of_bytes(lists_, work_);
    r.format = a_.pattern.stats(a_.nnz);
    r.params = {{"path", dense_ ? "dense" : "lists"}, {"extract", extract_}};
    r.metrics = metrics_;
    r.issued_flops = issued_flops_;
    if (dense_) {
      const PlanReport dense = dense_->report();
      r.device_bytes += dense.device_bytes;
      r.issued_flops = dense.issued_flops;
    }
    return r;
  }

 private:
  void launch_lists(Stream stream) {
    with_input(a_.precision, [&]<class Input>() {
      mma::list_tiles<mma::Shape<Input>><<<static_cast<unsigned>(sizes_.tiles), mma::kListThreads,
                                           0, static_cast<cudaStream_t>(stream.handle)>>>(
          entries_.sorted(), a_.masks.as<std::uint8_t>(), static_cast<int>(sizes_.k),
          static_cast<int>(sizes_.panels_b), sizes_.pitch, lists_.as<std::uint32_t>(),
          work_.as<mma::TileWork>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }

  void describe() {
    std::vector<mma::TileWork> work(sizes_.tiles);
    device_.download(work.data(), work_.data(), sizes_.work_bytes());
    double products = 0;
    for (const mma::TileWork& tile : work) products += tile.products;
    with_input(a_.precision, [&]<class Input>() {
      issued_flops_ = products * 2.0 * mma::kTileRows * mma::kStrip * mma::Shape<Input>::kChunkK;
    });
    const OperandPattern b = entries_.pattern(device_);
    const auto density = [](const OperandPattern& p) {
      return static_cast<double>(p.set_bits()) /
             (static_cast<double>(p.strips) * static_cast<double>(p.length));
    };
    metrics_["a_pattern_density"] = density(a_.pattern);
    metrics_["b_pattern_density"] = density(b);
    metrics_["k_skip_fraction"] = 1 - needed_fraction(a_.pattern, b, 1, 1, 1);
    metrics_["tile_needed_fraction"] =
        needed_fraction(a_.pattern, b, mma::kStripsA, mma::kStripsB, 1);
  }

  const LinedA& a_;
  Device& device_;
  Sizes sizes_;
  Problem problem_;
  std::optional<std::string> path_;
  std::string extract_;
  SortedEntries entries_;
  Buffer lists_, work_;
  std::unique_ptr<Prepared> dense_a_;  // of cublas_dense; empty where lists multiply
  std::unique_ptr<Plan> dense_;
  unsigned ctas_;
  DenseView c_;  // of map_c_
  CUtensorMap map_c_{};
  double issued_flops_ = 0;
  std::map<std::string, double> metrics_;
};

class EsmmMmaPrepared final : public Prepared {
 public:
  EsmmMmaPrepared(const SparseOperand& a, const Options& options, Device& device,
                  StageTimer& stages)
      : operand_(a),
        options_(options),
        a_(a, kExtract(options) != "none", device, stages),
        device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const auto timed = stages.scope("upload");
    return std::make_unique<EsmmMmaPlan>(a_, Problem{operand_, shape, options_}, device_);
  }

 private:
  SparseOperand operand_;
  Options options_;
  LinedA a_;
  Device& device_;
};

class EsmmMma final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  // The copies of A and the lists are what limits it; tiles and entries are counted in 32 bits.
  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Support dense = supports_dense(problem, device);
    if (!dense.ok) return dense;
    const Sizes s(problem.m(), problem.n, problem.k());
    constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
    if (s.k > std::int64_t{1} << mma::kIndexBits)
      return Support::no(fmt::format("more than 2^{} columns of A", mma::kIndexBits));
    if (s.m > kLimit || s.n > kLimit || s.tiles > kLimit || s.entries() > kLimit ||
        s.panels_a * ceil_div(s.k, mma::kWord) > kLimit)
      return Support::no("more than 2^31 tiles of 128 x 256 or pattern words");
    const ElementType type = storage_type(problem.precision);
    const DenseView b = make_b_view(s.k, s.n, Layout::row_major, type);
    if (static_cast<std::size_t>(b.ld) * bytes_of(type) > std::numeric_limits<unsigned>::max())
      return Support::no("rows of B of 4 GiB and more");
    // Twice keys and entries, and what sorting them takes: less than a quarter of that.
    const std::size_t sorting = static_cast<std::size_t>(s.entries()) * 5 * sizeof(std::uint32_t);
    std::size_t bytes = dense.device_bytes + s.lines_bytes(type) + s.masks_bytes() + sorting +
                        s.list_bytes() + s.work_bytes();
    if (kPath(problem.options) != "lists") {
      const Support cublas = supports_cublas(problem, device);
      if (cublas.ok) bytes += cublas.device_bytes;
      else if (kPath(problem.options) == "dense") return cublas;
    }
    if (bytes > device.memory_bytes)
      return Support::no(fmt::format("A stored densely and the lists need {:.1f} GB",
                                     static_cast<double>(bytes) / 1e9));
    return Support::yes(bytes);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<EsmmMmaPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "esmm_mma",
      .summary = "dense-stored A and B, wgmma over lists of k-indices nonzero in both",
      .source = "ESMM patterns; lists are ours",
      .purpose = "for a B with zeros",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .inspects_b = true,
      .options = {kPath, kExtract},
  };
};

SPMMBENCH_REGISTER_KERNEL(EsmmMma);

}  // namespace
}  // namespace spmmbench
