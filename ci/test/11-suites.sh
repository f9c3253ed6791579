#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# ci/suites itself, in a tree of its own with suites that pass, fail, try nothing and change their inputs: only a pass is recorded, and
# what is recorded is trusted as long as its inputs are the same.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
scratch
tree=$scratch/tree
mkdir -p "$tree/ci/test" "$tree/parts"
cp ci/suites ci/skipped "$tree/ci/"
cd "$tree"
git init --quiet
export GIT_AUTHOR_NAME=nobody GIT_AUTHOR_EMAIL=nobody@localhost GIT_COMMITTER_NAME=nobody GIT_COMMITTER_EMAIL=nobody@localhost
unset DOORBELL_LANES DOORBELL_SKIPPED
# suite NAME INPUTS BODY
suite() {
    printf '#!/bin/sh\n%s\n%s\n' "${2:+# Inputs: $2}" "$3" >"ci/test/$1.sh"
    chmod +x "ci/test/$1.sh"
}
# ends STATUS LAST-LINE ARGUMENT... : ci/suites with these arguments; what it says is in $scratch/said.
ends() {
    local status=0
    ci/suites "${@:3}" >"$scratch/said" 2>&1 || status=$?
    [ "$status" -eq "$1" ] && [ "$(tail -1 "$scratch/said")" = "$2" ] || fail "ci/suites ${*:3} ended with $status: $(cat "$scratch/said")"
}
says() { grep -qF -- "$1" "$scratch/said" || fail "'$1' is not in: $(cat "$scratch/said")"; }
recorded() { [ -e ci/passed.json ] && grep -q "^\"$1\"" ci/passed.json; }

echo one >parts/one
echo two >parts/two
suite 1-always "" "echo always"
suite 2-passes "parts/one" 'cat parts/one; ci/skipped "a part"'
suite 3-tries-nothing "parts" 'ci/skipped "no machine"; exit 77'
suite 4-changes "parts/two" 'echo changed >>parts/two'

ends 0 "1 passed, 0 failed, 0 skipped" test
[ ! -e ci/passed.json ] || fail "what runs for every change is recorded"
ends 0 "3 passed, 0 failed, 2 skipped" ci
recorded 2-passes || fail "a pass is not recorded"
says "4-changes is not recorded: its inputs changed while it ran"
says "nothing was tried in: 3-tries-nothing"
for name in 1-always 3-tries-nothing 4-changes; do ! recorded $name || fail "$name is recorded"; done

# When that was: midnight may pass meanwhile.
day=$(sed -n 's/.*"date": "\([^"]*\)".*/\1/p' ci/passed.json | head -1)
rm ci/test/[34]-*
ends 0 "1 passed, 0 failed, 0 skipped" ci
says "not repeated: 2-passes: inputs as of $day"
says "skipped then: a part"
# Each of these has it run again: a file, the script, a part of the tree that the script names, and time.
echo more >>parts/one
ends 0 "2 passed, 0 failed, 1 skipped" ci
says "to run: 2-passes: its inputs moved since $day"
ends 0 "1 passed, 0 failed, 0 skipped" ci
suite 2-passes "parts/one" 'cat parts/one parts/two'
ends 0 "2 passed, 0 failed, 0 skipped" ci
echo more >>parts/two
ends 0 "2 passed, 0 failed, 0 skipped" ci
ends 0 "1 passed, 0 failed, 0 skipped" ci
sed -i 's/"date": "[^"]*"/"date": "2020-01-01"/' ci/passed.json
ends 0 "2 passed, 0 failed, 0 skipped" ci
# A suite that fails is not recorded, and neither is one that says nothing about why it tried nothing.
suite 2-passes "parts/one" 'exit 1'
ends 1 "1 passed, 1 failed, 0 skipped" ci
suite 2-passes "parts/one" 'exit 77'
ends 1 "0 passed, 1 failed, 0 skipped" record
ends 1 "1 passed, 1 failed, 0 skipped" ci
says "to run: 2-passes"
# A failure ends what runs beside it.
suite 1-always "" 'sleep 1000'
DOORBELL_LANES=2 ends 1 "0 passed, 1 failed, 0 skipped" all
suite 2-passes "parts/gone" true
ci/suites list >"$scratch/said" 2>&1 && fail "an input that is not there is taken"
says "has parts/gone among its inputs, which is not there"
echo "11-suites: what did not pass is not recorded"
