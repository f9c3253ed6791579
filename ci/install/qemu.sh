#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What qemu/build and the programs of qemu/ need on Debian 12.

set -euo pipefail

packages=(
    binutils dpkg-dev flex bison gcc git libc6-dev libfdt-dev libglib2.0-dev libpixman-1-dev
    ninja-build patch pkg-config python3 python3-venv util-linux xz-utils
)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit

sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -qq -y --no-install-recommends "${packages[@]}"
