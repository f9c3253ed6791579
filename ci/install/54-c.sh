#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the C interface is tested with.
exec "$(dirname "$0")/debian" gcc g++ libasio-dev libc6-dev pkg-config valgrind
