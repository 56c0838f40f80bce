#!/usr/bin/env bash
# Usage: scripts/device_tests.sh [TEST_PROGRAM] [GTEST_ARGUMENT...]
# Runs the device tests: those that use the GPU in one process, and beside it the others in another. A GPU serves its
# processes in turn, and each wait for a launch then takes as long as the turns of all others: on an H200 four processes
# take twice as long as one for the same tests.
#   SHARDS   how many processes use the GPU (1)
#   LIMIT    seconds after which a process is ended (600)
#   LOGS     a folder for what the processes print, which stays (a new one)
#   WRAPPER  a command before each process (compute-sanitizer with its arguments), which then has no LIMIT and half as
#            many SHARDS as there are processors, at most 8, unless they are set
# Tests that time the cache (Flush.*) run afterwards, alone.
# Prints the output of tests that failed or did not end, and the wall time; fails where no test has passed.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
program=${1:-build/release/tests/spmmbench_device_tests}
[ $# -gt 0 ] && shift
filter='*' arguments=()
for argument in "$@"; do
  if [[ $argument == --gtest_filter=* ]]; then filter=${argument#*=}; else arguments+=("$argument"); fi
done
cores=$(nproc)
if [ -n "${WRAPPER:-}" ]; then
  shards=${SHARDS:-$((cores / 2 < 1 ? 1 : cores / 2 > 8 ? 8 : cores / 2))} limit=${LIMIT:-0}
else
  shards=${SHARDS:-1} limit=${LIMIT:-600}
fi
without_gpu=$(sed -n 's/^set(without_gpu "\(.*\)").*/\1/p' tests/CMakeLists.txt)

# The tests that a filter chooses.
names() {
  "$program" --gtest_list_tests --gtest_filter="$1" | awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }' | sort
}
all=$(names "$filter")
[ -n "$all" ] || { echo "no test matches: $*" >&2; exit 1; }
on_host=$(comm -12 <(echo "$all") <(names "$without_gpu"))
on_gpu=$filter$([[ $filter == *-* ]] && echo : || echo -)$without_gpu
count() { if [ -n "$1" ]; then wc -l <<<"$1"; else echo 0; fi; }
tests=$(count "$(names "$on_gpu")")
shards=$((shards > tests ? tests : shards))
logs=${LOGS:-$(mktemp -d -t device_tests.XXXXXX)}
mkdir -p "$logs"
rm -f "$logs"/*.log
echo "tests on the GPU: $tests, others: $(count "$on_host"), processes on the GPU: $shards, logs: $logs"

# Starts the process that writes NAME.log.
pids=() running=()
start() {
  local name=$1
  shift
  # shellcheck disable=SC2086  # WRAPPER is a command with its arguments
  timeout -k 10 "$limit" ${WRAPPER:-} "$program" "${arguments[@]}" "$@" >"$logs/$name.log" 2>&1 &
  pids+=($!) running+=("$name")
}

# Of a log: what tests printed that failed or did not end, or in which WRAPPER found something.
show() {
  awk '/^\[ RUN      \]/ { text = ""; bad = 0; test = $4 }
    { text = text $0 "\n" }
    /^=========/ || /^\[  FAILED  \]/ { bad = 1 }
    /^\[ .* ms\)$/ { if (bad) printf "%s", text; text = ""; bad = 0; test = "" }
    END { printf "%s", text; if (test != "") print "did not end: " test }' "$1"
}

# Waits for the processes that were started, and shows what failed.
failed=0
finish() {
  for i in "${!pids[@]}"; do
    local status=0 log=$logs/${running[$i]}.log
    wait "${pids[$i]}" || status=$?
    [ "$status" -ne 0 ] || continue
    failed=$((failed + 1))
    echo "== $log: $([ "$status" -eq 124 ] && echo "ended after $limit s" || echo "exit status $status")"
    show "$log"
  done
  pids=() running=()
}

interrupt() {
  trap - INT TERM
  kill "${pids[@]}" 2>/dev/null || true
  finish
  exit 130
}
trap interrupt INT TERM

begin=$SECONDS
# A small cache of the host is flushed and measured quickly. Threads that wait sleep, since others want the processor.
export SPMMBENCH_CACHE_MIB=${SPMMBENCH_CACHE_MIB:-4} OMP_WAIT_POLICY=passive
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((cores / (shards + 1) < 2 ? 2 : cores / (shards + 1)))}
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i start "gpu_$i" --gtest_filter="$on_gpu"
done
[ -z "$on_host" ] || start host --gtest_filter="$(tr '\n' : <<<"$on_host")"
finish
if grep -q '^Flush\.' <<<"$all"; then
  start flush --gtest_filter='Flush.*'
  finish
fi
ended() { cat "$logs"/*.log | grep -c "^\[ *$1 *\].* ms)\$" || true; }
echo "$(ended OK) passed, $(ended SKIPPED) skipped, $(ended FAILED) failed, $((SECONDS - begin)) s"
[ "$failed" -eq 0 ] && [ "$(ended OK)" -gt 0 ]
