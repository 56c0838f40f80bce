#pragma once

namespace spmmbench::ptx {

struct Tf32 {};  // names the input type of mma and wgmma: fp32 in memory, its low 13 bits ignored

}  // namespace spmmbench::ptx
