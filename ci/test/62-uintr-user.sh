#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# User interrupts for programs, on this machine, by signals: the conformance suite, the cases of the RFC's self-tests, and the
# example programs, as this user and as another; and that the suite finds an interrupt that is forgotten. ci/test/67-uintr.sh runs the same
# programs on a CPU that has them.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "62-uintr-user: $*" >&2; exit 1; }
step() { echo "== $*"; }
# Fails with what was said about the cases that did not pass.
passes() { "$@" >"$scratch/said" 2>&1 || fail "$*: $(grep -v '^ok' "$scratch/said")"; }

compile() { gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -Ikernel/uintr/include "$@"; }

step "the library installs, and compiles into C and C++ programs"
cp -r kernel/uintr "$scratch/source"
make -s -C "$scratch/source/user" install PREFIX="$scratch/installed"
echo '#include <uintr.h>
int main() { return uintr_start(UINTR_SIGNALS) == UINTR_SIGNALS ? uintr_unmasked() : 1; }' | tee "$scratch/one.cpp" >"$scratch/one.c"
for compiler in "gcc -std=c99 $scratch/one.c" "g++ -std=c++11 $scratch/one.cpp"; do
    $compiler -Wall -Wextra -Werror -I"$scratch/installed/include" -o "$scratch/one" -L"$scratch/installed/lib" -luintr -pthread
    "$scratch/one" || fail "$compiler"
done
library=$scratch/installed/lib/libuintr.a

step "the suite, by signals"
compile kernel/uintr/tests/conformance/*.c "$library" -lm -o "$scratch/conformance"
passes "$scratch/conformance" signals
tail -1 "$scratch/said"
passes "$scratch/conformance" signals --as 65534 --times 1000
"$scratch/conformance" hardware >"$scratch/said" 2>&1 && [ ! -e /dev/uintr ] && fail "it took nothing for hardware"

step "the cases of the RFC's self-tests"
compile -muintr kernel/uintr/tests/rfc.c "$library" -o "$scratch/rfc"
UINTR_BACKEND=signals passes "$scratch/rfc"
tail -1 "$scratch/said"

step "an epoll loop that serves a timer and a socket is woken; two programs wake each other"
for program in ping pong loop knock; do compile "kernel/uintr/examples/$program.c" "$library" -o "$scratch/$program"; done
"$scratch/loop" "$scratch/door" 3600 >"$scratch/loop-said" &
loop=$!
passes "$scratch/knock" "$scratch/door" 2000
wait $loop
cat "$scratch/loop-said"
grep -q "^2000 knocks, 125 messages" "$scratch/loop-said" || fail "knocks or messages are missing"
"$scratch/ping" "$scratch/socket" 2 &
ping=$!
passes "$scratch/pong" "$scratch/socket"
wait $ping
cat "$scratch/said"

step "an interrupt in a hundred that is forgotten is found"
compile -DUINTR_FORGETS -DLOST_AFTER=5 kernel/uintr/tests/conformance/*.c kernel/uintr/user/*.c -lm -o "$scratch/forgets"
"$scratch/forgets" signals --times 300 >"$scratch/said" 2>&1 && fail "it was not"
for case in "many to one that only runs, each handled alone" "many to one that only waits"; do
    grep -q "^not ok [0-9]* - $case$" "$scratch/said" || fail "'$case' passed"
done

echo "62-uintr-user: what was sent was heard, without the hardware"
