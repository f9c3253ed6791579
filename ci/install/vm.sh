#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `doorbell vm build` fetches the guests' packages with, modules for the guests' kernel are built with, and uintr/driver/debug; the emulator's
# needs are in qemu.sh.
exec "$(dirname "$0")/debian" apt dpkg debian-archive-keyring bc bison flex gcc gcc-12 libc6-dev libelf-dev make procps python3
