# SPDX-License-Identifier: MIT OR Apache-2.0
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, final, type_check_only

from typing_extensions import Buffer, disjoint_base

from .aio import AsyncGather, AsyncReceiver, AsyncSubscriber

__all__ = [
    "Bell",
    "BellFile",
    "Segment",
    "Select",
    "Closed",
    "Dropped",
    "Error",
    "Gather",
    "Host",
    "HungUp",
    "Lent",
    "RendezvousError",
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
    "Service",
    "Slot",
    "View",
    "_Ends",
    "_Events",
    "_Unopened",
    "_Waiter",
    "_connect",
    "_pair",
    "inherit",
    "join",
    "services",
    "wait_any",
]

class Error(Exception):
    """What this package raises, beside OSError and ValueError."""

    lane: int | None
    """The number of a `Gather`'s lane, if that is what it concerns."""

class PeerGone(Error):
    """A peer closed its end or died; what it had rung before was delivered first."""

class Closed(Error):
    """The other end of the lane was left; what had been sent was received first, and another may attach."""

class Dropped(Error):
    """This subscriber of a broadcast was too slow, and the publisher does not wait for it."""

class PeerViolation(Error):
    """The peer broke the protocol: it is faulty or hostile."""

class RendezvousError(Error):
    """A rendezvous failed, or an end of a lane could not be had."""

class Untrusted(RendezvousError):
    """A trusted end, which lends out memory as it lies there, on a segment that somebody untrusted shares."""

class Lent(RendezvousError):
    """The peer is not trusted, and memory of the segment is lent out by a channel of trusted ends."""

class HungUp(RendezvousError):
    """The segment was joined, and this process has hung up on its maker since, or was forked from the one that joined."""

@type_check_only
class Counts(TypedDict):
    spun_and_hit: int
    spun_in_vain: int
    slept: int
    woken: int

@type_check_only
class _Context:
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class Bell:
    """A handle of a bell. All handles of one bell hear every ring; each remembers by itself which it has heard.

    A ring before the wait is remembered. Two rings before the wait are heard as two by one wait. When a peer dies, its
    rings are heard first; then every wait raises PeerGone, once for each peer, and again and again when nobody is left.

    One thread may ring while another waits with the same handle; of two that wait with it the second waits for its turn.
    """

    def __new__(cls, eventfds: int = 1) -> Self:
        """A bell for the threads of this process. `eventfds` (at most 8) handles can be files."""

    @staticmethod
    def for_children(eventfds: int = 1) -> Bell:
        """A bell shared with the children this process forks from now on. Clone it before the fork, a clone a side."""

    def ring(self) -> None:
        """Rings. No system call if nobody sleeps."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for a ring this handle has not heard. How many there were; 0 if `timeout` seconds went by first."""

    def try_wait(self) -> int:
        """How many rings came since this handle last heard any. Never waits."""

    def clone(self) -> Bell:
        """Another handle, which has heard what this one has heard."""

    def file(self) -> BellFile:
        """Another handle that is a file, for selectors and event loops."""

    def set_partner(self, partner: Bell) -> None:
        """Says that whoever rings this bell waits at `partner` otherwise: no spinning while it sleeps there."""

    def counts(self) -> Counts:
        """What the waits of this handle did so far."""

@final
class BellFile:
    """A handle of a bell that is a file: readable from a ring on, until `heard` is called. Never read it yourself."""

    def fileno(self) -> int: ...
    def heard(self) -> int:
        """How many rings came; 0 if it was readable for no reason. Makes the file unreadable until the next ring."""

    def close(self) -> None: ...

def wait_any(bells: Sequence[Bell], timeout: float | None = None) -> int | None:
    """Waits for a ring at any of `bells`. The place of one that was rung, whose `try_wait` says how often."""

