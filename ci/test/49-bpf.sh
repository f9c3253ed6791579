#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The program that `doorbell trace` runs in the kernel is in the tree as clang makes it of its source: made again, it is the same.
# Inputs: lab/harness/src/trace/bpf/wake.bpf.c lab/harness/src/trace/bpf/wake.bpf.o
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
scratch

# Other versions make other code of it. This one is Debian 12's.
version=14
compiler=clang-$version
command -v "$compiler" >/dev/null || ci/install/debian "$compiler" || true
command -v "$compiler" >/dev/null || nothing_tried "there is no $compiler here, which made wake.bpf.o"

step "wake.bpf.c makes wake.bpf.o"
cd lab/harness/src/trace/bpf
# As the source's head says.
"$compiler" -target bpf -mcpu=v3 -O2 -Wall -Werror -c wake.bpf.c -o "$scratch/wake.bpf.o"
cmp "$scratch/wake.bpf.o" wake.bpf.o || fail "wake.bpf.o is not what $compiler makes of wake.bpf.c: make it anew, and commit both"

step "a change of the source would be seen"
sed 's/SOFTIRQ = 0x100/SOFTIRQ = 0x200/' wake.bpf.c >"$scratch/wake.bpf.c"
cmp -s "$scratch/wake.bpf.c" wake.bpf.c && fail "nothing was changed"
(cd "$scratch" && "$compiler" -target bpf -mcpu=v3 -O2 -c wake.bpf.c -o other.bpf.o)
! cmp -s "$scratch/other.bpf.o" wake.bpf.o || fail "the comparison sees nothing"
