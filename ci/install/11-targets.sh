#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What builds and tests for other processors, for musl and for other systems need, all of it; suites install their part.
# Where something is not to be had, the suites say what they could not check.
set -uo pipefail
cd "$(dirname "$0")"
./compilers oldest aarch64-unknown-linux-gnu aarch64-unknown-linux-musl riscv64gc-unknown-linux-gnu \
    x86_64-unknown-linux-musl i686-unknown-linux-gnu x86_64-pc-windows-gnu aarch64-apple-darwin miri
./processors
./machines
exit 0
