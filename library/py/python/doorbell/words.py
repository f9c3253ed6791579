# SPDX-License-Identifier: MIT OR Apache-2.0
"""The three words: a channel, a name that is a service, a connection to it."""

import os
import socket
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from multiprocessing import context, reduction, util
from os import PathLike
from typing import Any, Literal, Self

from ._native import (
    Closed,
    Gather,
    PeerGone,
    Receiver,
    RendezvousError,
    Segment,
    Sender,
    Service,
    Slot,
    _connect,
    _Ends,
    _pair,
    _Unopened,
)
from .aio import AsyncGather, AsyncReceiver, until
from .ends import Closes, Given, Life, Receives
from .objects import parts

Users = Literal["same", "anyone"] | Sequence[int]
"""With whose processes memory is shared: this process's user and root, anyone whom the socket file's rights let through, or users by
their numbers."""

# Held while an end is taken or left. A fork waits for it: a child has no thread that would let go of its copy.
_taking = threading.RLock()
# The ends of channels in this process.
_ends: "weakref.WeakSet[_End]" = weakref.WeakSet()
_exiting = False


def _after_fork_in_parent() -> None:
    _taking.release()
    _have_copies(list(_ends))


def _after_fork_in_child() -> None:
    _taking.release()
    for end in list(_ends):
        end._shared = True
        # The registration is of the parent's thread.
        end._watched = None


