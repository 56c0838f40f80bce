#!/usr/bin/env bash
# Makes the Debian package of a build and installs it in a clean Debian, where it must run, be linked against and go again.
# Usage: scripts/package_test.sh [BUILD]   (default build/host; needs root, debootstrap and a Debian mirror)
set -euo pipefail
if [ "${1-}" = --help ]; then sed -n "2,3s/^# //p" "$0"; exit; fi
cd "$(dirname "$0")/.."
build=${1:-build/host}
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
folder=$(mktemp -d)
trap 'umount "$folder/root/proc" 2>/dev/null || true; rm -rf "$folder"' EXIT

cmake --build "$build" --target spmmbench spmmbench_library spmmbench_documents
cpack --config "$build/CPackConfig.cmake" -B "$folder" >/dev/null
package=$(ls "$folder"/spmmbench_*.deb)
dpkg-deb --info "$package" | grep -E '^ (Version|Architecture|Depends|Recommends|Installed-Size)'

debootstrap --variant=minbase "$suite" "$folder/root" "$mirror" >"$folder/debootstrap.log" 2>&1 || { tail "$folder/debootstrap.log" >&2; exit 1; }
mount -t proc proc "$folder/root/proc" 2>/dev/null || true
cp "$package" "$folder/root/tmp/spmmbench.deb"
cp tests/library/consumer.c data/fem2d_plate.mtx.gz "$folder/root/tmp/"
chroot "$folder/root" env DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c '
  cd /tmp
  apt-get install -y -qq --no-install-recommends ./spmmbench.deb >/dev/null
  spmmbench --version
  spmmbench run fem2d_plate.mtx.gz -k cpu_csr --no-baselines --device -1 --precision fp32 --max-seconds 0.1
  test -s /usr/share/man/man1/spmmbench.1.gz -o -s /usr/share/man/man1/spmmbench.1
  apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config >/dev/null
  gcc consumer.c $(pkg-config --cflags --libs spmmbench) -o consumer
  ./consumer
  apt-get purge -y -qq spmmbench >/dev/null
  ! test -e /usr/bin/spmmbench'
echo "the package installs, runs, links and goes"
