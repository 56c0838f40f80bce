# Sourced by quickstart.sh and test.sh: installs what is missing where it may, finds the CUDA toolkit, picks the preset.
# shellcheck shell=bash

# require PACKAGE...: Debian packages; a missing one is installed as root or through sudo, else named.
require() {
  local missing=() as_root=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "missing packages, install them first: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

require_build_tools() {
  require g++ cmake ninja-build git ca-certificates libboost-dev libcli11-dev libfmt-dev libtomlplusplus-dev nlohmann-json3-dev zlib1g-dev libminizip-dev libarchive-dev liblzma-dev libzstd-dev libmatio-dev libeigen3-dev libgtest-dev python3
}

# Chromium, in which the tests of the report's page run. Ubuntu has it as a snap only, so nothing is installed there.
require_browser() {
  if (. /etc/os-release; [[ " ${ID:-} ${ID_LIKE:-} " == *" ubuntu "* ]]); then
    command -v chromium chromium-browser google-chrome >/dev/null ||
      echo "no Chromium or Chrome on PATH: the tests of the report's page will be skipped"
  else
    require chromium
  fi
}

# preset: `release` with a CUDA toolkit on PATH or in /usr/local/cuda, else `host`.
preset=host
if command -v nvcc >/dev/null; then
  preset=release
elif [ -x /usr/local/cuda/bin/nvcc ]; then
  export PATH="/usr/local/cuda/bin:$PATH"
  preset=release
fi
