#!/usr/bin/env bash
# The host tests and what is asked of every CPU kernel, under the address and undefined-behaviour sanitizers, with which all but
# what writes documents and starts processes is compiled.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
[ $# -eq 0 ] || { echo "sanitize_host.sh: expected no argument, got $1" >&2; exit 1; }
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
TIMEFORMAT="-- %R s, processor %U + %S s"
echo "== preset asan, host tests"
cmake --preset asan >/dev/null
time cmake --build --preset asan --target spmmbench_host_tests spmmbench_kernel_tests
time ctest --preset asan --parallel 2 --no-tests=error --tests-regex '^(host|kernels)\.'
