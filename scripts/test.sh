#!/usr/bin/env bash
# Sets up and passes all tests: host, device (skipped without a GPU), command line, and the host tests again under the
# address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
require python3-numpy python3-scipy python3-matplotlib python3-jsonschema python3-jinja2 python3-yaml
require chromium poppler-utils fonts-dejavu-core  # the report is opened, pointed at and printed
export PATH="/usr/bin:$PATH"  # the distribution's python3 has the packages above
echo "== preset $preset"
cmake --preset "$preset" -DSPMMBENCH_TESTS=ON -DSPMMBENCH_SHARED_FMT=ON
cmake --build --preset "$preset"
ctest --preset "$preset" --parallel 2
echo "== preset asan, host tests"
cmake --preset asan -DSPMMBENCH_TESTS=ON
cmake --build --preset asan --target spmmbench_host_tests
build/asan/tests/spmmbench_host_tests --gtest_brief=1