@final
class Select:
    """Waits until one of several unlike ends has something. Keep it between waits: it learns from them, and gives each end its turn.

        select = doorbell.Select()
        match select.wait([rx, bell, sock]): ...

    Where the kernel has `futex_waitv` it sleeps on all futexes at once, unless there is a descriptor among the ends; else in
    poll, as it always does with `by_files`.
    """

    def __new__(cls, *, by_files: bool = False) -> Self: ...
    @property
    def by_files(self) -> bool:
        """Does it sleep in poll for bells and ends of channels too?"""

    def wait(self, ends: Sequence[Any], timeout: float | None = None) -> Any:
        """The one of `ends` that has something, or of whose peer something is to be told: receive there without waiting, which may
        find nothing, rarely. None if `timeout` seconds went by first.

        Ends are bells, receivers, gathers, subscribers, services, connections, and whatever has a `fileno`, until it can be read.
        """

@final
class Segment:
    """Bells of one mapping, with bytes beside them. All who share it can change all of it at any moment."""

    def __new__(
        cls,
        bells: int = 2,
        eventfds: int = 2,
        payload: int = 0,
        *,
        lanes: int = 0,
        lane_capacity: int = 65536,
        huge_pages: bool = False,
        locked: bool = False,
        populated: bool = False,
        numa_node: int | None = None,
    ) -> Self:
        """With `lanes`, the segment has those and their bells, and `bells` and `payload` say nothing."""

    @staticmethod
    def _to_be_adopted(lanes: int, lane_capacity: int) -> Segment: ...
    def _descriptors(self) -> list[int]: ...
    @staticmethod
    def _adopt(descriptors: list[int]) -> Segment: ...
    def _messages(self) -> int: ...
    def _leave_unused(self, senders: bool) -> None: ...
    def _leave_unused_after(self, file: int, senders: bool) -> object: ...
    def bell(self, index: int) -> Bell:
        """A handle of bell `index`. It has heard all rings so far."""

    def sender(self, lane: int) -> Sender:
        """The sending end of a lane, where all who share the segment are trusted: forked children, those who joined."""

    def receiver(self, lane: int) -> Receiver:
        """The receiving end of a lane, where all who share the segment are trusted."""

    @property
    def payload_size(self) -> int: ...
    @property
    def refused(self) -> list[str]:
        """The wishes about memory that could not be granted, each with its reason."""

    def write(self, offset: int, data: Buffer) -> None:
        """Copies `data` into the bytes beside the bells."""

    def read(self, offset: int, length: int) -> bytes:
        """Copies bytes out, once."""

@final
class Sender(_Context):
    """The sending end of a lane. When it is closed or collected, the receiver gets all messages and is then told."""

    def send(self, message: Buffer, timeout: float | None = None) -> bool:
        """Sends a copy of `message`. Waits while there is no room; False if `timeout` seconds went by first."""

    def send_batch(self, messages: Sequence[Buffer], timeout: float | None = None) -> int:
        """Sends copies of `messages`, and wakes the receiver once for all that there is room for. Waits while there is no
        room, `timeout` seconds in all; returns how many were sent."""

    def try_send(self, message: Buffer) -> bool:
        """Sends a copy of `message` if there is room."""

    def reserve(self, most: int, timeout: float | None = None) -> Slot | None:
        """Room for a message of up to `most` bytes, which is written where it will lie. Waits while there is none; None if
        `timeout` seconds went by first. One at a time."""

    def listen(self, length: int) -> bool:
        """Before going back to an event loop: is there room for `length` bytes after all?"""

    def _begin_await(self) -> None: ...
    def _end_await(self) -> None: ...
    def _watch(self) -> list[int]:
        """Duplicates of a file that is readable when there is room, and of one that is once this is closed."""

    @property
    def longest(self) -> int:
        """The longest message the lane takes."""

    def close(self) -> None: ...
    def _close_at_exit(self) -> None: ...

