#!/usr/bin/env bash
# Usage: scripts/device_tests.sh [TEST_PROGRAM] [GTEST_ARGUMENT...]
# Runs the device tests in shards side by side. The shards share the processors: each gets its part as OpenMP threads, so
# that the host work of one does not push the others aside. SHARDS sets their number (one per two processors, at most 8,
# unless set; never more than there are tests), WRAPPER a command before each (compute-sanitizer with its arguments).
# Tests that time the cache (Flush.*) run afterwards, alone.
# Prints the failures and the wall time; fails where no test has passed.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
program=${1:-build/release/tests/spmmbench_device_tests}
[ $# -gt 0 ] && shift
cores=$(nproc)
shards=${SHARDS:-$((cores / 2 < 1 ? 1 : cores / 2 > 8 ? 8 : cores / 2))}
tests=$("$program" --gtest_list_tests "$@" | grep -c '^  ' || true)
[ "$tests" -gt 0 ] || { echo "no test matches: $*" >&2; exit 1; }
shards=$((shards > tests ? tests : shards))
threads=$((cores / shards < 1 ? 1 : cores / shards))
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
start=$SECONDS
pids=()
for ((i = 0; i < shards; ++i)); do
  # shellcheck disable=SC2086  # WRAPPER is a command with its arguments
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i OMP_NUM_THREADS=$threads ${WRAPPER:-} "$program" --gtest_brief=1 "$@" \
    >"$logs/$i" 2>&1 &
  pids+=($!)
done
failed=0
for ((i = 0; i < shards; ++i)); do
  if ! wait "${pids[$i]}"; then
    failed=$((failed + 1))
    echo "== shard $i of $shards"
    tail -n 200 "$logs/$i"
  fi
done
if "$program" --gtest_list_tests "$@" | grep -q '^Flush\.$'; then
  # shellcheck disable=SC2086
  if ! ${WRAPPER:-} "$program" --gtest_brief=1 --gtest_filter='Flush.*' >"$logs/alone" 2>&1; then
    failed=$((failed + 1))
    echo "== alone"
    tail -n 200 "$logs/alone"
  fi
fi
passed=$(cat "$logs"/* | sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\.$/\1/p' | awk '{sum += $1} END {print sum + 0}')
skipped=$(cat "$logs"/* | sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests*\.$/\1/p' | awk '{sum += $1} END {print sum + 0}')
echo "$passed passed, $skipped skipped, $failed of $shards shards failed, $((SECONDS - start)) s (OpenMP threads per shard: $threads)"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
