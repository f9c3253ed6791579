#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The oldest compiler that Cargo.toml promises, and the standard library for the other processors, for musl, and for other systems, that must build.
# Where rustup or its server is not to be had, ci/test/12-elsewhere.sh says what it could not check.
set -uo pipefail
cd "$(dirname "$0")/../.."
command -v rustup >/dev/null || { echo "no rustup: compilers stay as they are" >&2; exit 0; }
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rustc "+$oldest" --version >/dev/null 2>&1 || timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update ||
    echo "Rust $oldest could not be installed" >&2
for target in aarch64-unknown-linux-gnu aarch64-unknown-linux-musl riscv64gc-unknown-linux-gnu x86_64-unknown-linux-musl \
    x86_64-pc-windows-gnu aarch64-apple-darwin; do
    rustup target list --installed | grep -q "^$target$" || timeout 300 rustup target add "$target" ||
        echo "$target could not be installed" >&2
done
# Emulators, compilers and C libraries to run the libraries' tests there.
ci/install/debian qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross ||
    echo "emulators for other processors could not be installed" >&2
# Whole machines of them, and what their guests are made with (doorbell vm --arch).
ci/install/debian qemu-system-arm qemu-system-misc opensbi apt dpkg debian-archive-keyring ||
    echo "emulated machines of other architectures could not be installed" >&2
# A checker of the language's memory model, for ci/test/24-miri.sh.
rustup component list --toolchain nightly --installed 2>/dev/null | grep -q "^miri" ||
    timeout 300 rustup toolchain install nightly --profile minimal --component miri --component rust-src --no-self-update ||
    echo "Miri could not be installed" >&2
