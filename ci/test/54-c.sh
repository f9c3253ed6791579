#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs the C library as a user would, compiles the examples against the shared and the static one through
# pkg-config, and runs them: as they are, under AddressSanitizer and valgrind, and with the other side killed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/54-c.sh
out="$PWD/target/c"
rm -rf "$out"
mkdir -p "$out"
scratch

library/ffi/install "$out/prefix"
export PKG_CONFIG_PATH=$out/prefix/lib/pkgconfig
strict=(-Wall -Wextra -Werror -pedantic -O1 -g)
read -ra cflags < <(pkg-config --cflags doorbell)
read -ra shared < <(pkg-config --libs doorbell)
read -ra static < <(pkg-config --static --libs doorbell | sed 's/-ldoorbell/-l:libdoorbell.a/')
rpath=-Wl,-rpath,$out/prefix/lib

# Each exported name is in the header, and each function of the header is exported.
nm -D --defined-only "$out/prefix/lib/libdoorbell.so" | awk '$2 == "T" { print $3 }' | sort >"$scratch/exported"
echo '#include <doorbell.h>' | gcc -std=c11 "${cflags[@]}" -E -P - | grep -o 'doorbell_[a-z_]*(' | tr -d '(' | sort -u >"$scratch/declared"
diff "$scratch/declared" "$scratch/exported" || fail "the header (<) and the library (>) differ"
[ "$(wc -l <"$scratch/exported")" -gt 30 ] || fail "the library exports next to nothing: this test proves nothing"
# The header stands alone, in either language.
for language in "c -std=c11" "c++ -std=c++17"; do
    # shellcheck disable=SC2086
    echo '#include <doorbell.h>' | gcc -x $language "${strict[@]}" "${cflags[@]}" -fsyntax-only -
done

# compile NAME KIND FLAG...: NAME.c or NAME.cpp to $out/NAME-KIND
compile() {
    local name=$1 kind=$2 source=library/ffi/examples/$1 standard=c++17
    shift 2
    [ "$name" != coroutine ] || standard=c++20
    if [ -e "$source.cpp" ]; then
        g++ -std=$standard "${strict[@]}" "${cflags[@]}" "$source.cpp" -o "$out/$name-$kind" "$@" -pthread
    else
        gcc -std=c11 -D_GNU_SOURCE "${strict[@]}" "${cflags[@]}" "$source.c" -o "$out/$name-$kind" "$@" -pthread
    fi
}

