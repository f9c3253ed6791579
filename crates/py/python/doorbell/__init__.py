# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bell in shared memory: one side rings, the other wakes up, between threads or processes, as cheaply as the machine
allows, and no ring is ever lost.

    bell = doorbell.Bell()
    threading.Thread(target=bell.ring).start()
    bell.wait()

Calls that may block let other threads of the interpreter run, and end with KeyboardInterrupt on Ctrl-C. Under asyncio,
`AsyncBell` waits without a thread.
"""

from ._native import (
    Bell,
    BellFile,
    Board,
    Error,
    Host,
    MeetError,
    Owner,
    Peer,
    PeerGone,
    PeerViolation,
    Pending,
    Session,
    inherit,
    join,
    join_named,
    wait_any,
)
from .aio import AsyncBell
from .child import start

__all__ = [
    "AsyncBell",
    "Bell",
    "BellFile",
    "Board",
    "Error",
    "Host",
    "MeetError",
    "Owner",
    "Peer",
    "PeerGone",
    "PeerViolation",
    "Pending",
    "Session",
    "inherit",
    "join",
    "join_named",
    "start",
    "wait_any",
]
