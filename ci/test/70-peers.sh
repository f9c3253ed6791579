#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The comparison with other tools: its reading of their output and its arithmetic, and that its own programs in C do every turn
# they are asked for; no timing is judged.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=target/peers/build
cargo test --locked --quiet --manifest-path rivals/peers/Cargo.toml
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
	timeout 60 "$folder/bare-ping-pong" "${cpus[@]}" 20 | grep ' ns a round trip, '
else
	echo "bare-ping-pong is left out: it needs two CPUs, and this process may use one" >&2
fi
! "$folder/bare-ping-pong" "${cpus[0]}" 4095 20 || exit 1
