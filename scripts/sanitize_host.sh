#!/usr/bin/env bash
# The host tests and what is asked of every CPU kernel, under the address and undefined-behaviour sanitizers, with which all but
# what writes documents and starts processes is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
TIMEFORMAT="-- %R s, processor %U + %S s"
echo "== preset asan, host tests"
cmake --preset asan >/dev/null
time cmake --build --preset asan --target spmmbench_host_tests spmmbench_kernel_tests
time ctest --preset asan --parallel 2 --no-tests=error --tests-regex '^(host|kernels)\.'
