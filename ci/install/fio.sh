#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tool whose results `doorbell io` reads and is held against.
exec "$(dirname "$0")/debian" fio python3