@final
class Receiver(_Context):
    """The receiving end of a lane. `for` and `async for` run over its messages until the sender leaves.

    When the sender has left, calls raise Closed; when it died or hung up without leaving, PeerGone: both after all that
    was sent.
    """

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""

    def try_recv(self) -> bytes | None:
        """A copy of the next message, if there is one."""

    def recv_view(self, timeout: float | None = None) -> View | None:
        """The next message where it lies, without a copy. One at a time: release it before the next.

        A sender that is not trusted can change it while it is looked at: copy first what is checked.
        """

    def fileno(self) -> int:
        """A file that is readable when there is something to receive, after `listen` returned False."""

    def listen(self) -> bool:
        """Before going back to an event loop: is there something to receive after all?"""

    def _begin_await(self) -> None: ...
    def _end_await(self) -> None: ...
    def _watch(self) -> list[int]:
        """Duplicates of `fileno`, and of a file that is readable once this is closed. The caller closes them."""

    def close(self) -> None: ...
    def _close_at_exit(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncReceiver: ...

@final
class Slot(_Context):
    """Room for a message: `memoryview(slot)` and `numpy.frombuffer(slot, dtype)` write there, until it is sent or given back. Then
    BufferError is raised while one of them is there.

    A `with` block sends all of it, unless `commit` sent less; one that raises gives it back.
    """

    def commit(self, length: int | None = None) -> None:
        """Sends the first `length` bytes, or all of it."""

    def release(self) -> None:
        """Gives it back: nobody sees anything of it."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class View(_Context):
    """A message where it lies in the ring: `memoryview(view)` reads it, until it is released.

    The sender cannot use its place before. Releasing fails with BufferError while memoryviews of it are there.
    """

    def release(self) -> None: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Gather(_Context):
    """The receiving ends of many lanes: several senders, one receiver. Lanes are asked in turn, and messages of one sender
    come in order.

    `for` and `async for` run over what is received until no sender is left. When a sender dies or lies, PeerGone or
    PeerViolation is raised once, with the lane's number in its attribute `lane`, and the others go on.
    """

    def __new__(cls) -> Self: ...
    def add(self, of: Connection | Segment, lane: int) -> int:
        """Adds a lane of the segment shared with a connection's peer, or of a segment whose users are all trusted, but not of
        both kinds while it has any. The lane's number here. The connection may be closed: the connection is kept until the lane is removed."""

    def remove(self, number: int) -> bool:
        """Leaves the lane with this number here, which the next that is added may get. Whether there was one."""

    def recv(self, timeout: float | None = None) -> tuple[int, bytes] | None:
        """The number of a lane and a copy of its next message. None if `timeout` seconds went by first."""

    def try_recv(self) -> tuple[int, bytes] | None:
        """As `receive`, if there is a message now."""

    def filenos(self) -> list[int]:
        """Files of which one is readable when there is something to receive, after `listen` returned False. Adding and
        removing lanes changes them; a lane added since is heard after the next `listen`."""

    def _begin_await(self) -> None: ...
    def _end_await(self) -> None: ...
    def _watch(self) -> list[int]:
        """Duplicates of `filenos`, and of a file that is readable once the lanes change or this is closed. The caller
        closes them."""

    def listen(self) -> bool:
        """Before going back to an event loop: is there something to receive after all?"""

    def close(self) -> None: ...
    def _close_at_exit(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, bytes]: ...
    def __aiter__(self) -> AsyncGather: ...

@final
class Publisher(_Context):
    """The publishing end of a broadcast: every subscriber sees every message from its admission on.

    What happens to one that is too slow is chosen for each: "hold back" makes the publisher wait for it, "drop" ends its
    subscription, "gap" lets it miss messages and tells it how many.
    """

    def __new__(cls, capacity: int, *, history: int = 0) -> Self:
        """The longest message takes about three eighths of `capacity` bytes. Who comes late is given the last `history` messages first,
        or as many of them as there is room for."""

    def admit(
        self, connection: Connection, lane: int, when_slow: Literal["hold back", "drop", "gap"] = "hold back"
    ) -> int:
        """Admits the peer, which calls `Connection.subscribe` with the same lane. Its number here."""

    def subscribe(self, when_slow: Literal["hold back", "drop", "gap"] = "hold back") -> Subscriber:
        """A subscriber in this process, which may be given to another thread."""

    def publish(self, message: Buffer, timeout: float | None = None) -> bool:
        """Publishes a copy of `message`. Waits while a subscriber holds it back; False if `timeout` seconds went by first."""

    def _publish_parts(self, length: int, parts: Sequence[tuple[int, Buffer]], timeout: float | None = None) -> bool: ...

    def ended(self) -> list[tuple[int, Literal["left", "gone", "dropped", "violation"]]]:
        """Whose subscriptions ended since the last call, and how."""

    @property
    def subscribers(self) -> int: ...
    @property
    def longest(self) -> int: ...
    def close(self) -> None: ...

@final
class Subscriber(_Context):
    """One subscription to a broadcast. `for` and `async for` run over its messages, each with how many were missed directly
    before it, until the publisher leaves. Dropped is raised when it was too slow.
    """

    def recv(self, timeout: float | None = None) -> tuple[bytes, int] | None:
        """A copy of the next message, and how many were missed directly before it. None if `timeout` seconds went by."""

    def try_recv(self) -> tuple[bytes, int] | None:
        """As `receive`, if there is a message now."""

    def _set_paced(self, paced: bool) -> None: ...
    def fileno(self) -> int:
        """A file that is readable when there is something to receive, after `listen` returned False."""

    def listen(self) -> bool:
        """Before going back to an event loop: is there something to receive after all?"""

    def _begin_await(self) -> None: ...
    def _end_await(self) -> None: ...
    def _watch(self) -> list[int]:
        """Duplicates of `fileno`, and of a file that is readable once this is closed. The caller closes them."""

    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[bytes, int]: ...
    def __aiter__(self) -> AsyncSubscriber: ...

@final
class Peer:
    """Who is at the other end, as the kernel says. `pid` is 0 if it has none in this PID namespace."""

    @property
    def number(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...

@final
class Connection(_Context):
    """One peer met, and the segment shared with it. Closing it hangs up, once the ends of its lanes are gone too."""

    def bell(self, index: int) -> Bell: ...
    def sender(self, lane: int) -> Sender:
        """Takes the sending end of a lane. The connection may be closed: the end keeps the connection."""

    def receiver(self, lane: int) -> Receiver:
        """Takes the receiving end of a lane. The connection may be closed: the end keeps the connection."""

    def subscribe(self, lane: int) -> Subscriber:
        """Subscribes at the peer, which calls `Publisher.admit` with the same lane; waits for that for up to 30 seconds, one call
        at a time. The connection may be closed."""

    @property
    def segment(self) -> Segment: ...
    @property
    def peer(self) -> Peer | None:
        """None once closed."""

    def close(self) -> None: ...

@final
class Host(_Context):
    """A path at which processes can meet this one: a Unix socket."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        users: Literal["same", "anyone"] | Sequence[int] = ...,
        mode: int | None = None,
    ) -> Self: ...
    def accept(self, segment: Segment, timeout: float | None = None) -> Connection | None:
        """Waits for the next process and offers it `segment`. None if `timeout` seconds went by first."""

    def fileno(self) -> int:
        """Readable when a process wants to meet."""

    def close(self) -> None: ...

@final
class Pending:
    """A rendezvous with a child that is about to be started; `doorbell.start` does all of it."""

    def __new__(cls) -> Self: ...
    def fileno(self) -> int:
        """What the child inherits; its environment variable DOORBELL_FD is what `variable` says."""

    def variable(self, number: int) -> str:
        """What DOORBELL_FD must be in a child in which what it inherits is descriptor `number`."""

    def meet(self, segment: Segment, child: int) -> Connection: ...

def join(
    path: str | os.PathLike[str],
    *,
    most_memory: int = 1 << 30,
    most_eventfds: int = ...,
    patience: float = ...,
    users: Literal["same", "anyone"] | Sequence[int] = ...,
) -> Connection:
    """Meets the host at `path`, which must be a process of `users`, and takes up to `most_memory` bytes of memory and `most_eventfds`
    eventfds (252) from it. A busy one is waited for for up to `patience` seconds (30)."""

def inherit(*, most_memory: int = 1 << 30, most_eventfds: int = ..., patience: float = ...) -> Connection:
    """The child's part of a rendezvous with its parent, with limits as `join` has. Works once."""

@disjoint_base
class Service(_Context):
    """A name, and the clients that came to it. What is wrong with a client ends that client, and no other."""

    def __new__(
        cls,
        name: str | os.PathLike[str],
        *,
        capacity: int = 65536,
        most_clients: int = 1024,
        users: Literal["same", "anyone"] | Sequence[int] = ...,
        mode: int | None = None,
    ) -> Self:
        """Clients are processes of `users`: this process's and root, anyone whom the socket file's rights (`mode`) let through, or
        those of these numbers."""

    @property
    def path(self) -> Path:
        """Where it listens."""

    def recv(self, timeout: float | None = None) -> tuple[int, bytes] | None:
        """The number of the client whose message is next, which is never used again, and a copy of the message. None if
        `timeout` seconds went by first."""

    def send(self, client: int, message: Buffer, timeout: float | None = 0.0) -> bool:
        """Sends a copy of `message` to a client, which may take `timeout` seconds (None: any time) to make room by taking its answers:
        then False. Nobody else is served meanwhile. Closed if it has gone."""

    @property
    def clients(self) -> list[tuple[int, int]]:
        """The numbers of those who are there, and of their processes."""

    @property
    def turned_away(self) -> int:
        """How many callers and clients were turned away."""

    def fileno(self) -> int:
        """A file that is readable when there may be something, once a call that does not wait has found nothing."""

    def close(self) -> None: ...
    def _accept(self, timeout: float | None = None) -> tuple[Sender, Receiver, int, _Ends] | None: ...
    def _ends(self, client: int) -> _Ends: ...
    def _watch(self) -> list[int]:
        """Duplicates of `fileno`, and of a file that is readable once this is closed or a client was hung up on. The caller closes
        them."""

    def _watch_callers(self) -> list[int]:
        """As `_watch`, of a file that is readable when somebody wants to be accepted."""

    def _watch_room(self, client: int) -> list[int]:
        """As `_watch`, of a file that is readable when there is room for an answer."""

    def _listen_room(self, client: int, length: int) -> bool:
        """Before going back to an event loop: is there room for `length` bytes after all?"""

def services() -> list[str]:
    """The names of this user's services, those of dead ones among them."""

def _connect(
    name: str | os.PathLike[str],
    timeout: float,
    users: Literal["same", "anyone"] | Sequence[int],
    most_memory: int,
    most_eventfds: int,
    patience: float,
) -> tuple[Sender, Receiver, int, _Ends]: ...
@final
class _Unopened:
    """What `UnopenedEnd` is made of."""

    def open(self, users: Literal["same", "anyone"] | Sequence[int]) -> tuple[Sender, Receiver, int, _Ends]: ...
    def close(self) -> None: ...

@final
class _Ends:
    """What `Duplex` sends and receives ends by."""

    def send(self, end: _Unopened) -> None: ...
    def recv(self, timeout: float | None) -> _Unopened | None: ...
    def close(self) -> None: ...

def _pair(capacity: int) -> tuple[tuple[Sender, Receiver, int, _Ends], _Unopened]: ...

@final
class _Waiter:
    """What `gpu.Waiter` waits by."""

    def __new__(cls, spin: float | None = None) -> Self: ...
    def wait(self, event: int, timeout: float | None = None) -> bool: ...
    def counts(self) -> tuple[int, int, int, int]: ...

@final
class _Events:
    """What `gpu.Events` is made of."""

    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def add(self, event: int, key: int) -> None: ...
    def remove(self, key: int) -> None: ...
    def done(self) -> list[tuple[int, str | None]]: ...
