#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The Python package without an interpreter's lock: all its tests, on a CPython that is built for it.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/free-threaded || nothing_tried "no CPython without a lock could be built (ci/install/free-threaded)"
ci/install/python.sh
python=$(ci/free-threaded)/bin/python3
"$python" -c 'import sys; sys.exit(sys._is_gil_enabled())'
wheels=$PWD/target/wheels-free-threaded
rm -rf "$wheels"
PYO3_PYTHON=$python CARGO_TARGET_DIR=$PWD/target/python target/venv/bin/maturin build --quiet --release --locked \
    --interpreter "$python" --manifest-path library/py/Cargo.toml --out "$wheels"
installed=$PWD/target/free-threaded
rm -rf "$installed"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$installed" "$wheels"/doorbell_ipc-*.whl
cd library/py
# Without a word about it the interpreter would take its lock again for a module that does not say that it needs none.
PYTHONPATH=$installed timeout 600 "$python" -m pytest
