# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting in asyncio, without a thread."""

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from ._native import Bell, Closed, Gather, Receiver


class _HasFile(Protocol):
    def fileno(self) -> int: ...


async def readable(file: _HasFile) -> None:
    """Waits until `file` can be read."""
    await any_readable([file.fileno()])


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


class AsyncBell:
    """A handle of a bell that one task awaits. It takes one of the bell's eventfd seats until it is closed."""

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
            while True:
                rings = self._file.heard()
                if rings:
                    return rings
                await readable(self._file)
        finally:
            self._awaited = False

    def close(self) -> None:
        """Gives the seat back."""
        self._file.close()


class AsyncReceiver:
    """What `async for message in receiver` runs over. It ends when the sender leaves; PeerGone is raised if it died."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def __aiter__(self) -> "AsyncReceiver":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self.receive()
        except Closed:
            raise StopAsyncIteration from None

    async def receive(self) -> bytes:
        """The next message. Cancelling it loses nothing."""
        while True:
            message = self._receiver.try_receive()
            if message is not None:
                return message
            if not self._receiver.listen():
                await readable(self._receiver)


class AsyncGather:
    """What `async for lane, message in gather` runs over. It ends when no sender is left."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def __aiter__(self) -> "AsyncGather":
        return self

    async def __anext__(self) -> tuple[int, bytes]:
        try:
            return await self.receive()
        except Closed:
            raise StopAsyncIteration from None

    async def receive(self) -> tuple[int, bytes]:
        """The number of a lane and its next message. Cancelling it loses nothing.

        Lanes may be added and removed meanwhile. One task at a time.
        """
        self._gather._begin_await()
        try:
            while True:
                received = self._gather.try_receive()
                if received is not None:
                    return received
                # Before `listen`: a lane added in between makes the last of them readable. Duplicates: a lane that is
                # removed meanwhile closes its own, whose number may then be a stranger's.
                files = self._gather._watch()
                try:
                    if not self._gather.listen():
                        await any_readable(files)
                finally:
                    for file in files:
                        os.close(file)
        finally:
            self._gather._end_await()