os.register_at_fork(before=_taking.acquire, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _have_copies(ends: "list[_End]") -> None:
    """Other processes have copies of the ends at the other side of `ends`, or will."""
    for end in ends:
        end._shared = True
        end._watch()


class _End(Closes):
    """One end of a channel. A process that has a copy of it, forked or pickled, takes the end itself when it first uses
    it: an end that another process uses is refused, until that process closes it or ends."""

    # Are the ends at the other side those of senders?
    _others_send = False

    def __init__(self, segment: Segment, lanes: int, life: Life | None) -> None:
        self._segment = segment
        self._lanes = lanes
        self._life = life
        self._process = 0
        self._closed = False
        self._end: Any = None
        # Of the other side, where both are in one process.
        self._partners: weakref.WeakSet[_End] = weakref.WeakSet()
        # Has another process a copy of an end of the channel, or will it?
        self._shared = False
        self._watched: Any = None
        self._given = Given()
        _ends.add(self)

    def _take(self) -> Any:
        raise NotImplementedError

    def _ours(self) -> Any:
        # Read once: another thread may close it at any moment.
        end = self._end
        if end is None or self._process != os.getpid():
            with _taking:
                if self._closed:
                    raise ValueError("this end of the channel was closed")
                if self._process != os.getpid():
                    # Before it is taken: where that fails, for want of a thread, the end stays free.
                    self._hear()
                    # What a forked child has of its parent's end is a copy, and no end.
                    self._end = self._take()
                    self._process = os.getpid()
                    # A process of multiprocessing ends without collecting its objects.
                    util.Finalize(self, _close_at_exit, args=(weakref.ref(self),), exitpriority=10)
                    for partner in list(self._partners):
                        partner._leave_if_given()
                end = self._end
        if _exiting and threading.current_thread().daemon:
            # The interpreter ends, and this thread with it: there is nobody to tell.
            threading.Event().wait()
        return end

    def _watch(self) -> None:
        if self._process == os.getpid():
            self._hear()

    def _hear(self) -> None:
        """Hears from now on that nobody is left who could use the other side."""
        if self._life is None:
            return
        if self._shared and self._watched is None:
            self._watched = self._segment._leave_unused_after(self._life.file, self._others_send)
        elif self._life.other_side_is_gone():
            self._segment._leave_unused(self._others_send)

    def _let_go(self) -> None:
        """This copy can be used no more."""
        self._life = None
        for partner in list(self._partners):
            partner._watch()

    def _leave_if_given(self) -> bool:
        """Who gave its only copy away and uses the other side does not count itself any more. Is a copy
        still on its way?"""
        with _taking:
            is_on_its_way = self._given.is_on_its_way()
            is_left = self._lanes == 1 and self._given.away and not is_on_its_way and not self._process
            if is_left and any(partner._process == os.getpid() for partner in list(self._partners)):
                self._let_go()
            return is_on_its_way

    def close(self) -> None:
        """Leaves the end to others, if this process has used it; else it has one copy less. When no copy is left, and nobody came who
        used it, the other side is told."""
        with _taking:
            # A forked child has nothing to leave.
            if self._process == os.getpid():
                self._end.close()
                self._process, self._end = 0, None
            self._closed = True
            self._watched = None
            self._let_go()

    def __del__(self) -> None:
        # What was used is left as it is collected.
        if getattr(self, "_life", None) is not None:
            self._let_go()

    def qsize(self) -> int:
        """About how many messages lie in the channel: some that were received a moment ago may be among them."""
        return self._segment._messages()

    def clone(self) -> Self:
        """Another copy of the end, for another thread of this process."""
        with _taking:
            copy = type(self)(self._segment, self._lanes, self._life)
            copy._shared = self._shared
            copy._partners = weakref.WeakSet(self._partners)
            for partner in self._partners:
                partner._partners.add(copy)
            return copy

    def __reduce__(self) -> tuple[Any, ...]:
        _have_copies([self, *self._partners])
        files = [reduction.DupFd(number) for number in self._segment._descriptors()]
        life = None if self._life is None else reduction.DupFd(self._life.file)
        start = context.get_spawning_popen()
        if start is None:
            self._given.away = True
            self._leave_if_given()
        else:
            with _taking:
                self._given.to(start)
            # Nobody tells when it has started, and whoever uses the other side may wait already.
            threading.Thread(target=_await_start, args=(weakref.ref(self),), daemon=True).start()
        return _adopt, (type(self), files, self._lanes, life)


def _await_start(end: "weakref.ref[_End]") -> None:
    while (given := end()) is not None and given._leave_if_given():
        del given
        time.sleep(0.005)


def _close_at_exit(end: "weakref.ref[_End]") -> None:
    global _exiting
    left = end()
    if left is not None:
        # Not collected: the process ends.
        _exiting = True
        if left._process == os.getpid():
            left._end._close_at_exit()


def _adopt(kind: type[_End], files: list[Any], lanes: int, life: Any) -> _End:
    segment = Segment._adopt([file.detach() for file in files])
    end = kind(segment, lanes, None if life is None else Life(life.detach()))
    end._shared = True
    return end


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

    def send_object(self, object: Any, timeout: float | None = None) -> bool:
        """Sends `object`, pickled; large buffers in it (numpy's arrays, torch's tensors) are copied once, to where they will lie. For
        `recv_object` at the other end. Waits as `send` does."""
        length, all = parts(object)
        slot = self.reserve(length, timeout)
        if slot is None:
            return False
        with slot, memoryview(slot) as view:
            for at, part in all:
                view[at : at + len(part)] = part
        return True


class ChannelReceiver(_End, Receives):
    """The receiving end of a channel. `for` and `async for` run over its messages until all senders that came have left, and, if there
    is a place for another, nobody is left who could come."""

    _others_send = True

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

    def _close_at_exit(self) -> None:
        self._gather._close_at_exit()


def channel(capacity: int = 65536, *, senders: int = 1) -> tuple[ChannelSender, ChannelReceiver]:
    """A channel between threads, or between this process and those it starts: its ends may be given to a
    `multiprocessing.Process`, however that is started (fork, spawn, forkserver).

    Each end is of the process that first uses it. Up to `senders` processes may send at once, each through a ring of
    `capacity` bytes of its own. Threads of one process may share an end, and take turns; `clone` gives each a ring, where there are as
    many places. When a process that uses an end is killed, PeerGone is raised at the other one, after all that it sent;
    then another may take its place. When no copy of an end is left that nobody has used, because all were closed or collected, or their
    processes have ended, the other end is told as if it had been left. As with a pipe, a copy that a process keeps counts:
    close it after the start of whom it is for. (The copy of the only sender, given to a process that is not forked, does not count for who
    uses the receiver.) Each process has one more thread from the first other on that it meets.
    """
    if senders < 1:
        raise ValueError(f"a channel has at least one sender, and not {senders}")
    segment = Segment._to_be_adopted(senders, capacity)
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sender = ChannelSender(segment, senders, Life(one.detach()))
    receiver = ChannelReceiver(segment, senders, Life(other.detach()))
    sender._partners.add(receiver)
    receiver._partners.add(sender)
    return sender, receiver


class Duplex(Closes):
    """Both directions to one process: what `connect` gives, and `Service.accept`. `for` and `async for` run over its messages
    until the other process has left or died."""

    def __init__(self, sender: Sender, receiver: Receiver, process: int, ends: _Ends) -> None:
        self.sender = sender
        self.receiver = receiver
        self.process = process
        self._ends = ends

    def send(self, message: Any, timeout: float | None = None) -> bool:
        """Sends a copy of `message`. Waits while there is no room; False if `timeout` seconds went by first."""
        return self.sender.send(message, timeout)

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        return self.receiver.recv(timeout)

    def try_recv(self) -> bytes | None:
        """A copy of the next message, if there is one."""
        return self.receiver.try_recv()

    def send_end(self, end: "UnopenedEnd") -> None:
        """Sends the other process an end of `pair`, which opens it or sends it on. An end that was sent before a message is there when
        the message is. Never waits: RendezvousError is raised if the other process has not received those sent before."""
        self._ends.send(end._end)

    def recv_end(self, timeout: float | None = None) -> "UnopenedEnd | None":
        """The next end that the other process sent. None if `timeout` seconds went by first."""
        end = self._ends.recv(timeout)
        return end and UnopenedEnd(end)

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
        self._ends.close()


class UnopenedEnd:
    """The other end of a `pair`, which nobody has opened yet: to be opened here, or sent to another process by `send_end`. When it is
    closed or collected, here or on its way, or the process that has it dies, whoever has the first end is told."""

    def __init__(self, end: _Unopened) -> None:
        self._end = end

    def open(self, *, users: Users = "same") -> Duplex:
        """Opens it, if a process of `users` made it. It can be done once."""
        return Duplex(*self._end.open(users))

    def close(self) -> None:
        """Nobody will open it."""
        self._end.close()


def pair(capacity: int = 65536) -> tuple[Duplex, UnopenedEnd]:
    """Both directions between whoever has the first and whoever opens the second, which can be sent to another process by
    `Duplex.send_end` and `Listener.send_end`. What is sent into the first before that waits in the ring."""
    duplex, end = _pair(capacity)
    return Duplex(*duplex), UnopenedEnd(end)


class Listener(Service):
    """A name, and the clients that came to it: `recv` and `send` serve them all, `accept` hands out each that comes."""

    def accept(self, timeout: float | None = None) -> Duplex | None:
        """Waits for the next client, which `recv` does not hear of. None if `timeout` seconds went by first."""
        ends = self._accept(timeout)
        return ends and Duplex(*ends)

    def send_end(self, client: int, end: UnopenedEnd) -> None:
        """As `Duplex.send_end`, to a client. Closed is raised if it has gone."""
        self._ends(client).send(end._end)

    def recv_end(self, client: int, timeout: float | None = None) -> UnopenedEnd | None:
        """As `Duplex.recv_end`, from a client. Others are not served meanwhile: an end that a message is about is there with it."""
        end = self._ends(client).recv(timeout)
        return end and UnopenedEnd(end)


class AsyncListener:
    """A listener that tasks await, without a thread. Several tasks may: what comes is one of theirs. ValueError is raised in all of them if
    the listener is closed meanwhile."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def accept(self) -> Duplex:
        """The next client, which `recv` does not hear of. Cancelling it loses nothing: whoever has come is given to the next call."""
        return await until(lambda: self._listener.accept(0.0), self._listener._watch_callers)

    async def recv(self) -> tuple[int, bytes]:
        """A client's number, and its next message. Cancelling it loses nothing."""
        return await until(lambda: self._listener.recv(0.0), self._listener._watch)

    async def send(self, client: int, message: Any) -> None:
        """Sends a copy of `message` to the client, and waits while there is no room. Cancelling it sends nothing, or all.

        One task at a time for each client. Closed is raised if the client has gone.
        """
        length = memoryview(message).nbytes
        await until(
            lambda: self._listener.send(client, message) or None,
            lambda: self._listener._watch_room(client),
            lambda: self._listener._listen_room(client, length),
        )

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


def connect(
    name: str | PathLike[str],
    timeout: float = 0.0,
    *,
    users: Users = "same",
    most_memory: int = 1 << 30,
    most_eventfds: int = 252,
    patience: float = 30.0,
) -> Duplex:
    """Connects to the service `name` of a process of `users`, and waits up to `timeout` seconds for it to be there and to answer.

    Takes up to `most_memory` bytes of memory, and `most_eventfds` eventfds, from it. Without a `timeout` it must be there, and a busy one
    is waited for for up to `patience` seconds.
    """
    return Duplex(*_connect(name, timeout, users, most_memory, most_eventfds, patience))
