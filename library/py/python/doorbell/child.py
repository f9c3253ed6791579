# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starting a program that inherits a segment."""

import os
import subprocess
from collections.abc import Sequence
from typing import Any

from ._native import Segment, Pending, Connection


def start(
    program: Sequence[str | os.PathLike[str]], segment: Segment, **options: Any
) -> tuple[subprocess.Popen[Any], Connection]:
    """Starts `program` as `subprocess.Popen(program, **options)` does, and shares `segment` with it.

    The program calls `doorbell.inherit()`, or the like in another language. Nothing is left in any directory.
    """
    pending = Pending()
    environment = dict(options.pop("env", None) or os.environ)
    environment["DOORBELL_FD"] = pending.variable(pending.fileno())
    files = (*options.pop("pass_fds", ()), pending.fileno())
    child = subprocess.Popen(program, env=environment, pass_fds=files, **options)
    try:
        return child, pending.meet(segment, child.pid)
    except BaseException:
        child.kill()
        child.wait()
        raise
