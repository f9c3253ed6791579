#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The contests' own tests, one round of the bell's, some seconds of the stress for lost wake-ups, and the programs in C that other
# tools' figures are held to. That both sides of every bar get through is the test, and that the stress finds what is planted and
# nothing else. What they measure on a busy machine is printed, not judged.
# Inputs: rivals/Cargo.toml rivals/Cargo.lock rivals/build.rs rivals/src rivals/peers
# Inputs: crate:doorbell crate:doorbell-verdict
# Long: another workspace, and every rival in turn.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/debian gcc libc6-dev
export CARGO_TARGET_DIR=$PWD/${CARGO_TARGET_DIR:-target}
# Without iceoryx2, which takes minutes to build.
cargo clippy --locked --quiet --no-default-features --all-targets --manifest-path rivals/Cargo.toml -- -D warnings
cargo test --locked --quiet --no-default-features --manifest-path rivals/Cargo.toml
cargo build --locked --quiet --no-default-features --manifest-path rivals/Cargo.toml
rivals=$CARGO_TARGET_DIR/debug/rivals
status=0
timeout 1200 "$rivals" bars --rounds 1 || status=$?
# 1: a bar was missed.
[ "$status" -le 1 ]
timeout 1200 "$rivals" wakes --time 12 --rounds 1 --notifiers 3 --only doorbell,eventfd
# It ends as soon as that is found; the other planted mistakes are in the tests.
timeout 1200 "$rivals" wakes --time 120 --rounds 1 --notifiers 1 --only 'does not return'
# Every channel of every kind, for one short round of the smallest message.
timeout 1200 "$rivals" channels --rounds 1 --block 1 --size 8 --kind round-trip,stream,full,gather
timeout 1200 "$rivals" streams --rounds 1 --block 1
status=0
timeout 1200 "$rivals" deaths --rounds 5 || status=$?
[ "$status" -le 1 ]

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for program in bare-ping-pong hand-off; do
    cc -O2 -Wall -Wextra -Werror -pthread -o "$folder/$program" "rivals/peers/$program.c"
done
for kind in process thread; do
    timeout 60 "$folder/hand-off" "$kind" 20 50 | grep '^1000 turns, '
done
read -r -a cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
if [ "${#cpus[@]}" -eq 2 ]; then
    for way in spin futex eventfd pipe; do
        timeout 60 "$folder/bare-ping-pong" "$way" "${cpus[@]}" 20 | grep ' ns a round trip, '
    done
else
    ci/skipped "bare-ping-pong needs two CPUs, and this process may use one"
fi
! "$folder/bare-ping-pong" futex "${cpus[0]}" 4095 20 || exit 1
