#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What Squall is built and run with, and the lab for Linux on the same emulated machine.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
"$(dirname "$0")/debian" qemu-system-misc opensbi gcc-riscv64-linux-gnu libc6-dev-riscv64-cross cpio apt debian-archive-keyring python3
rustup target add riscv64imac-unknown-none-elf riscv64gc-unknown-linux-gnu
