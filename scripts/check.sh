#!/usr/bin/env bash
# Usage: scripts/check.sh [PART...]
# What needs no build, or those parts of it: format, spelling, headers (every header compiles alone), tidy (clang-tidy over
# the host code that differs from SPMMBENCH_BASE, the commit before unless set).
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
source scripts/setup.sh
flags=(-std=c++20 -fopenmp -Iinclude -Isrc -Ikernels '-DSPMMBENCH_VERSION=""' '-DSPMMBENCH_MATIO=""')

format() {
  require clang-format
  git ls-files '*.cpp' '*.hpp' '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
}

spelling() {
  require codespell
  git ls-files | grep -vE '\.(gz|npy|npz|json|csv|svg|png|smtx|mtx|safetensors)$' | xargs codespell
}

# The build compiles a header alone where a source file includes it first: those that none includes so are left.
headers() {
  require g++ libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  local included_first
  included_first=$(git ls-files '*.cpp' '*.cu' '*.c' | xargs grep -h -m 1 '^#include' | sed 's/.*[<"]\(.*\)[>"].*/\1/')
  git ls-files 'include/*.hpp' 'src/*.hpp' | grep -vxFf <(sed 's|^|include/|; p; s|^include|src|' <<<"$included_first") |
    xargs -P 2 -I{} g++ "${flags[@]}" -fsyntax-only -Wall -Wextra -Werror -include {} -x c++ /dev/null
}

tidy() {
  require clang-tidy libtomlplusplus-dev libarchive-dev
  local base=${SPMMBENCH_BASE:-HEAD~1} complaints failed=0 report
  if ! git rev-parse --quiet --verify "$base" >/dev/null; then
    echo "left out: no $base here (a shallow clone?)"
    [ -z "${SPMMBENCH_BASE-}" ]  # a base that was asked for must be there
    return
  fi
  complaints=$(mktemp)
  # This one includes what the build writes.
  report=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'kernels/*.cpp' ':!src/core/this_build.cpp' |
    xargs -P 2 -I{} clang-tidy --quiet {} -- "${flags[@]}" -isystem /usr/include/eigen3 2>"$complaints") || failed=1
  # An error is no finding of its checks: a file that it cannot read, such as for C++20 that Debian's clang 14 does not know.
  if grep -E 'error: |warning: .*\[(bugprone|misc|performance)-' <<<"$report"; then exit 1; fi
  if [ "$failed" -ne 0 ]; then
    printf '%s\n' "$report"
    cat "$complaints"
    echo "clang-tidy failed"
    exit 1
  fi
  rm "$complaints"
}

[ $# -gt 0 ] || set -- format spelling headers tidy
for part; do
  echo "== $part"
  case $part in
    format | spelling | headers | tidy) "$part" ;;
    *) echo "no such part: $part" >&2; exit 1 ;;
  esac
done
