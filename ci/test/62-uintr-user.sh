#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# User interrupts for programs, on this machine, by signals: the conformance suite, the cases of the RFC's self-tests, and the
# example programs, as this user and as another; and that the suite finds an interrupt that is forgotten. ci/test/67-uintr.sh runs the same
# programs on a CPU that has them.
# Inputs: uintr/driver/include uintr/driver/user uintr/driver/tests uintr/driver/examples crate:user-interrupts
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/debian gcc g++ libc6-dev make
scratch

# Fails with what was said about the cases that did not pass.
passes() { "$@" >"$scratch/said" 2>&1 || fail "$*: $(grep -v '^ok' "$scratch/said")"; }

compile() { gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -Iuintr/driver/include "$@"; }

step "the library installs, and compiles into C and C++ programs"
cp -r uintr/driver "$scratch/source"
make -s -C "$scratch/source/user" install PREFIX="$scratch/installed"
echo '#include <uintr.h>
int main() { return uintr_start(UINTR_SIGNALS) == UINTR_SIGNALS ? uintr_unmasked() : 1; }' | tee "$scratch/one.cpp" >"$scratch/one.c"
for compiler in "gcc -std=c99 $scratch/one.c" "g++ -std=c++11 $scratch/one.cpp"; do
    $compiler -Wall -Wextra -Werror -I"$scratch/installed/include" -o "$scratch/one" -L"$scratch/installed/lib" -luintr -pthread
    "$scratch/one" || fail "$compiler"
done
library=$scratch/installed/lib/libuintr.a

