#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The libraries compile with the oldest compiler that Cargo.toml promises, for processors other than this one, and for musl; for one of 32
# bits a sentence says that there is no port; and what would be published of them can be packed, each with those it needs. That tests keep to the promise too is clippy's to say
# (`incompatible_msrv`, clippy.toml).
# Inputs: crate:doorbell crate:doorbell-ffi clippy.toml
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/compilers oldest aarch64-unknown-linux-gnu riscv64gc-unknown-linux-gnu x86_64-unknown-linux-musl \
    i686-unknown-linux-gnu
# Sources in C are compiled for them too.
ci/install/processors
libraries=(--package doorbell-core --package doorbell --package doorbell-ffi)
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustc "+$oldest" --version 2>/dev/null; then
    cargo "+$oldest" check --quiet --locked --lib "${libraries[@]}" --all-features
else
    ci/skipped "12-elsewhere: Rust $oldest is not installed (ci/install/11-targets.sh)"
fi
# With musl all but user interrupts, whose C sources need the kernel's headers, which musl's compiler does not see.
declare -A features=([x86_64-unknown-linux-musl]=doorbell/io_uring,doorbell/stream,doorbell/zerocopy,doorbell/fault_injection)
for target in aarch64-unknown-linux-gnu riscv64gc-unknown-linux-gnu x86_64-unknown-linux-musl; do
    if has_target "$target"; then
        chosen=(--all-features)
        [ -z "${features[$target]-}" ] || chosen=(--features "${features[$target]}")
        cargo check --quiet --locked --lib "${libraries[@]}" "${chosen[@]}" --target "$target"
        echo "12-elsewhere: the libraries compile for $target"
    else
        ci/skipped "12-elsewhere: no standard library for $target is installed (ci/install/11-targets.sh)"
    fi
done
# Of 32 bits: this one sentence, and no error of a type or an offset beside it, by which a user could not tell what is wrong. (Without
# features, whose crates have sentences of their own.)
target=i686-unknown-linux-gnu
if has_target "$target"; then
    for package in doorbell user-interrupts; do
        said=$(cargo check --locked --package $package --lib --target "$target" 2>&1) &&
            fail "$package is said to compile for $target"
        errors=$(grep '^error' <<<"$said" | grep -v '^error: could not compile')
        [[ $errors == "error: $package is of 64 bits; there is no port to 32 bits yet" ]] ||
            fail "compiled for $target, $package says: ${errors:-$said}"
    done
    echo "12-elsewhere: compiled for $target, the libraries say that there is no port to 32 bits"
else
    ci/skipped "12-elsewhere: no standard library for $target is installed (ci/install/11-targets.sh)"
fi
cargo package --quiet --locked --allow-dirty --no-verify --package user-interrupts "${libraries[@]}"
# Built from what is packed: its C sources come by links that lead out of the crate.
cargo package --quiet --locked --allow-dirty --package user-interrupts
echo "12-elsewhere: the packages can be made"
# Another C library on this processor: its tests run as they are.
if [ "$(uname -m)" = x86_64 ] && has_target x86_64-unknown-linux-musl; then
    timeout 2400 cargo test --quiet --locked --target x86_64-unknown-linux-musl --package doorbell-core --lib
    timeout 2400 cargo test --quiet --locked --target x86_64-unknown-linux-musl --package doorbell --tests \
        --features "${features[x86_64-unknown-linux-musl]}"
    echo "12-elsewhere: the tests of both library crates passed with musl, but for those of user interrupts"
fi
