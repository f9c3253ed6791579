#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Opens reports of a real result in a real browser, from `file:`, with scripts and without; leaves pictures of what a
# reader sees in target/report/.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="$PWD/target/report"
rm -rf "$out"
mkdir -p "$out"
results=crates/lab/tests/data
cargo build --quiet --package doorbell-lab
doorbell="${CARGO_TARGET_DIR:-target}/debug/doorbell"

fail() { echo "40-report: $*" >&2; exit 1; }

# chrome NAME FLAG... : one run with a profile of its own; its log goes to NAME.log.
chrome() {
    local name=$1 profile
    shift
    profile=$(mktemp -d)
    timeout 120 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$profile" \
        --enable-logging=stderr --virtual-time-budget=2000 "$@" 2>"$out/$name.log" \
        || fail "the browser failed on $name: $(tail -3 "$out/$name.log")"
    rm -rf "$profile"
}
silent() { ! grep -q ':CONSOLE' "$out/$1.log" || fail "$1: $(grep ':CONSOLE' "$out/$1.log" | head -3)"; }
has() { grep -qF -- "$2" "$out/$1" || fail "$1 lacks $2"; }
lacks() { ! grep -qF -- "$2" "$out/$1" || fail "$1 has $2"; }

"$doorbell" report -q "$results/survey.json" -o "$out/survey.html"
"$doorbell" report -q "$results/ping.json" "$results/ping-again.json" -o "$out/two.html"
"$doorbell" report -q "$results/survey.json" --picture placements -o "$out/placements.svg"

# The log does tell complaints: a page that breaks its own policy is caught.
sed 's/<main/<main onclick="x()" style="color:red"/' "$out/survey.html" >"$out/broken.html"
chrome broken --dump-dom "file://$out/broken.html" >"$out/broken.dom"
grep -q ':CONSOLE' "$out/broken.log" || fail "a breach of the page's policy went unseen: this test proves nothing"

for page in survey two; do
    chrome "$page" --dump-dom "file://$out/$page.html" >"$out/$page.dom"
    silent "$page"
    has "$page.dom" 'aria-pressed="true"'           # the script ran
    has "$page.dom" '>null (the harness)</t'
    # A browser whose scripts are switched off can neither print nor dump from the command line; a policy without
    # scripts blocks the page's own just as well, and is the only thing the browser then complains of.
    sed 's,script-src &#39;sha256-[^&]*,script-src \&#39;none,' "$out/$page.html" >"$out/$page-bare.html"
    chrome "$page-bare" --no-pdf-header-footer --print-to-pdf="$out/$page-bare.pdf" "file://$out/$page-bare.html"
    grep -q ":CONSOLE.*Executing inline script violates" "$out/$page-bare.log" || fail "$page: the script was not blocked"
    pdftotext -layout "$out/$page-bare.pdf" "$out/$page-bare.txt"
    for text in 'null (the harness)' 'All times in' 'p99.9' 'Warnings' 'How to repeat it' '--seed' 'Nothing on this page'; do
        has "$page-bare.txt" "$text"
    done
    lacks "$page-bare.txt" 'Copy the results'       # a button the script makes: here it did not run
done

# A link to an arm shows it alone.
arm=$(grep -o -m1 '<tr data-arm="[^"]*"' "$out/survey.html" | cut -d'"' -f2)
chrome link --dump-dom "file://$out/survey.html#arm=$arm" >"$out/link.dom"
has link.dom 'class="off"'

# Nothing but the scrolling boxes is wider than a narrow screen. The probe needs a page without its policy.
sed -e '/Content-Security-Policy/d' \
    -e 's|</body>|<script>document.body.dataset.excess=document.documentElement.scrollWidth-innerWidth</script></body>|' \
    "$out/survey.html" >"$out/probe.html"
for width in 500 1280; do
    chrome probe --window-size=$width,900 --dump-dom "file://$out/probe.html" >"$out/probe.dom"
    excess=$(grep -o 'data-excess="[^"]*"' "$out/probe.dom" | cut -d'"' -f2)
    [ -n "$excess" ] && [ "$excess" -le 0 ] || fail "at $width units the page is ${excess:-?} wider than the window"
done

chrome light --window-size=1280,2400 --screenshot="$out/light.png" "file://$out/survey.html"
chrome dark --window-size=1280,2400 --blink-settings=preferredColorScheme=0 --screenshot="$out/dark.png" "file://$out/survey.html"
chrome narrow --window-size=400,2400 --screenshot="$out/narrow.png" "file://$out/survey.html"
chrome picture --window-size=1000,700 --screenshot="$out/placements.png" "file://$out/placements.svg"
pdftoppm -r 60 -png -l 6 "$out/survey-bare.pdf" "$out/print"
for picture in light dark narrow picture; do silent "$picture"; done
cmp -s "$out/light.png" "$out/dark.png" && fail "dark looks like light"
for picture in "$out"/{light,dark,narrow,placements}.png; do
    # A page of one colour compresses to next to nothing.
    [ "$(stat -c %s "$picture")" -gt 20000 ] || fail "$picture is blank"
done
ls "$out"/print*.png >/dev/null
echo "40-report: pictures in $out"
