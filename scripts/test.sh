#!/usr/bin/env bash
# Sets up and passes all tests: format, spelling and static checks, the build that the documents show, and the tests of the
# host, the device (skipped without a GPU), the command line and Python. SPMMBENCH_BASE is what scripts/check.sh compares
# with. Prints the processor seconds of each stage.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
[ $# -eq 0 ] || { echo "test.sh: expected no argument, got $1" >&2; exit 1; }
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
require pkg-config groff-base
require python3-numpy python3-scipy python3-matplotlib python3-jsonschema python3-jinja2 python3-yaml python3-pip python3-setuptools python3-wheel
require poppler-utils fonts-dejavu-core  # the report is opened, pointed at and printed
require zsh fish  # whose completions are tried
require_browser
export PATH="/usr/bin:$PATH"  # the distribution's python3 has the packages above
TIMEFORMAT="-- %R s, processor %U + %S s"

time scripts/check.sh
echo "== build as documented, preset $preset"
time scripts/documented_build.sh
echo "== tests, but for those that the documents' commands have run"
of_documents=$(sed -n "s/^ctest .* -R '\([^']*\)'.*/\1/p" docs/extending.md)
time ctest --preset "$preset" --parallel 3 --exclude-regex "$of_documents"  # some wait more than they compute
