#!/usr/bin/env bash
# Sets up and passes all tests: format, spelling and static checks, host, device (skipped without a GPU), command line, and
# the host tests under the address and undefined-behaviour sanitizers. SPMMBENCH_BASE is what scripts/check.sh
# compares with. Prints the processor seconds of each stage.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
require pkg-config groff-base
require python3-numpy python3-scipy python3-matplotlib python3-jsonschema python3-jinja2 python3-yaml python3-pip python3-setuptools python3-wheel
require poppler-utils fonts-dejavu-core  # the report is opened, pointed at and printed
require_browser
export PATH="/usr/bin:$PATH"  # the distribution's python3 has the packages above
TIMEFORMAT="-- %R s, processor %U + %S s"
settings=(-DSPMMBENCH_TESTS=ON -DSPMMBENCH_SHARED_FMT=ON -DSPMMBENCH_UNITY=ON)
if command -v ccache >/dev/null; then
  settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi

time scripts/check.sh ${SPMMBENCH_BASE:+"$SPMMBENCH_BASE"}
echo "== preset $preset"
# One architecture: the portable code is the same for 8.0, and half of the time of a build is the compilation for it.
cmake --preset "$preset" "${settings[@]}" -DSPMMBENCH_HOST_TESTS=OFF -DSPMMBENCH_TEST_FLAGS=-O1 -DCMAKE_CUDA_ARCHITECTURES=90a-real
time cmake --build --preset "$preset"
time ctest --preset "$preset" --parallel 3  # some wait more than they compute
echo "== preset asan, host tests"
cmake --preset asan "${settings[@]}" -DSPMMBENCH_TEST_FLAGS=-O0
time cmake --build --preset asan --target spmmbench_host_tests spmmbench_kernel_tests
time ctest --preset asan --parallel 2 --no-tests=error --tests-regex '^(host|kernels)\.'
