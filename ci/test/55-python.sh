#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the wheel, installs it as a user would, runs its tests, and checks its types and that the stubs are true.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/python.sh
venv=$PWD/target/venv
# Not the folder to which pip builds, as another suite may have it do meanwhile.
wheels=$PWD/target/python/wheels
rm -rf "$wheels"
# A target folder of its own: the interpreter's name is part of what the crate is built with.
PYO3_PYTHON=$venv/bin/python CARGO_TARGET_DIR=$PWD/target/python \
    "$venv/bin/maturin" build --quiet --release --locked --manifest-path library/py/Cargo.toml --out "$wheels"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/doorbell_ipc-*.whl
cd library/py
timeout 1800 "$venv/bin/python" -m pytest
"$venv/bin/python" -m mypy --cache-dir "$wheels/mypy" python/doorbell tests
"$venv/bin/python" -m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tests/stubtest-allowlist --ignore-unused-allowlist doorbell
