# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting in asyncio, without a thread."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ._native import Bell, Closed, Gather, Receiver, Sender, Subscriber

# So many results are given at once, without a wait, and for so many seconds, before all other tasks get their turn. A peer that sends
# without pause would keep them out for ever.
MOST_AT_ONCE = 32
LONGEST_AT_ONCE = 0.001

T = TypeVar("T", covariant=True)
R = TypeVar("R")


async def any_readable(files: Sequence[int]) -> None:
    """Waits until one of `files` can be read."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        # The callback can run once more before it is removed.
        if not ready.done():
            ready.set_result(None)

    try:
        for file in files:
            loop.add_reader(file, tell)
        await ready
    finally:
        for file in files:
            loop.remove_reader(file)


async def awaken(files: list[int], listen: Callable[[], bool] = lambda: False) -> None:
    """Waits until one of `files` can be read, unless `listen` says that there is something already, and closes them.

    They are duplicates: the end closes its own when it is closed or loses a lane, and their numbers may then be a stranger's.
    """
    try:
        if listen():
            # A hostile peer can be ready for ever without anything.
            await asyncio.sleep(0)
        else:
            await any_readable(files)
    finally:
        for file in files:
            os.close(file)


class _Turn(threading.local):
    """What the tasks of this thread's event loop have had since one last waited here."""

    given = 0
    since = 0.0


_turn = _Turn()


async def until(
    attempt: Callable[[], R | None],
    watch: Callable[[], list[int]],
    listen: Callable[[], bool] = lambda: False,
) -> R:
    """What `attempt` gives, once it gives something: all that this package awaits is awaited here, and gives way now and then.

    Cancelling it loses nothing: after `attempt` has given something, nothing is awaited.
    """
    now = time.monotonic()
    if _turn.given >= MOST_AT_ONCE or (_turn.given and now - _turn.since > LONGEST_AT_ONCE):
        _turn.given = 0
        await asyncio.sleep(0)
    while (result := attempt()) is None:
        # Before `listen`: what changes in between makes the last of them readable.
        await awaken(watch(), listen)
        _turn.given = 0
    if _turn.given == 0:
        _turn.since = now
    _turn.given += 1
    return result


class AsyncBell:
    """A handle of a bell that one task awaits. It takes one of the bell's eventfd slots until it is closed."""

    def __init__(self, bell: Bell) -> None:
        self._file = bell.file()
        self._awaited = False

    async def wait(self) -> int:
        """Waits for a ring this handle has not heard. Returns how many there were.

        Cancelling it loses nothing. One task at a time; make a handle for each.
        """
        if self._awaited:
            raise RuntimeError("another task awaits this handle; make one for each task")
        self._awaited = True
        try:
            return await until(lambda: self._file.heard() or None, lambda: [os.dup(self._file.fileno())])
        finally:
            self._awaited = False

    def close(self) -> None:
        """Gives the slot back. Not while a task awaits the handle, whose file it would take away: cancel that first, and
        await its end, for it hears of it only when it runs.
        """
        if self._awaited:
            raise RuntimeError("a task awaits this handle; cancel it and await its end first")
        self._file.close()


class _Awaited(Protocol):
    """An end that one task at a time awaits."""

    def _begin_await(self) -> None: ...
    def _end_await(self) -> None: ...
    def _watch(self) -> list[int]: ...


class _End(_Awaited, Protocol[T]):
    """A receiving end that one task at a time awaits."""

    def try_recv(self) -> T | None: ...
    def listen(self) -> bool: ...


async def _alone(end: _Awaited, attempt: Callable[[], R | None], listen: Callable[[], bool]) -> R:
    """What `attempt` gives. ValueError if `end` is closed meanwhile."""
    end._begin_await()
    try:
        return await until(attempt, end._watch, listen)
    finally:
        end._end_await()


async def _receive(end: _End[T]) -> T:
    """What `end` receives next."""
    return await _alone(end, end.try_recv, end.listen)


class _HasSender(Protocol):
    """An end of `channel`, or of a connection."""

    def _native_sender(self) -> Sender: ...


class AsyncSender:
    """A sending end, of whatever has one, that one task awaits while there is no room."""

    def __init__(self, sender: Sender | _HasSender) -> None:
        self._sender = sender

    async def send(self, message: bytes | bytearray | memoryview) -> None:
        """Sends a copy of `message`. Cancelling it sends nothing, or all.

        One task at a time. ValueError if the sender is closed meanwhile.
        """
        length = memoryview(message).nbytes
        # Not before it is used: an end of `channel` is of the process that first does.
        sender = self._sender if isinstance(self._sender, Sender) else self._sender._native_sender()
        await _alone(sender, lambda: sender.try_send(message) or None, lambda: sender.listen(length))


class AsyncReceiver:
    """What `async for message in receiver` runs over. It ends when the sender leaves; PeerGone is raised if it died."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def __aiter__(self) -> "AsyncReceiver":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None

    async def recv(self) -> bytes:
        """The next message. Cancelling it loses nothing.

        One task at a time. ValueError if the receiver is closed meanwhile.
        """
        return await _receive(self._receiver)


class AsyncGather:
    """What `async for lane, message in gather` runs over. It ends when no sender is left."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def __aiter__(self) -> "AsyncGather":
        return self

    async def __anext__(self) -> tuple[int, bytes]:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None

    async def recv(self) -> tuple[int, bytes]:
        """The number of a lane and its next message. Cancelling it loses nothing.

        Lanes may be added and removed meanwhile. One task at a time. ValueError if the gather is closed meanwhile.
        """
        return await _receive(self._gather)


class AsyncSubscriber:
    """What `async for message, missed in subscriber` runs over. It ends when the publisher leaves."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber

    def __aiter__(self) -> "AsyncSubscriber":
        return self

    async def __anext__(self) -> tuple[bytes, int]:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None

    async def recv(self) -> tuple[bytes, int]:
        """The next message, and how many were missed directly before it. Cancelling it loses nothing.

        One task at a time. ValueError if the subscriber is closed meanwhile.
        """
        return await _receive(self._subscriber)
