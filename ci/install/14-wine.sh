#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A linker for programs of Windows, and the Wine that ci/wine runs them by: 115 MB of packages, unpacked and never installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/debian gcc-mingw-w64-x86-64 debian-archive-keyring util-linux
home=$(ci/wine)
[ -e "$home/complete" ] && exit 0
rm -rf "$home"
apt=$home/apt
mkdir -p "$apt"/{lists/partial,archives,state} "$home/prefix" "$home"/tree/{proc,dev,sys,tmp,root,etc}
: >"$apt/status"
mirror=${DOORBELL_DEBIAN_MIRROR:-http://deb.debian.org/debian}
echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/sources.list"
{
    printf '%s "/dev/null";\n' Dir::Etc::Main Dir::Etc::Parts Dir::Etc::SourceParts
    printf 'Dir::Etc::SourceList "%s/sources.list";\nDir::State "%s/state";\nDir::State::Lists "%s/lists";\n' "$apt" "$apt" "$apt"
    printf 'Dir::State::Status "%s/status";\nDir::Cache "%s";\n' "$apt" "$apt"
    printf 'APT::Architecture "amd64";\nAPT::Architectures { "amd64"; };\nAPT::Sandbox::User "";\n'
    printf 'Acquire::Languages "none";\nAPT::Update::Error-Mode "any";\n'
    apt-config dump | grep -i '^acquire::.*proxy' || true
} >"$apt/apt.conf"
APT_CONFIG=$apt/apt.conf apt-get -qq update
# shellcheck disable=SC2046
(cd "$apt/archives" && APT_CONFIG=$apt/apt.conf apt-get -qq download $(cd "$OLDPWD" && ci/wine packages))
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$home/tree"; done
# Where a Debian of today has these, and where Wine looks for the library that its own are built with.
ln -s usr/lib usr/lib64 "$home/tree/"
mv "$home/tree/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$home/tree/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/"
# Symbols that no test reads: most of 700 MB.
x86_64-w64-mingw32-strip --strip-debug "$home"/tree/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/*.{dll,exe} 2>/dev/null || true
rm -rf "$apt"
touch "$home/complete"
