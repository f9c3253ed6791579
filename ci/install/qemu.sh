#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What uintr/qemu/build and the programs of uintr/qemu/ need on Debian 12.

exec "$(dirname "$0")/debian" apt debian-archive-keyring \
    binutils dpkg-dev flex bison gcc git libc6-dev libfdt-dev libglib2.0-dev libpixman-1-dev libseccomp-dev \
    make ninja-build patch pkg-config python3 python3-venv util-linux xz-utils
