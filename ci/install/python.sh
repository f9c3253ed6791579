#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# An environment in target/venv with what builds and tests the Python package, at these versions.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
ci/install/debian python3 python3-venv
tools="maturin==1.16.0 pytest==9.2.0 mypy==2.4.1 numpy==2.4.6"
if [ "$(cat target/venv/tools 2>/dev/null)" != "$tools" ]; then
    rm -rf target/venv
    mkdir -p target
    # Debian's interpreter, whatever else is on the path.
    /usr/bin/python3 -m venv target/venv
    # shellcheck disable=SC2086
    target/venv/bin/pip install --quiet --disable-pip-version-check $tools
    echo "$tools" >target/venv/tools
fi
