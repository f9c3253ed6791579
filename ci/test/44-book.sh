#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The book is built, every page of it is in it, and every link leads somewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/44-book.sh
# The table of what runs where is as the program that fills it writes it.
ci/everywhere --check
mkdir -p target
rm -rf target/book
"$(ci/mdbook)/bin/mdbook" build 2>target/book.log || fail "$(cat target/book.log)"
! grep -E 'WARN|ERROR' target/book.log || fail "mdBook complains"
for page in book/*.md; do
    name=$(basename "$page" .md)
    [ "$name" = SUMMARY ] || [ -s "target/book/$name.html" ] || fail "$name.md is not in SUMMARY.md"
done
ci/links target/book
# A link that leads nowhere is found, or this proves nothing.
echo '<a href="gone.html">' >>target/book/index.html
! ci/links target/book >/dev/null 2>&1 || fail "a planted link that leads nowhere went unseen"
