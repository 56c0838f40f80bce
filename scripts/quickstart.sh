#!/usr/bin/env bash
# Sets up, builds and runs the main job on a bundled matrix: on the GPU where there is one, else with the CPU kernels.
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
source scripts/setup.sh
require_build_tools
echo "building with preset $preset"
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target spmmbench
exec "build/$preset/spmmbench" run data/fem3d_elasticity.mtx.gz "$@"
