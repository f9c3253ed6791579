#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tests of both library crates on other processors, by user emulation. The emulator keeps this machine's order of loads and stores,
# which is stronger than theirs: what it shows is that the code for them is right, not that its orderings suffice (loom and Miri do
# that: 20-loom.sh, 24-miri.sh). Left out are tests of what the emulator does not have: other processes' deaths by pidfd, io_uring.
# Inputs: crate:doorbell lab/machine/src/virtualisation.rs
# Long: two processors are emulated.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/processors
for processor in aarch64 riscv64gc; do
    target=$processor-unknown-linux-gnu short=${processor%gc}
    if ! has_target "$target" || ! command -v "qemu-$short-static" >/dev/null ||
        ! command -v "$short-linux-gnu-gcc" >/dev/null; then
        ci/skipped "23-processors: no standard library, compiler or emulator for $target (ci/install/11-targets.sh)"
        continue
    fi
    name=$(echo "$target" | tr a-z- A-Z_)
    export "CARGO_TARGET_${name}_LINKER=$short-linux-gnu-gcc" "CARGO_TARGET_${name}_RUNNER=qemu-$short-static -L /usr/$short-linux-gnu"
    timeout 2400 cargo test --quiet --locked --target "$target" --package doorbell-core --lib
    timeout 2400 cargo test --quiet --locked --target "$target" --package doorbell --lib --test channel -- --test-threads 2 threads:: bulk::
    # Nobody's figures may pass for a machine's here.
    DOORBELL_TRANSLATED=1 timeout 2400 cargo test --quiet --locked --target "$target" --package doorbell-machine --lib virtualisation
done
