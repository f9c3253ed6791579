#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# HdrHistogram in Python, into target/hdrhistogram: a reader of our exports that shares no code with their writer.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
version=0.10.8
home="${CARGO_TARGET_DIR:-target}/hdrhistogram"
[ "$("$home/bin/python" -c 'from importlib.metadata import version; print(version("hdrhistogram"))' 2>/dev/null)" = "$version" ] &&
    exit 0
ci/install/debian python3 python3-venv
python3 -m venv "$home"
"$home/bin/pip" install --quiet --only-binary :all: --disable-pip-version-check "hdrhistogram==$version"
