#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The libraries compile with the oldest compiler that Cargo.toml promises, for processors other than this one, and for musl; and what would
# be published of them can be packed, each with those it needs. That tests keep to the promise too is clippy's to say
# (`incompatible_msrv`, clippy.toml).
set -euo pipefail
cd "$(dirname "$0")/../.."
libraries=(--package doorbell-core --package doorbell --package doorbell-ffi)
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustc "+$oldest" --version 2>/dev/null; then
    cargo "+$oldest" check --quiet --locked --lib "${libraries[@]}" --all-features
else
    ci/skipped "12-elsewhere: Rust $oldest is not installed (ci/install/11-targets.sh)"
fi
for target in aarch64-unknown-linux-gnu riscv64gc-unknown-linux-gnu x86_64-unknown-linux-musl; do
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
        cargo check --quiet --locked --lib "${libraries[@]}" --all-features --target "$target"
        echo "12-elsewhere: the libraries compile for $target"
    else
        ci/skipped "12-elsewhere: no standard library for $target is installed (ci/install/11-targets.sh)"
    fi
done
cargo package --quiet --locked --allow-dirty --no-verify --package user-interrupts "${libraries[@]}"
echo "12-elsewhere: the packages can be made"
# The whole command, for the one target that no guest's program is built for (26-everywhere.sh).
if [ -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-musl/lib" ] && command -v aarch64-linux-gnu-gcc >/dev/null; then
    CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc cargo check --quiet --locked --package doorbell-lab --target aarch64-unknown-linux-musl
    echo "12-elsewhere: the command compiles for aarch64-unknown-linux-musl"
else
    ci/skipped "12-elsewhere: no standard library or C compiler for aarch64-unknown-linux-musl (ci/install/11-targets.sh)"
fi
# Another C library on this processor: its tests run as they are.
if [ "$(uname -m)" = x86_64 ] && [ -d "$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-musl/lib" ]; then
    timeout 900 cargo test --quiet --locked --target x86_64-unknown-linux-musl --package doorbell --test channel --test queue
    echo "12-elsewhere: the tests of channels and queues passed with musl"
fi
