#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The package of Debian's has the command, a manual page for each verb and completions, lintian finds no error in it, and two of one commit are the
# same. The step of GitHub Actions and the job of GitLab CI satisfy their schemas; the step's script annotates what got worse, and says that
# an inconclusive check is no failure. With the program of the tests: an optimised one is packed in the same way.
# Inputs: lab/command/Cargo.toml lab/command/install lab/command/package lab/command/ci
# Inputs: lab/command/src/cli/man.rs lab/command/src/cli/completions.rs action.yml
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/51-package.sh
ci/install/49-readers.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
strip -o "$out/doorbell" "$(ci/built)"
export BUILT=$out/doorbell

package=$(lab/command/package/deb "$out/one")
# Paths begin where it is called, as every tool's do.
tree=$PWD
(cd "$out" && BUILT=doorbell "$tree/lab/command/package/deb" here >/dev/null && BUILT=doorbell DESTDIR=staged "$tree/lab/command/install" prefix >/dev/null)
[ -s "$out/here/$(basename "$package")" ] && [ -x "$out/staged$out/prefix/bin/doorbell" ] || fail "paths do not begin where it is called"
again=$(lab/command/package/deb "$out/two")
cmp "$package" "$again" || fail "two packages of one commit differ"
dpkg-deb -x "$package" "$out/root"
"$out/root/usr/bin/doorbell" --version | grep -q "^doorbell " || fail "the packed command does not run"
for verb in ping top claims fleet; do
    gzip -dc "$out/root/usr/share/man/man1/doorbell-$verb.1.gz" | grep -q "doorbell-$verb" || fail "no manual page of $verb"
done
for file in bash-completion/completions/doorbell zsh/vendor-completions/_doorbell fish/vendor_completions.d/doorbell.fish; do
    [ -s "$out/root/usr/share/$file" ] || fail "no $file"
done
if command -v lintian >/dev/null; then
    # It is no package of Debian's archive: it closes no bug there, and nobody of it reads mail.
    tags=initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog
    lintian --allow-root --fail-on error --suppress-tags "$tags" "$package" || fail "lintian finds errors"
else
    ci/skipped "51-package: lintian is not installed (ci/install/51-package.sh)"
fi

schema() { "$(ci/readers)/bin/check-jsonschema" --builtin-schema "vendor.$1" "$2" >"$out/said" 2>&1; }
schema github-actions action.yml || fail "$(cat "$out/said")"
schema gitlab-ci lab/command/ci/gitlab.yml || fail "$(cat "$out/said")"
sed 's/using: composite/using: compost/' action.yml >"$out/wrong.yml"
! schema github-actions "$out/wrong.yml" || fail "a wrong word in action.yml is not refused"
sed 's/  script:/  scripts:/' lab/command/ci/gitlab.yml >"$out/wrong.yml"
! schema gitlab-ci "$out/wrong.yml" || fail "a wrong word in gitlab.yml is not refused"

# step BASELINE FAIL-IF ARGUMENTS... : the script of the step as it is run there.
step() {
    BASELINE=$1 FAIL_IF=$2 ARGUMENTS="${*:3}" RESULT=$out/result.json DOORBELL=$BUILT GITHUB_OUTPUT=$out/output GITHUB_STEP_SUMMARY=$out/summary \
        lab/command/ci/github >"$out/said" 2>&1
}
export XDG_STATE_HOME=$out XDG_RUNTIME_DIR=$out
"$BUILT" ping futex --gap 0 --count 2000 --blocks 6 --placement same-core --quiet -o "$out/baseline.json" >/dev/null
status=0
step "$out/baseline.json" "p50>1ns" --anyway || status=$?
[ "$status" -eq 3 ] || [ "$status" -eq 0 ] || fail "a limit that nothing keeps ended with $status: $(cat "$out/said")"
if [ "$status" -eq 3 ]; then
    grep -q '^::error' "$out/said" || fail "what got worse is not annotated: $(cat "$out/said")"
    grep -q '^status=3$' "$out/output" || fail "the step's status is not told"
else
    # Others worked on this machine: nothing was shown.
    grep -q '^status=4$' "$out/output" || fail "a limit that nothing keeps was kept: $(cat "$out/said")"
fi
[ -s "$out/summary" ] || fail "the step has no summary"
! step "$out/gone.json" "p50>+5%" || fail "a baseline that is not there is no failure"
"$(ci/readers)/bin/python" -c 'import ruamel.yaml
print("\n".join(ruamel.yaml.YAML(typ="safe").load(open("lab/command/ci/gitlab.yml"))["wake-ups"]["script"]))' >"$out/gitlab.sh"
# Each line of an input counts, and a result never takes its baseline's place.
mkdir "$out/fake"
printf '#!/bin/sh\nprintf "%%s " "$@" >"%s"\n' "$out/words" >"$out/fake/doorbell"
chmod +x "$out/fake/doorbell"
BASELINE=b.json FAIL_IF=$'p50>+5%\np99>+10%\n lost>0' ARGUMENTS=$'--anyway\n--quiet' RESULT=$out/result.json DOORBELL=$out/fake/doorbell \
    lab/command/ci/github >"$out/said" 2>&1 || fail "$(cat "$out/said")"
grep -q -- '--fail-if p50>+5% --fail-if p99>+10% --fail-if lost>0 --anyway --quiet $' "$out/words" || fail "words were lost: $(cat "$out/words")"
# What the job of GitLab CI is told by who includes it.
(cd "$out" && BASELINE=ci/w.json FAIL_IF="p50>+5% lost>0" PATH=$out/fake:$PATH sh -e gitlab.sh)
grep -q -- '--baseline ci/w.json --fail-if p50>+5% --fail-if lost>0 ' "$out/words" || fail "the job of GitLab does not take its variables: $(cat "$out/words")"
(cd "$out" && PATH=$out/fake:$PATH sh -e gitlab.sh)
grep -q -- '--baseline wake-ups.json --fail-if p50>+5% --quiet ' "$out/words" || fail "the job of GitLab has other defaults: $(cat "$out/words")"
cp "$out/baseline.json" "$out/kept.json"
! BASELINE=$out/kept.json RESULT=$out/../$(basename "$out")/kept.json DOORBELL=$BUILT lab/command/ci/github >"$out/said" 2>&1 || fail "a result is written over its baseline"
cmp "$out/baseline.json" "$out/kept.json" || fail "the baseline is gone"
# An input is never part of a script.
step "$out/baseline.json" '$(touch "$out/smuggled")' || true
[ ! -e "$out/smuggled" ] || fail "an input was run"
echo "51-package: $(basename "$package"), $(stat -c %s "$package") bytes"
