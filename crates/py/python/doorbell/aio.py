# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting in asyncio, without a thread."""

import asyncio
from typing import Protocol

from ._native import Bell, Closed, Receiver


class _HasFile(Protocol):
    def fileno(self) -> int: ...


async def readable(file: _HasFile) -> None:
    """Waits until `file` can be read."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    number = file.fileno()

    def tell() -> None:
        # The callback can run once more before it is removed.
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(number, tell)
    try:
        await ready
    finally:
        loop.remove_reader(number)


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
