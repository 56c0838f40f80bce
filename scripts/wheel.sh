#!/usr/bin/env bash
# Makes a wheel with the program, the library and the Python package: it runs without a compiler or the CUDA toolkit.
# Usage: scripts/wheel.sh [--of BUILD] [FOLDER]
#   FOLDER      where the wheel is put; default: build
#   --of BUILD  packs what that build folder holds; default: builds for other machines (preset portable, or host where there
#               is no nvcc), with the C++ library inside
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
build=
if [ "${1-}" = --of ]; then build=$2; shift 2; fi
folder=$(realpath -m "${1:-build}")

if [ -z "$build" ]; then
  preset=host
  if command -v nvcc >/dev/null; then preset=portable; fi
  build=build/wheel-$preset
  # cuBLAS, cuSPARSE and cuSPARSELt are loaded when a row needs them, NVIDIA's wheels of the same environment included.
  # shellcheck disable=SC2016  # the loader expands it
  nvidia=$(printf ':$ORIGIN/../nvidia/%s/lib' cu13 cublas cusparse cusparselt)
  cmake --preset "$preset" -B "$build" -DSPMMBENCH_TESTS=OFF -DSPMMBENCH_SHARED_FMT=OFF \
    -DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -DCMAKE_SHARED_LINKER_FLAGS=-static-libstdc++ \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH="\$ORIGIN$nvidia"
  cmake --build "$build" --target spmmbench spmmbench_library
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r python/. LICENSE "$stage"
package=$stage/spmmbench
install -s "$build/spmmbench" "$build/libspmmbench.so" "$package"
# No system that a wheel may be for is promised to have OpenMP's library. Its name stays, so that a process has one.
install -s "$("${CXX:-g++}" -print-file-name=libgomp.so.1)" "$package"
# PEP 600: manylinux_2_Y runs where glibc is 2.Y or newer, and needs nothing that a system may lack.
tag=linux_$(uname -m)  # this machine
lacking=$(objdump -p "$package"/{spmmbench,*.so*} | awk '$1 == "NEEDED" { print $2 }' | sort -u |
  grep -vE '^(ld-linux.*|lib(c|m|dl|pthread|rt|gcc_s|gomp)\.so.*)$' || true)
if [ -z "$lacking" ]; then
  glibc=$(objdump -T "$package"/{spmmbench,*.so*} | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -1)
  tag=manylinux_2_${glibc#GLIBC_2.}_$(uname -m)
else
  echo "for this machine alone, as it needs $(echo "$lacking" | paste -sd " ")" >&2
fi
printf '[bdist_wheel]\nplat_name = %s\n' "$tag" > "$stage/setup.cfg"
# A command of its own, because importing the package, NumPy and scipy takes longer than many a run.
mkdir "$stage/bin"
cat > "$stage/bin/spmmbench" <<'SCRIPT'
#!/usr/bin/env python3
import importlib.util
import os
import sys

package = importlib.util.find_spec("spmmbench").submodule_search_locations[0]
os.execv(os.path.join(package, "spmmbench"), sys.argv)
SCRIPT
sed -i '/^\[tool.setuptools\]/a script-files = ["bin/spmmbench"]' "$stage/pyproject.toml"
python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$folder" "$stage"
ls "$folder"/spmmbench-*-"$tag".whl
