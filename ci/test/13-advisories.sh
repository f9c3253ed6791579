#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# No lock has a version with a fault that was known on the day of the snapshot in ci/advisories.py; `cargo audit` knows later ones.
exec "$(dirname "$0")/../advisories.py"
