#!/usr/bin/env bash
# Makes the Debian package of a build and installs it in a clean Debian, where it must run, be linked against from C, CMake
# and Python, load a plug-in, and go again without a trace.
# Usage: scripts/package_test.sh [BUILD]   (default build/host; needs root, debootstrap and a Debian mirror)
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit; fi
cd "$(dirname "$0")/.."
build=${1:-build/host}
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
folder=$(mktemp -d)
root=$folder/root
clean_up() {
  for mounted in dev/pts proc; do umount "$root/$mounted" 2>/dev/null || true; done
  rm -rf --one-file-system "$folder"
}
trap clean_up EXIT
in_root() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "cd /tmp; $1"; }
add() { in_root "apt-get install -y -qq --no-install-recommends $* >/dev/null 2>&1"; }
step() { echo "== $*"; }

step package
cmake --build "$build" --target spmmbench spmmbench_library spmmbench_documents
cpack --config "$build/CPackConfig.cmake" -B "$folder" >/dev/null
package=$(ls "$folder"/spmmbench_*.deb)
dpkg-deb --info "$package" | grep -E '^ (Version|Architecture|Depends|Recommends|Installed-Size)'
# One package holds program, library and headers, and is not made for Debian's own archive.
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning --suppress-tags no-changelog,package-name-doesnt-match-sonames \
    --suppress-tags link-to-shared-library-in-wrong-package,maintscript-calls-ldconfig \
    --suppress-tags pkg-config-unavailable-for-cross-compilation "$package"
fi

step "clean Debian $suite"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 || { tail "$folder/debootstrap.log" >&2; exit 1; }
mount -t proc proc "$root/proc" 2>/dev/null || true
mount -t devpts devpts "$root/dev/pts" 2>/dev/null || true
cp "$package" "$root/tmp/spmmbench.deb"
cp -r data/fem2d_plate.mtx.gz python examples/plugin/c tests/library "$root/tmp/"

step "the program"
add ./spmmbench.deb
in_root 'spmmbench --version
  spmmbench run fem2d_plate.mtx.gz -k cpu_csr --no-baselines --device -1 --precision fp32 --max-seconds 0.1
  gzip -t /usr/share/man/man1/spmmbench.1.gz
  . /usr/share/bash-completion/completions/spmmbench && complete -p spmmbench'

step "Python, without a compiler"
add python3-pip python3-setuptools python3-wheel python3-numpy python3-scipy
in_root '! command -v cc gcc c++ g++
  pip install --quiet --no-deps --no-build-isolation --break-system-packages --root-user-action=ignore ./python
  python3 -c "
import numpy, scipy.sparse, spmmbench
a = scipy.sparse.random(60, 50, 0.1, \"csr\", dtype=numpy.float32)
b = numpy.ones((50, 8), numpy.float32)
assert numpy.allclose(spmmbench.plan(a, 8) @ b, a @ b)
print(spmmbench.load().path)"'

step "C, by pkg-config and by CMake, and a plug-in"
add gcc libc6-dev pkg-config cmake make
in_root 'gcc library/consumer.c $(pkg-config --cflags --libs spmmbench) -o consumer && ./consumer
  cmake -S library -B built >/dev/null && cmake --build built >/dev/null && built/consumer
  cmake -S c -B plugin >/dev/null && cmake --build plugin >/dev/null
  spmmbench run fem2d_plate.mtx.gz -k plugin/libcsr_strips.so --no-baselines --device -1 --precision fp32 --max-seconds 0.1'

step "removal"
in_root 'dpkg -L spmmbench >files
  apt-get purge -y -qq spmmbench >/dev/null 2>&1
  while read -r file; do [ ! -e "$file" ] || dpkg -S "$file" >/dev/null; done <files  # what is left is of other packages
  ! ldconfig -p | grep spmmbench'
echo "the package installs, runs, links and goes"
