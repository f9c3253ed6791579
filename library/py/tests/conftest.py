# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests rely on, whoever starts them."""

import signal

# A script's `&` starts what it starts with this signal ignored, which every child inherits.
signal.signal(signal.SIGINT, signal.default_int_handler)
