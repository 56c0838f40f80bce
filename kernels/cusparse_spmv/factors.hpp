#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), gather_rows (us), nonzeros (100 an SM), longest_row (1000 nonzeros)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cusparse_spmv {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cusparse_spmv", Precision::fp16, 1, 1,
       {6.321, 0.4754, 0.02077, 0.7977},
       {0.07292, 0.8911, 0.7481}},
      {"cusparse_spmv", Precision::fp32, 1, 1,
       {7.22, 0.4337, 0.0232, 0.6302},
       {0.03395, 1.261, 0.9384}},
      {"cusparse_spmv", Precision::tf32, 1, 1,
       {7.288, 0.4302, 0.02302, 0.6577},
       {0.03294, 1.195, 1.204}},
      {"cusparse_spmv_alg1", Precision::fp16, 1, 1,
       {4.154, 0.3175, 0.01557, 0.2598},
       {0.0728, 1.024, 0.6474}},
      {"cusparse_spmv_alg1", Precision::fp32, 1, 1,
       {4.453, 0.4069, 0.02177, 0.194},
       {0.04382, 1.288, 0.7349}},
      {"cusparse_spmv_alg1", Precision::tf32, 1, 1,
       {4.406, 0.4124, 0.02207, 0.2653},
       {0.04506, 1.187, 1.446}},
      {"cusparse_spmv_alg2", Precision::fp16, 1, 1,
       {5.898, 0.6329, 0.02909, 0.4515},
       {0.07258, 1.016, 0.67}},
      {"cusparse_spmv_alg2", Precision::fp32, 1, 1,
       {6.465, 0.5315, 0.02843, 0.3007},
       {0.04487, 1.255, 0.9043}},
      {"cusparse_spmv_alg2", Precision::tf32, 1, 1,
       {6.581, 0.5202, 0.02783, 0.3695},
       {0.04465, 1.207, 1.393}},
  };
}
// clang-format on

}  // namespace spmmbench::cusparse_spmv
