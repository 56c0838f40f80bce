#include "core/matrix_memory.hpp"

#include <new>

#include "core/available_memory.hpp"

namespace spmmbench {

std::size_t memory_bytes(const CsrMatrix& m) {
  const auto of = [](const auto& array) { return array.size() * sizeof array[0]; };
  return of(m.row_ptr) + of(m.col_idx) + of(m.values) + of(m.values64) + of(m.block_scales);
}

void require_host_memory(std::size_t bytes) {
  if (bytes > available_memory_bytes()) throw std::bad_alloc();
}

}  // namespace spmmbench
