#!/usr/bin/env bash
# Usage: scripts/check.sh [BASE]
# What needs no build: format, spelling, that every header compiles alone, and clang-tidy over the host code that differs
# from BASE (the commit before, unless given).
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh
require clang-format clang-tidy codespell g++ libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev
base=${1:-HEAD~1}
flags=(-std=c++20 -fopenmp -Iinclude -Isrc -Ikernels -DFMT_HEADER_ONLY '-DSPMMBENCH_VERSION=""')

echo "== format"
git ls-files '*.cpp' '*.hpp' '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

echo "== spelling"
git ls-files | grep -vE '\.(gz|npy|npz|json|csv|svg|png|smtx|mtx|safetensors)$' | xargs codespell

# The build compiles a header alone where a source file includes it first.
echo "== headers that no source file includes first"
included_first=$(git ls-files '*.cpp' '*.cu' '*.c' | xargs grep -h -m 1 '^#include' | sed 's/.*[<"]\(.*\)[>"].*/\1/')
git ls-files 'include/*.hpp' 'src/*.hpp' | grep -vxFf <(sed 's|^|include/|; p; s|^include|src|' <<<"$included_first") |
  xargs -P 2 -I{} g++ "${flags[@]}" -fsyntax-only -Wall -Wextra -Werror -include {} -x c++ /dev/null

echo "== clang-tidy, what differs from $base"
if ! git rev-parse --quiet --verify "$base" >/dev/null; then
  echo "left out: no $base here (a shallow clone?)"
  exit $(($# > 0))  # a base that was asked for must be there
fi
# src/run/context.cpp includes what the build writes.
complaints=$(mktemp)
trap 'rm -f "$complaints"' EXIT
failed=0
report=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'kernels/*.cpp' ':!src/run/context.cpp' |
  xargs -P 2 -I{} clang-tidy --quiet {} -- "${flags[@]}" -isystem /usr/include/eigen3 2>"$complaints") || failed=1
# An error is no finding of its checks: a file that it cannot read, such as for C++20 that Debian's clang 14 does not know.
if grep -E 'error: |warning: .*\[(bugprone|misc|performance)-' <<<"$report"; then exit 1; fi
if [ "$failed" -ne 0 ]; then
  printf '%s\n' "$report"
  cat "$complaints"
  echo "clang-tidy failed"
  exit 1
fi
