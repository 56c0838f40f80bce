#!/usr/bin/env bash
# Runs the commands by which docs/install.md and docs/extending.md build, test and install, as they stand there, with the
# preset host where there is no CUDA toolkit and a temporary folder for ~/.local.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
[ $# -eq 0 ] || { echo "documented_build.sh: expected no argument, got $1" >&2; exit 1; }
cd "$(dirname "$0")/.."
source scripts/setup.sh
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

# commands PAGE LINE: the first block of shell commands after that line of the page.
commands() {
  awk -v line="$2" '$0 == line {seen = 1} block && $0 == "```" {exit} block; seen && $0 == "```sh" {block = 1}' "$1"
}

lines=$(commands docs/extending.md 'Build and test:'; commands docs/install.md '## From source')
count=0
while read -r line; do
  line=${line%%  #*}
  echo "== $line"
  bash -c "$(sed "s|\brelease\b|$preset|g; s|~/.local|$prefix|g" <<<"$line")" </dev/null
  count=$((count + 1))
done <<<"$lines"
[ "$count" -ge 7 ] || { echo "only $count commands found in docs/extending.md and docs/install.md" >&2; exit 1; }
"$prefix/bin/spmmbench" --version
