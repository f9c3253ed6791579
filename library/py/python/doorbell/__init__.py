# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bell in shared memory: one side rings, the other wakes up, between threads or processes, as cheaply as the machine
allows, and no ring is ever lost.

    tx, rx = doorbell.channel()
    multiprocessing.Process(target=tx.send, args=(b"hello",)).start()
    rx.recv()

Between programs, a name is a service: `doorbell.listen("name")` in one, `doorbell.connect("name")` in others. A `Bell` carries no
data: one side rings, the other wakes up. Segments, lanes and all ways to share them are in `doorbell.raw`.

Calls that may block let other threads of the interpreter run, and end with KeyboardInterrupt on Ctrl-C. Under asyncio,
`AsyncBell` waits without a thread, `async for message in receiver` receives, `AsyncSender` sends, and `AsyncListener` serves. `Select` waits for any
of several unlike ends.
"""

from ._native import (
    Bell,
    BellFile,
    Closed,
    Connection,
    Dropped,
    Error,
    Gather,
    Host,
    HungUp,
    Lent,
    Peer,
    PeerGone,
    PeerViolation,
    Pending,
    Publisher,
    Receiver,
    RendezvousError,
    Segment,
    Select,
    Sender,
    Service,
    Slot,
    Subscriber,
    Untrusted,
    View,
    inherit,
    join,
    services,
    wait_any,
)
from .aio import AsyncBell, AsyncGather, AsyncReceiver, AsyncSender, AsyncSubscriber
from .broadcasts import BroadcastReceiver, BroadcastSender, broadcast
from .child import start
from .words import (
    AsyncListener,
    ChannelReceiver,
    ChannelSender,
    Duplex,
    Listener,
    UnopenedEnd,
    Users,
    channel,
    connect,
    listen,
    pair,
)

__all__ = [
    "AsyncBell",
    "AsyncGather",
    "AsyncListener",
    "AsyncReceiver",
    "AsyncSender",
    "AsyncSubscriber",
    "Bell",
    "BellFile",
    "BroadcastReceiver",
    "BroadcastSender",
    "ChannelReceiver",
    "ChannelSender",
    "Closed",
    "Connection",
    "Dropped",
    "Duplex",
    "Error",
    "Gather",
    "Host",
    "HungUp",
    "Lent",
    "Listener",
    "Peer",
    "PeerGone",
    "PeerViolation",
    "Pending",
    "Publisher",
    "Receiver",
    "RendezvousError",
    "Segment",
    "Select",
    "Sender",
    "Service",
    "Slot",
    "Subscriber",
    "UnopenedEnd",
    "Untrusted",
    "Users",
    "View",
    "broadcast",
    "channel",
    "connect",
    "inherit",
    "join",
    "listen",
    "pair",
    "services",
    "start",
    "wait_any",
]
