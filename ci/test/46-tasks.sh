#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The hand-written loop that `doorbell tasks` is held against still compiles, and does every turn it is asked for.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc -O2 -Wall -Wextra -Werror -pthread -o "$folder/handoff" rivals/tasks/handoff.c
for kind in process thread; do
	timeout 60 "$folder/handoff" "$kind" 20 50 0 | grep '^1000 turns, '
done
