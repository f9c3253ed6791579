#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the CPython that ci/free-threaded names, with pytest and numpy beside it: some minutes, once. Fails where its source is not to be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
home=$(ci/free-threaded)
[ -e "$home/complete" ] && exit 0
version=$(ci/free-threaded version)
ci/install/debian curl gcc make libc6-dev libffi-dev libssl-dev zlib1g-dev xz-utils
making=$(mktemp -d)
trap 'rm -rf "$making"' EXIT
source=$making/source.tar.xz
curl --silent --show-error --fail --location --max-time 300 --output "$source" \
    "https://deb.debian.org/debian/pool/main/p/python${version%.*}/python${version%.*}_$version.orig.tar.xz"
echo "$(ci/free-threaded sha256)  $source" | sha256sum --check --quiet
tar -xf "$source" -C "$making"
rm -rf "$home"
mkdir -p "$home"
(
    cd "$making"/*/
    # No tests of its own, and no optimisation that takes long: it runs ours.
    ./configure --quiet --disable-gil --disable-test-modules --prefix="$home" CFLAGS=-O1 >/dev/null
    make --silent -j"$(nproc)" >/dev/null
    make --silent install >/dev/null
)
"$home/bin/python3" -m pip install --quiet --disable-pip-version-check --no-warn-script-location pytest==9.2.0 numpy==2.4.6
touch "$home/complete"