step "the suite, by signals"
compile uintr/driver/tests/conformance/*.c "$library" -lm -o "$scratch/conformance"
passes "$scratch/conformance" signals
tail -1 "$scratch/said"
passes "$scratch/conformance" signals --as 65534 --times 1000
"$scratch/conformance" hardware >"$scratch/said" 2>&1 && [ ! -e /dev/uintr ] && fail "it took nothing for hardware"

step "the cases of the RFC's self-tests"
compile -muintr uintr/driver/tests/rfc.c "$library" -o "$scratch/rfc"
UINTR_BACKEND=signals passes "$scratch/rfc"
tail -1 "$scratch/said"

step "an epoll loop that serves a timer and a socket is woken; two programs wake each other"
for program in ping pong loop knock; do compile "uintr/driver/examples/$program.c" "$library" -o "$scratch/$program"; done
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

step "a handler that returns keeps the registers that its thread uses, in no longer a frame than they need"
entry() { compile "${@:2}" "$1/user/tests/entry.c" "$1"/user/{uintr,ipi,message}.c "$1"/user/signals*.c; }
entry uintr/driver -o "$scratch/entry"
passes "$scratch/entry"
grep "^#" "$scratch/said"

step "user-level threads take turns, and each finds its registers as they were"
compile uintr/driver/examples/turns.c "$library" -o "$scratch/turns"
UINTR_BACKEND=signals passes "$scratch/turns" 5 5000
tail -1 "$scratch/said"
# Where a tick is nearly always due a thread that opens takes it there, outside of any signal, and is come back to from within one.
compile -DQUANTUM=10000 uintr/driver/examples/turns.c "$library" -o "$scratch/hurried"
for _ in 1 2 3 4; do UINTR_BACKEND=signals timeout 120 "$scratch/hurried" 5 40000 >"$scratch/said" || fail "a tick was lost: $(cat "$scratch/said")"; done
! UINTR_BACKEND=signals "$scratch/turns" 0 2>"$scratch/said" || fail "no threads took turns"
passes "$(dirname "$(ci/built)")/examples/turns" 5 5000
tail -1 "$scratch/said"

step "a register of any kind that changes while a thread is interrupted is found"
changes=('notq %r15' 'notq %rbp' cmc std 'ldmxcsr (%rsp)' 'fldcw 4(%rsp)' 'pxor %mm7, %mm7' 'movq %xmm15, %xmm15')
! grep -qw avx /proc/cpuinfo || changes+=(vzeroupper)
! grep -qw avx512bw /proc/cpuinfo || changes+=('vmovdqu %ymm15, %ymm15' 'vpxorq %xmm31, %xmm31, %xmm31' 'kshiftlq $1, %k7, %k7')
for change in "${changes[@]}"; do
    sed "s|jnz 4b.n\"|&\n\"\t$change\\\\n\"|" uintr/driver/examples/registers.h >"$scratch/registers.h"
    grep -qF "$change" "$scratch/registers.h" || fail "nothing to plant: $change"
    cp uintr/driver/examples/turns.c "$scratch/changed.c"
    compile "$scratch/changed.c" "$library" -o "$scratch/changed"
    ! UINTR_BACKEND=signals "$scratch/changed" 2 20 >"$scratch/said" || fail "not found: $change"
    grep -q ' turns, REGISTERS CHANGED ' "$scratch/said" || fail "$change: $(cat "$scratch/said")"
done

step "an interrupt in a hundred that is forgotten is found"
compile -DUINTR_FORGETS -DLOST_AFTER=5 uintr/driver/tests/conformance/*.c uintr/driver/user/*.c -lm -o "$scratch/forgets"
# Forty chances and more: one that is forgotten just before the receiver looks again harms nobody.
"$scratch/forgets" signals --only "many to one that only" >"$scratch/said" 2>&1 && fail "it was not"
for case in "many to one that only runs, each handled alone" "many to one that only waits"; do
    grep -q "^not ok [0-9]* - $case$" "$scratch/said" || fail "'$case' passed"
done

step "between any two steps of a receiver somebody sends, and a sender is killed or overtaken between any two of its own"
moments() { compile -muintr -DUINTR_MOMENTS -Wl,--wrap=malloc,--wrap=calloc,--wrap=free "${@:2}" "$1/user/tests/moments.c" "$1"/user/*.c; }
moments uintr/driver -o "$scratch/moments"
passes "$scratch/moments"
tail -1 "$scratch/said"

# plant moments|entry FILE SED CASE...: a mistake in a copy, and the cases of that program that must find it.
plant() {
    local copy=$scratch/planted program=$1 file=$2 edit=$3
    rm -rf "$copy"
    cp -r uintr/driver "$copy"
    sed -i "$edit" "$copy/user/$file"
    ! cmp -s "uintr/driver/user/$file" "$copy/user/$file" || fail "nothing to plant: $edit"
    "$program" "$copy" -O0 -DLOST_AFTER=2 -o "$scratch/mistaken"
    "$scratch/mistaken" >"$scratch/said" 2>&1 && fail "not found: $edit"
    for case in "${@:4}"; do
        grep -q "^not ok [0-9]* - $case$" "$scratch/said" || fail "'$case' passed: $edit"
    done
}
step "a frame that leaves something out, or is longer than what is in use"
if grep -qw avx512f /proc/cpuinfo; then
    plant entry hardware.c 's|andl uintr_xsave_states(%rip), %eax|andl $3, %eax|' "a thread that uses AVX finds it as it was" "a thread that uses AVX-512 finds it as it was"
    plant entry hardware.c 's|leaq -832(%rsp)|leaq -2688(%rsp)|' "a thread that uses AVX finds it as it was"
else
    ci/skipped "no AVX-512: two planted mistakes in what a frame keeps were not tried"
fi
plant entry hardware.c 's|orl $2, %eax|andl $~2, %eax|' "a thread that uses SSE finds it as it was"
step "a handler, which may have interrupted malloc(), that comes to the heap"
plant moments signals-eventfd.c 's|^\twatched->next = spare;|\tfree(malloc(1));\n&|' "the heap is left alone by a handler that gives an eventfd"
step "a sender that says it rang before it did; that looks before it posts; receivers that do not look once more"
plant moments signals-send.c 's|^\tmode = __atomic_load_n|\t__atomic_fetch_or(connection->post, RUNG, __ATOMIC_SEQ_CST);\n&|' \
    "another sends to one that runs, whose first sender was killed before the ring" \
    "another sends to one that sleeps in a wait, whose first sender was killed before the ring"
plant moments signals-send.c 's|^\tmode = __atomic_load_n.*||; s|^\tuintr_moment(BEFORE_THE_POST);|\tmode = __atomic_load_n(\&connection->status->mode, __ATOMIC_SEQ_CST);\n&|' \
    "a receiver opens while its sender is before the post" "a receiver waits while its sender is before the post"
plant moments signals-handlers.c 's|} while (pending(receiver));|} while (0);|' "one is sent to a receiver that runs, before it opens"
plant moments signals-handlers.c 's|if (pending(uintr_signals_own))|if (0)|' "one is sent to a receiver whose handler ends by UIRET, before it opens"
# The handler of a signal that comes between the look and the poll takes what the poll is to find.
plant moments signals.c 's|if (mode_of(receiver) == POLLING)|if (0)|' "one is sent to a receiver that loops masked, before it sleeps"
plant moments signals-wait.c 's|^\t\tfound = pending(receiver);|\t\tfound = 0;|' "one is sent to a receiver that loops masked, before it says that it waits"
plant moments signals-wait.c 's|^\tif (receiver->bell_rung) {|\tif (0) {|' "a thousand are sent to a receiver that loops masked, behind saying that it waits"
plant moments signals.c '/^void uintr_signals_unmask/,/^}/s|if (!pending(receiver))|if (1)|' "one is sent to a receiver that unmasks, before it opens"

echo "62-uintr-user: what was sent was heard, without the hardware"
