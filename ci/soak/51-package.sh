#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The static program for each processor, and its package: a first run of each, in user emulation where the processor is another; and a
# container image of this machine's, if buildah is there, whose program runs in it.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/11-targets.sh
ci/install/51-package.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export XDG_STATE_HOME=$out XDG_RUNTIME_DIR=$out
own=$(lab/command/package/static)
for machine in x86_64 aarch64 riscv64; do
    program=$(lab/command/package/static "$machine")
    ! readelf -d "$program" | grep -q NEEDED || fail "$program needs a library"
    runner=()
    [ "$machine" = "$(uname -m)" ] || runner=("qemu-$machine-static")
    "${runner[@]}" "$program" --version | grep -q "^doorbell " || fail "the program for $machine does not run"
    "${runner[@]}" "$program" list | grep '^futex  *yes' >/dev/null || fail "the program for $machine asks this kernel nothing"
    # A trial's host is this program once more, which the kernel starts by itself: another processor's only where binfmt_misc knows it.
    if [ ${#runner[@]} -eq 0 ] || [ -e "/proc/sys/fs/binfmt_misc/qemu-$machine" ]; then
        "${runner[@]}" "$program" ping futex --gap 0 --count 200 --blocks 1 --quiet -o "$out/$machine.json" >/dev/null || [ $? -eq 4 ] ||
            fail "the program for $machine measures nothing"
    fi
    package=$(BUILT=$program PAGES=$own lab/command/package/deb "$out")
    echo "51-package: $machine: $(stat -c %s "$program") bytes, $(basename "$package") $(stat -c %s "$package") bytes"
done
if command -v buildah >/dev/null; then
    name=doorbell-soak-$$ container=
    BUILT=$own lab/command/package/container "$name" >/dev/null
    trap 'rm -rf "$out"; [ -z "$container" ] || buildah rm "$container" >/dev/null; buildah rmi "$name" >/dev/null' EXIT
    container=$(buildah from "$name")
    buildah run --isolation chroot "$container" doorbell --version | grep -q "^doorbell " || fail "the program in the container does not run"
    echo "51-package: the container's program runs"
else
    ci/skipped "51-package: buildah is not installed"
fi
