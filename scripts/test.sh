#!/usr/bin/env bash
# Sets up and passes all tests: format, spelling and static checks, host, device (skipped without a GPU), command line, and
# the host tests again under the address and undefined-behaviour sanitizers. SPMMBENCH_BASE is what scripts/check.sh
# compares with. Prints the processor seconds of each stage.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
require pkg-config groff-base
require python3-numpy python3-scipy python3-matplotlib python3-jsonschema python3-jinja2 python3-yaml python3-pip python3-setuptools python3-wheel
require chromium poppler-utils fonts-dejavu-core  # the report is opened, pointed at and printed
export PATH="/usr/bin:$PATH"  # the distribution's python3 has the packages above
TIMEFORMAT="-- %R s, processor %U + %S s"
settings=(-DSPMMBENCH_TESTS=ON -DSPMMBENCH_SHARED_FMT=ON -DSPMMBENCH_UNITY=ON -DSPMMBENCH_TEST_FLAGS=-O1)
if command -v ccache >/dev/null; then
  settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi

time scripts/check.sh ${SPMMBENCH_BASE:+"$SPMMBENCH_BASE"}
echo "== preset $preset"
# One architecture: the portable code is the same for 8.0, and half of the time of a build is the compilation for it.
cmake --preset "$preset" "${settings[@]}" -DCMAKE_CUDA_ARCHITECTURES=90a-real
time cmake --build --preset "$preset"
time ctest --preset "$preset" --parallel 2
echo "== preset asan, host tests"
cmake --preset asan "${settings[@]}" -DSPMMBENCH_TEST_FLAGS=-O0
time cmake --build --preset asan --target spmmbench_host_tests
sanitized() {  # both halves at a time
  local pids=() failed=0
  for shard in 0 1; do
    GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$shard OMP_WAIT_POLICY=passive build/asan/tests/spmmbench_host_tests --gtest_brief=1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}
time sanitized
