#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The report is tested in a real browser; pdftoppm shows the printed pages.
exec "$(dirname "$0")/debian" chromium fonts-dejavu-core poppler-utils
