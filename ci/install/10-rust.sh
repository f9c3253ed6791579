#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A C compiler and make are what building the lab needs beside Rust.
exec "$(dirname "$0")/debian" gcc libc6-dev make
