#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tools `make peers` compares with: Debian's packages, core-to-core-latency from crates.io, and two programs in C of our
# own, these into target/peers.
# Installed only where asked for: the tests need none of them.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
[ "${PEERS:-}" = 1 ] || exit 0
cd "$(dirname "$0")/../.."
ci/install/debian linux-perf rt-tests stress-ng sockperf
[ -x target/peers/bin/core-to-core-latency ] ||
    CARGO_TARGET_DIR=target/peers/build cargo install --quiet --locked --root target/peers core-to-core-latency@1.2.0
for program in bare-ping-pong hand-off; do
    cc -O2 -Wall -pthread -o "target/peers/bin/$program" "rivals/peers/$program.c"
done
