# SPDX-License-Identifier: MIT OR Apache-2.0
"""The three words: a channel, a name that is a service, a connection to it."""

import os
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from multiprocessing import reduction, util
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

from ._native import Closed, Gather, PeerGone, Receiver, RendezvousError, Segment, Sender, Service, Slot, _connect
from .aio import AsyncGather, AsyncReceiver, awaken

Users = Literal["same", "anyone"] | Sequence[int]
"""With whose processes memory is shared: this process's user and root, anyone whom the socket file's rights let through, or users by
their numbers."""

# Held while an end is taken or left. A fork waits for it: a child has no thread that would let go of its copy.
_taking = threading.RLock()
os.register_at_fork(before=_taking.acquire, after_in_parent=_taking.release, after_in_child=_taking.release)


class _End:
    """One end of a channel. A process that has a copy of it, forked or pickled, takes the end itself when it first uses
    it: an end that another process uses is refused, until that process closes it or ends."""

    def __init__(self, segment: Segment, lanes: int) -> None:
        self._segment = segment
        self._lanes = lanes
        self._process = 0
        self._end: Any = None

    def _take(self) -> Any:
        raise NotImplementedError

    def _ours(self) -> Any:
        if self._process != os.getpid():
            with _taking:
                if self._process != os.getpid():
                    # What a forked child has of its parent's end is a copy, and no end.
                    self._end = self._take()
                    self._process = os.getpid()
                    # A process of multiprocessing ends without collecting its objects.
                    util.Finalize(self, self._end.close, exitpriority=10)
        return self._end

    def close(self) -> None:
        """Leaves the end to others, if this process has used it."""
        with _taking:
            # A forked child has nothing to leave.
            if self._process == os.getpid():
                self._end.close()
                self._process, self._end = 0, None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        files = [reduction.DupFd(number) for number in self._segment._descriptors()]
        return _adopt, (type(self), files, self._lanes)


def _adopt(kind: type[_End], files: list[Any], lanes: int) -> _End:
    return kind(Segment._adopt([file.detach() for file in files]), lanes)


class ChannelSender(_End):
    """The sending end of a channel."""

    def _take(self) -> Sender:
        for lane in range(self._lanes):
            try:
                return self._segment.sender(lane)
            except RendezvousError:
                if lane + 1 == self._lanes:
                    raise
        raise RendezvousError("the channel has no lanes")

    def _native_sender(self) -> Sender:
        sender: Sender = self._ours()
        return sender

    def send(self, message: Any, timeout: float | None = None) -> bool:
        """Sends a copy of `message`. Waits while there is no room; False if `timeout` seconds went by first."""
        return bool(self._ours().send(message, timeout))

    def reserve(self, most: int, timeout: float | None = None) -> Slot | None:
        """Room for a message of up to `most` bytes, which is written where it will lie. Waits while there is none; None if
        `timeout` seconds went by first."""
        slot: Slot | None = self._ours().reserve(most, timeout)
        return slot

    def send_batch(self, messages: Any, timeout: float | None = None) -> int:
        """Sends copies of `messages` and wakes the receiver once. Returns how many were sent."""
        return int(self._ours().send_batch(messages, timeout))


class ChannelReceiver(_End):
    """The receiving end of a channel. `for` and `async for` run over its messages until all senders that came have left."""

    def _take(self) -> "Receiver | _Gathered":
        if self._lanes == 1:
            return self._segment.receiver(0)
        return _Gathered(self._segment, self._lanes)

    def _native_end(self) -> Any:
        return self._ours()

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        message: bytes | None = self._ours().recv(timeout)
        return message

    def try_recv(self) -> bytes | None:
        """A copy of the next message, if there is one."""
        message: bytes | None = self._ours().try_recv()
        return message

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                message = self.recv()
            except Closed:
                return
            if message is not None:
                yield message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        end = self._ours()
        if isinstance(end, _Gathered):
            async for _, message in AsyncGather(end._native_end()):
                yield message
        else:
            async for message in AsyncReceiver(end):
                yield message


class _Gathered:
    """The receiving ends of several lanes, as one."""

    def __init__(self, segment: Segment, lanes: int) -> None:
        self._gather = Gather()
        for lane in range(lanes):
            self._gather.add(segment, lane)

    def _native_end(self) -> Gather:
        return self._gather

    def recv(self, timeout: float | None) -> bytes | None:
        came = self._gather.recv(timeout)
        return came and came[1]

    def try_recv(self) -> bytes | None:
        came = self._gather.try_recv()
        return came and came[1]

    def close(self) -> None:
        self._gather.close()


