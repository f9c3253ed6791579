#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What ci/readers lists, into the folder that ci/readers names.
set -euo pipefail
# What is installed is for all to read and for nobody else to write.
umask 022
cd "$(dirname "$0")/../.."
home="$(ci/readers)"
[ -e "$home/complete" ] && exit 0
ci/install/debian python3 python3-venv
rm -rf "$home"
# Debian's interpreter, whatever else is on the path.
/usr/bin/python3 -m venv "$home"
# shellcheck disable=SC2046
"$home/bin/pip" install --quiet --disable-pip-version-check $(ci/readers versions)
touch "$home/complete"
