# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `channel`, `listen` and `connect` are made of: segments of memory, the lanes in them, and the ways in which processes
come to share them."""

from ._native import (
    Connection,
    Gather,
    Host,
    Peer,
    Pending,
    Publisher,
    Receiver,
    Segment,
    Sender,
    Slot,
    Subscriber,
    View,
    inherit,
    join,
)
from .child import start

__all__ = [
    "Connection",
    "Gather",
    "Host",
    "Peer",
    "Pending",
    "Publisher",
    "Receiver",
    "Segment",
    "Sender",
    "Slot",
    "Subscriber",
    "View",
    "inherit",
    "join",
    "start",
]
