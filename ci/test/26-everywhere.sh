#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest of each other architecture: all its mechanisms are rehearsed and measured, and the library's stress loses no wake-up. The whole
# matrix of kernels is ci/soak/26-everywhere.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
guests=()
for arch in aarch64 riscv64; do
    short=${arch/riscv64/riscv64gc}
    if command -v "qemu-system-$arch" "$arch-linux-gnu-gcc" >/dev/null && [ -d "$(rustc --print target-libdir --target "$short-unknown-linux-gnu")" ]; then
        guests+=("$arch/6.12")
    else
        ci/skipped "26-everywhere: no emulator, compiler or standard library for $arch (ci/install/11-targets.sh)"
    fi
done
[ ${#guests[@]} -eq 0 ] || ci/everywhere "${guests[@]}" --seconds 2 --count 20 --late 0
