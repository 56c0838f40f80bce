#include "plugin/plugin_structs.hpp"

#include <algorithm>
#include <numeric>

#include "plugin/description.hpp"

namespace spmmbench {
namespace {

// A in the types that a kernel asks for, without the arrays.
spmmbench_csr typed_a(const spmmbench_kernel& kernel, const SparseOperand& a) {
  spmmbench_csr c = {};
  c.size = sizeof c;
  c.rows = a.m();
  c.cols = a.k();
  c.nnz = a.nnz();
  c.memory = SPMMBENCH_HOST;
  c.row_ptr_type = has(kernel.row_ptr_types, SPMMBENCH_I32) && a.nnz() <= INT32_MAX ? SPMMBENCH_I32
                                                                                    : SPMMBENCH_I64;
  c.col_idx_type = has(kernel.col_idx_types, SPMMBENCH_I32) ? SPMMBENCH_I32 : SPMMBENCH_I64;
  c.scale = a.scale();
  c.value_type = static_cast<int>(value_type_of(kernel, a));
  return c;
}

// The bytes of row_ptr, col_idx, values and row_ids.
std::array<std::size_t, 4> bytes_of_arrays(const spmmbench_csr& a, bool has_row_ids) {
  const auto index_bytes = [](std::int32_t type) { return type == SPMMBENCH_I64 ? 8U : 4U; };
  const auto nnz = static_cast<std::size_t>(a.nnz), rows = static_cast<std::size_t>(a.rows);
  return {(rows + 1) * index_bytes(a.row_ptr_type), nnz * index_bytes(a.col_idx_type),
          nnz * bytes_of(static_cast<ElementType>(a.value_type)),
          has_row_ids ? rows * sizeof(std::int32_t) : 0};
}

template <class To, class From>
const void* convert(const std::vector<From>& from, std::vector<unsigned char>& memory) {
  memory.resize(from.size() * sizeof(To));
  auto* const to = reinterpret_cast<To*>(memory.data());
  std::copy(from.begin(), from.end(), to);
  return to;
}

}  // namespace

bool wants_a_on_device(const spmmbench_kernel& kernel) {
  return kernel.device == SPMMBENCH_CUDA && has(kernel.a_memory, SPMMBENCH_CUDA);
}

ElementType value_type_of(const spmmbench_kernel& kernel, const SparseOperand& a) {
  const ElementType stored = storage_type(a.precision);
  return has(kernel.a_value_types, static_cast<int>(stored)) ? stored : ElementType::f32;
}

std::size_t kept_bytes(const spmmbench_kernel& kernel, const SparseOperand& a) {
  if (!wants_a_on_device(kernel) || (kernel.flags & SPMMBENCH_KEEPS_A) == 0) return 0;
  const auto bytes = bytes_of_arrays(typed_a(kernel, a), !a.row_ids.empty());
  return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

OperandArrays::OperandArrays(const spmmbench_kernel& kernel, const SparseOperand& a)
    : c_(typed_a(kernel, a)) {
  const CsrMatrix& csr = *a.a;
  c_.row_ptr = c_.row_ptr_type == SPMMBENCH_I64 ? csr.row_ptr.data()
                                                : convert<std::int32_t>(csr.row_ptr, row_ptr_);
  c_.col_idx = c_.col_idx_type == SPMMBENCH_I32 ? csr.col_idx.data()
                                                : convert<std::int64_t>(csr.col_idx, col_idx_);
  if (c_.value_type == SPMMBENCH_F32) c_.values = csr.values.data();
  else if (c_.value_type == SPMMBENCH_F64) c_.values = csr.values64.data();
  else c_.values = encode(csr.values, storage_type(a.precision));
  c_.row_ids = a.row_ids.empty() ? nullptr : a.row_ids.data();
}

void OperandArrays::upload(Device& device) {
  on_host_ = c_;
  c_.on_host = &on_host_;
  const auto bytes = bytes_of_arrays(c_, c_.row_ids != nullptr);
  std::size_t at = 0;
  for (const void** array : {&c_.row_ptr, &c_.col_idx, &c_.values, &c_.row_ids}) {
    if (*array != nullptr) {
      // At least one byte, so that an empty array is no NULL.
      on_device_[at] = device.allocate(std::max<std::size_t>(bytes[at], 1));
      device.upload(on_device_[at].data(), *array, bytes[at]);
      *array = on_device_[at].data();
    }
    ++at;
  }
  c_.memory = SPMMBENCH_CUDA;
  device.synchronize();
}

const void* OperandArrays::encode(const std::vector<float>& from, ElementType type) {
  values_.resize(from.size() * bytes_of(type));
  for (std::size_t i = 0; i < from.size(); ++i)
    store_element(type, values_.data(), static_cast<std::int64_t>(i), from[i]);
  return values_.data();
}

ProblemOfC::ProblemOfC(const OperandArrays& arrays, const Options& options, Precision precision) {
  for (const auto& [key, value] : options.values()) {
    options_.push_back(key.c_str());
    options_.push_back(value.c_str());
  }
  options_.push_back(nullptr);
  c_ = {sizeof c_, &arrays.c(), options_.data(), static_cast<std::int32_t>(precision), 0};
}

spmmbench_shape shape_of_c(const Shape& shape) {
  spmmbench_shape c = {};
  c.size = sizeof c;
  c.n = shape.n;
  c.layout = static_cast<std::int32_t>(shape.layout);
  c.c_type = static_cast<std::int32_t>(shape.c_type);
  c.ld_b = shape.ld_b;
  c.ld_c = shape.ld_c;
  return c;
}

}  // namespace spmmbench
