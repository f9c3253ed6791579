#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A linker for programs of Windows, and the Wine that ci/wine runs them by: 115 MB of packages, unpacked and never installed.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
ci/install/debian gcc-mingw-w64-x86-64 debian-archive-keyring util-linux
home=$(ci/wine)
[ -e "$home/complete" ] && exit 0
rm -rf "$home"
apt=$home/apt
mkdir -p "$home/prefix" "$home"/tree/{proc,dev,sys,tmp,root,etc}
APT_CONFIG=$(ci/private-apt "$apt" amd64 "deb trixie")
export APT_CONFIG
# shellcheck disable=SC2046
(cd "$apt/archives" && apt-get -qq download $(cd "$OLDPWD" && ci/wine packages))
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$home/tree"; done
# Where a Debian of today has these, and where Wine looks for the library that its own are built with.
ln -s usr/lib usr/lib64 "$home/tree/"
mv "$home/tree/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$home/tree/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/"
# Symbols that no test reads: most of 700 MB.
x86_64-w64-mingw32-strip --strip-debug "$home"/tree/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/*.{dll,exe} 2>/dev/null || true
rm -rf "$apt"
touch "$home/complete"
