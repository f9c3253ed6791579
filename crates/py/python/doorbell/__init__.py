# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bell in shared memory: one side rings, the other wakes up, between threads or processes, as cheaply as the machine
allows, and no ring is ever lost.

    bell = doorbell.Bell()
    threading.Thread(target=bell.ring).start()
    bell.wait()

And channels of byte messages on top of it: `Sender` and `Receiver`, many senders to one `Gather`, one `Publisher` to many
`Subscriber`s.

Calls that may block let other threads of the interpreter run, and end with KeyboardInterrupt on Ctrl-C. Under asyncio,
`AsyncBell` waits without a thread, and `async for message in receiver` receives.
"""

from ._native import (
    Bell,
    BellFile,
    Segment,
    Closed,
    Dropped,
    Error,
    Gather,
    Host,
    HungUp,
    Lent,
    RendezvousError,
    Owner,
    Peer,
    PeerGone,
    PeerViolation,
    Pending,
    Publisher,
    Receiver,
    Sender,
    Connection,
    Subscriber,
    Untrusted,
    View,
    inherit,
    join,
    join_named,
    wait_any,
)
from .aio import AsyncBell, AsyncGather, AsyncReceiver, AsyncSubscriber
from .child import start

__all__ = [
    "AsyncBell",
    "AsyncGather",
    "AsyncReceiver",
    "AsyncSubscriber",
    "Bell",
    "BellFile",
    "Segment",
    "Closed",
    "Dropped",
    "Error",
    "Gather",
    "Host",
    "HungUp",
    "Lent",
    "RendezvousError",
    "Owner",
    "Peer",
    "PeerGone",
    "PeerViolation",
    "Pending",
    "Publisher",
    "Receiver",
    "Sender",
    "Connection",
    "Subscriber",
    "Untrusted",
    "View",
    "inherit",
    "join",
    "join_named",
    "start",
    "wait_any",
]
