#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `doorbell vm build` fetches the guests' packages with, and modules for the guests' kernel are built with; the emulator's
# needs are in qemu.sh.
exec "$(dirname "$0")/debian" apt dpkg debian-archive-keyring gcc gcc-12 libc6-dev make procps python3