examples=()
for source in library/ffi/examples/*.c library/ffi/examples/*.cpp; do
    name=$(basename "${source%.*}")
    examples+=("$name")
    compile "$name" shared "$rpath" "${shared[@]}"
    compile "$name" static "${static[@]}"
    [ "$name" != serve ] || compile "$name" alone -static "${static[@]}"
    compile "$name" asan -fsanitize=address,undefined -fno-sanitize-recover=undefined "$rpath" "${shared[@]}"
done
! ldd "$out/serve-alone" >"$scratch/ldd" 2>&1 || fail "a program linked with -static needs a library: $(cat "$scratch/ldd")"
timeout --kill-after=5 120 "$out/serve-alone" "$scratch/serve-alone" 3 | grep -x '3 clients were answered' >/dev/null || fail "serve (alone)"
! grep -q libdoorbell <<<"$(ldd "$out/host-static" 2>&1)" || fail "the static example needs the shared library"
grep -qF "$out/prefix/lib/libdoorbell.so.0" <<<"$(ldd "$out/host-shared")" || fail "the shared example does not use the library"

# What the pages print compiles. Where it is no program, each block is the body of a function.
for page in library/doorbell/README.md library/ffi/README.md; do
    for language in c cpp; do
        printed=$scratch/printed-$(basename "$(dirname "$page")")
        awk -v kind="$language" -v out="$printed" '
            $0 == "```" kind { file = sprintf("%s-%d.%s", out, ++number, kind); inside = 1; next }
            /^```$/ { inside = 0 }
            inside { print > file }' "$page"
    done
done
[ "$(ls "$scratch"/printed-* | wc -l)" -ge 4 ] || fail "the pages print nothing in C: this test proves nothing"
for printed in "$scratch"/printed-*; do
    standard=c11
    [ "${printed##*.}" = c ] || standard=c++20
    if ! grep -q 'int main' "$printed"; then
        include='#include <doorbell.h>\nstatic doorbell_service *service;\n'
        [ "$standard" = c11 ] || include='#include <doorbell.hpp>\n'
        { printf "$include"; echo 'void printed(void);'; echo 'void printed(void) {'; cat "$printed"; echo '}'; } >"$scratch/body"
        mv "$scratch/body" "$printed"
        # As on a page: what is not looked at is not said to be so.
        gcc -std=$standard "${strict[@]}" -Wno-unused-variable "${cflags[@]}" -fsyntax-only "$printed" || fail "the pages print what does not compile"
    else
        gcc -std=$standard "${strict[@]}" "${cflags[@]}" "$printed" -o "$out/printed" "$rpath" "${shared[@]}"
    fi
done

# How long anything may take: far longer than it does anywhere.
limit() { timeout --kill-after=5 120 "$@"; }
# A socket's file is there before anybody listens at it.
listens() { awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix; }
wait_for() { for _ in $(seq 1200); do ! listens "$1" || return 0; sleep 0.05; done; fail "nobody listens at $1"; }

# run KIND: all examples of a kind. Not grep -q: it leaves at its match, and whoever writes on dies of SIGPIPE.
run() {
    local kind=$1 path=$scratch/bell-$1
    limit "$out/fork-$kind" | grep -x '1000 rounds' >/dev/null || fail "fork ($kind)"
    limit "$out/inherit-$kind" | grep 'rang 3 times and left' >/dev/null || fail "inherit ($kind)"
    limit "$out/event_loop-$kind" >"$scratch/loop" || fail "event_loop ($kind): $(cat "$scratch/loop")"
    limit "$out/serve-$kind" "$scratch/serve-$kind" 3 | grep -x '3 clients were answered' >/dev/null || fail "serve ($kind)"
    limit "$out/in_place-$kind" | grep -x '1000 answers' >/dev/null || fail "in_place ($kind)"
    limit "$out/batch-$kind" | grep '^20000 messages' >/dev/null || fail "batch ($kind)"
    limit "$out/select-$kind" | grep -x '1000 messages, 10 lines' >/dev/null || fail "select ($kind)"
    limit "$out/select-$kind" files | grep -x '1000 messages, 10 lines' >/dev/null || fail "select by files ($kind)"
    limit "$out/coroutine-$kind" "$scratch/coroutine-$kind" >"$scratch/coroutines" || fail "coroutine ($kind)"
    [ "$(grep -cx '2 clients, 3 rings, 1000 messages' "$scratch/coroutines")" = 2 ] || fail "coroutine ($kind): $(cat "$scratch/coroutines")"
    limit "$out/many-$kind" | grep -x '3 subscribers heard 500 messages' >/dev/null || fail "many ($kind)"
    limit "$out/meet-$kind" "$path" | grep 'says: hello from C++' >/dev/null || fail "meet ($kind)"
    limit "$out/host-$kind" "$path" >"$scratch/host" 2>&1 & pids+=($!)
    local host=$!
    wait_for "$path"
    limit "$out/join-$kind" "$path" | grep 'says: hello to you' >/dev/null || fail "join ($kind)"
    wait "$host" || fail "host ($kind): $(cat "$scratch/host")"
    grep -qx 'heard: hello from C' "$scratch/host" || fail "host ($kind) heard: $(cat "$scratch/host")"
    grep -q 'closed its end or died' "$scratch/host" || fail "host ($kind) was not told of the end"
    [ ! -e "$path" ] || fail "host ($kind) left its path"
    limit "$out/receive-$kind" "$path" >"$scratch/received" 2>&1 & pids+=($!)
    local receiver=$!
    wait_for "$path"
    limit "$out/send-$kind" "$path" "first message" "second" "" || fail "send ($kind)"
    wait "$receiver" || fail "receive ($kind): $(cat "$scratch/received")"
    printf '%s\n' "first message" second "" | diff - "$scratch/received" || fail "receive ($kind)"
    echo "54-c: ${#examples[@]} examples, $kind, passed"
}

run shared
run static
# With its leak check.
run asan
# Valgrind hides the vDSO and has no futex_waitv: the library looks for the one where the C library does, and asks for the other.
# (rustix gives epoll_pwait() no signal mask, hence no size of one either.)
printf '{\n   no mask, no size\n   Memcheck:Param\n   epoll_pwait(sigsetsize)\n   obj:*\n}\n' >"$scratch/suppressed"
memcheck=(valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
    --suppressions="$scratch/suppressed")
limit "${memcheck[@]}" "$out/select-shared" 2>"$scratch/valgrind" | grep -x '1000 messages, 10 lines' >/dev/null ||
    fail "select under valgrind: $(cat "$scratch/valgrind")"
limit "${memcheck[@]}" "$out/in_place-shared" 2>"$scratch/valgrind" | grep -x '1000 answers' >/dev/null ||
    fail "in_place under valgrind: $(cat "$scratch/valgrind")"

# The other side is killed while it waits: the join fails, by name, instead of hanging.
"$out/host-shared" "$scratch/killed" >/dev/null & pids+=($!)
host=$!
wait_for "$scratch/killed"
kill -KILL "$host"
wait "$host" || true
said=$(limit "$out/join-shared" "$scratch/killed" 2>&1) && fail "joined a dead host"
grep -q 'no owner' <<<"$said" || fail "a dead host was reported as: $said"

# The program of the library's page, and a service that answers each message with the same.
mkdir "$scratch/names"
DOORBELL_RUNTIME_DIR=$scratch/names "$out/serve-shared" clock >/dev/null & pids+=($!)
wait_for "$scratch/names/clock.sock"
said=$(DOORBELL_RUNTIME_DIR=$scratch/names limit "$out/printed") || fail "the library's page: $said"
[ "$said" = 'how late is it?' ] || fail "the library's page said: $said"
said=$(DOORBELL_RUNTIME_DIR=$scratch limit "$out/printed" 2>&1) && fail "nobody listens, and the library's page answers"
grep -q 'no owner\|nobody' <<<"$said" || fail "nobody listens, and the library's page says: $said"

# With DESTDIR, files go there and the pkg-config file names the prefix.
DESTDIR=$scratch/root library/ffi/install /opt/doorbell >/dev/null
grep -qx 'prefix=/opt/doorbell' "$scratch/root/opt/doorbell/lib/pkgconfig/doorbell.pc" || fail "DESTDIR"
echo "54-c: passed"
