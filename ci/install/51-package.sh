#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What packages are made and judged with.
exec "$(dirname "$0")/debian" binutils dpkg lintian
