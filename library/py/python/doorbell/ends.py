# SPDX-License-Identifier: MIT OR Apache-2.0
"""What ends of channels and of broadcasts have in common."""

import os
import select
import threading
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from ._native import Closed
from .objects import load


class Life:
    """One side's end of a pair of sockets, a copy of which each copy of an end has: when the last copy
    is closed, or its process has ended, the other side's hangs up."""

    def __init__(self, file: int) -> None:
        self.file = file

    def other_side_is_gone(self) -> bool:
        found = select.poll()
        found.register(self.file, 0)
        return bool(found.poll(0))

    def __del__(self, close: Any = os.close) -> None:
        close(self.file)


class Given:
    """The copies of one end that this process gave to processes which it starts. Until one is started,
    its copy is this process's own; if it cannot be started, it never had one."""

    def __init__(self) -> None:
        # By the thread that starts one: what starts it, and the attributes of that, which outlive it.
        self._starting: dict[int, tuple[weakref.ref[Any], dict[str, Any]]] = {}
        # Does another process have a copy?
        self.away = False

    def to(self, start: Any) -> None:
        # A thread starts one process at a time: whatever it started before has been started, or never will be.
        self.is_on_its_way()
        self._starting[threading.get_ident()] = weakref.ref(start), vars(start)

    def is_on_its_way(self) -> bool:
        """Is one given to a process that is being started?"""
        starting = {}
        for thread, (start, attributes) in self._starting.items():
            # First: it may be collected as soon as it has a number.
            alive = start() is not None
            if "pid" in attributes:
                self.away = True
            elif alive:
                starting[thread] = start, attributes
        self._starting = starting
        return bool(starting)


class Closes:
    """Is closed behind a `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


class Receives(Closes):
    """What `recv` gives."""

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        raise NotImplementedError

    def recv_object(self, timeout: float | None = None) -> Any:
        """The next object that was sent by `send_object`; its large buffers cannot be written to. TimeoutError if
        `timeout` seconds went by first. Unpickling runs what the sender chose: ends are in no stranger's hands."""
        message = self.recv(timeout)
        if message is None:
            raise TimeoutError("no object came in time")
        return load(message)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                message = self.recv()
            except Closed:
                return
            if message is not None:
                yield message
