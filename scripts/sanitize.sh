#!/usr/bin/env bash
# Usage: scripts/sanitize.sh [TEST_PROGRAM] [FILTER]
# compute-sanitizer over the tests of every registered kernel, in shards: memcheck, racecheck, initcheck and synccheck, or
# those named in TOOLS. Matrices of more than SPMMBENCH_TEST_MAX_NNZ (2000) nonzeros are left out: a tool slows a kernel
# down a thousand times. racecheck takes 10 to 20 s for one kernel, one type of C and at most 300 nonzeros:
#   TOOLS=racecheck SPMMBENCH_TEST_MAX_NNZ=300 scripts/sanitize.sh PROGRAM 'registry/KernelTest.Matches*/rsh__*__c_fp32'
# Fails when a tool reports anything; needs a GPU.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
program=${1:-build/release/tests/spmmbench_device_tests}
filter=${2:-registry/KernelTest.Matches*}
command -v compute-sanitizer >/dev/null || PATH="/usr/local/cuda/bin:$PATH"
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer not found: it comes with the CUDA toolkit" >&2; exit 1; }
export SPMMBENCH_TEST_MAX_NNZ=${SPMMBENCH_TEST_MAX_NNZ:-2000} SPMMBENCH_REQUIRE_GPU=1
bad=()
for tool in ${TOOLS:-memcheck racecheck initcheck synccheck}; do
  echo "== $tool"
  # Reads of padding by the vendors' kernels are theirs; the exit code says that a tool found something.
  WRAPPER="compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 10" \
    scripts/device_tests.sh "$program" --gtest_filter="$filter-*cusparse*:*cublas*:*cpu_*" || bad+=("$tool")
done
[ ${#bad[@]} -eq 0 ] || { echo "found something: ${bad[*]}"; exit 1; }
echo "clean"