def channel(capacity: int = 65536, *, senders: int = 1) -> tuple[ChannelSender, ChannelReceiver]:
    """A channel between threads, or between this process and those it starts: its ends may be given to a
    `multiprocessing.Process`, however that is started (fork, spawn, forkserver).

    Each end is of the process that first uses it. Up to `senders` processes may send at once, each through a ring of
    `capacity` bytes of its own. When a process that uses an end is killed, PeerGone is raised at the other one, after all that it sent;
    then another may take its place. (One that is killed before it uses its end is not known: watch `Process.sentinel`. Each process
    has one more thread from the first other on that it meets.)
    """
    if senders < 1:
        raise ValueError(f"a channel has at least one sender, and not {senders}")
    segment = Segment._to_be_adopted(senders, capacity)
    return ChannelSender(segment, senders), ChannelReceiver(segment, senders)


class Duplex:
    """Both directions to one process: what `connect` gives, and `Service.accept`. `for` and `async for` run over its messages
    until the other process has left or died."""

    def __init__(self, sender: Sender, receiver: Receiver, process: int) -> None:
        self.sender = sender
        self.receiver = receiver
        self.process = process

    def send(self, message: Any, timeout: float | None = None) -> bool:
        """Sends a copy of `message`. Waits while there is no room; False if `timeout` seconds went by first."""
        return self.sender.send(message, timeout)

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        return self.receiver.recv(timeout)

    def try_recv(self) -> bytes | None:
        """A copy of the next message, if there is one."""
        return self.receiver.try_recv()

    def _native_end(self) -> Receiver:
        return self.receiver

    def _native_sender(self) -> Sender:
        return self.sender

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self.receiver
        except PeerGone:
            return

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for message in AsyncReceiver(self.receiver):
                yield message
        except PeerGone:
            return

    def close(self) -> None:
        """Leaves both ends. What was sent is received."""
        self.sender.close()
        self.receiver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


class Listener(Service):
    """A name, and the clients that came to it: `recv` and `send` serve them all, `accept` hands out each that comes."""

    def accept(self, timeout: float | None = None) -> Duplex | None:
        """Waits for the next client, which `recv` does not hear of. None if `timeout` seconds went by first."""
        ends = self._accept(timeout)
        return ends and Duplex(*ends)


class AsyncListener:
    """A listener that tasks await, without a thread. Several tasks may: what comes is one of theirs. ValueError is raised in all of them if
    the listener is closed meanwhile."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def accept(self) -> Duplex:
        """The next client, which `recv` does not hear of. Cancelling it loses nothing: whoever has come is given to the next call."""
        while True:
            client = self._listener.accept(0.0)
            if client is not None:
                return client
            await awaken(self._listener._watch_callers())

    async def recv(self) -> tuple[int, bytes]:
        """A client's number, and its next message. Cancelling it loses nothing."""
        while True:
            came = self._listener.recv(0.0)
            if came is not None:
                return came
            await awaken(self._listener._watch())

    async def send(self, client: int, message: Any) -> None:
        """Sends a copy of `message` to the client, and waits while there is no room. Cancelling it sends nothing, or all.

        One task at a time for each client. Closed is raised if the client has gone.
        """
        length = memoryview(message).nbytes
        while not self._listener.send(client, message):
            # Before `_listen_room`: what changes in between makes the last of them readable.
            files = self._listener._watch_room(client)
            await awaken(files, lambda: self._listener._listen_room(client, length))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[int, bytes]:
        return await self.recv()


def listen(
    name: str | PathLike[str],
    *,
    capacity: int = 65536,
    most_clients: int = 1024,
    users: Users = "same",
    mode: int | None = None,
) -> Listener:
    """Listens at the service `name` of this user: a word, or a path, which has a slash.

    Clients are processes of `users`; `mode` are the rights of the socket file, if they are not to follow from that.
    """
    return Listener(name, capacity=capacity, most_clients=most_clients, users=users, mode=mode)


def connect(name: str | PathLike[str], timeout: float = 0.0, *, users: Users = "same") -> Duplex:
    """Connects to the service `name` of a process of `users`, and waits up to `timeout` seconds for it to be there."""
    return Duplex(*_connect(name, timeout, users))
