# SPDX-License-Identifier: MIT OR Apache-2.0
"""One scheduler, many workers: a broadcast to the processes that this one starts."""

import os
import select
import shutil
import socket
import tempfile
import time
import weakref
from multiprocessing import context, reduction
from typing import Any, Self

from ._native import Closed, Host, Publisher, RendezvousError, Segment, Subscriber, join
from .ends import Closes, Given, Life, Receives
from .objects import parts

# How long a worker that was started may take until it is there.
PATIENCE = 300.0


def _end(timeout: float | None) -> float | None:
    """When `timeout` seconds from now are over."""
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _remove(folder: str, process: int) -> None:
    """What a forked child has of a scheduler is a copy, and removes nothing."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class _Expected:
    """A worker that has not come yet: where it comes, and what hangs up when nobody is left who could."""

    def __init__(self, path: str, place: int) -> None:
        self.place = place
        self.host = Host(path)
        ours, theirs = socket.socketpair()
        self.life = Life(ours.detach())
        self.receiver = BroadcastReceiver(path, Life(theirs.detach()))
        # Nobody else keeps it: then its end is told.
        self.here = weakref.ref(self.receiver)

    def is_on_its_way(self) -> bool:
        here = self.here()
        return here is not None and here._is_on_its_way()


# How long a look for workers lasts while processes are being started, whose numbers nobody tells us.
GLANCE = 0.05


class BroadcastSender(Closes):
    """Sends each message to all workers. Waits for one that is slow, and for none that has gone."""

    def __init__(self, capacity: int, workers: int) -> None:
        self._publisher = Publisher(capacity)
        self._folder = tempfile.mkdtemp(prefix="doorbell-")
        self._clean_up = weakref.finalize(self, _remove, self._folder, os.getpid())
        self._missing = [_Expected(os.path.join(self._folder, str(place)), place) for place in range(workers)]
        self._never_came: list[tuple[int, str]] = []

    def _receivers(self) -> "list[BroadcastReceiver]":
        """Those that workers are to use. To be asked for once: a copy that is kept here would be one more."""
        receivers = [worker.receiver for worker in self._missing]
        for worker in self._missing:
            del worker.receiver
        return receivers

    def wait_for_workers(self, timeout: float | None = PATIENCE) -> bool:
        """Waits until all are there who can come, which the first message does too. False if `timeout` seconds went by first.

        Who closed its end before it used it, or died on the way to it, is not waited for. As with a pipe, a copy that is kept counts.
        """
        end = _end(timeout)
        while self._missing:
            starting = any([worker.is_on_its_way() for worker in self._missing])
            files = select.poll()
            for worker in self._missing:
                files.register(worker.host.fileno(), select.POLLIN)
                files.register(worker.life.file, 0)
            left = _left(end)
            wait = min(left, GLANCE) if starting and left is not None else GLANCE if starting else left
            files.poll(None if wait is None else wait * 1000)
            self._missing = [worker for worker in self._missing if not self._has_come_or_gone(worker)]
            if self._missing and end is not None and time.monotonic() >= end:
                return False
        self._stop_listening()
        return True

    def _has_come_or_gone(self, worker: _Expected) -> bool:
        # Before the look at who comes: whoever has come and gone by then has come.
        is_gone = worker.life.other_side_is_gone()
        try:
            connection = worker.host.accept(Segment(lanes=1, lane_capacity=4096), 0.0)
        except RendezvousError:
            # It died, or was held up, in the middle of its rendezvous: it comes again, or its life ends.
            return False
        if connection is not None:
            self._publisher.admit(connection, 0)
        elif is_gone:
            self._never_came.append((worker.place, "never came"))
        else:
            return False
        worker.host.close()
        return True

    def send(self, message: Any, timeout: float | None = None) -> bool:
        """Sends a copy of `message`. False if `timeout` seconds went by before all workers were there and there was room."""
        end = _end(timeout)
        return self._all_there(end) and self._publisher.publish(message, _left(end))

    def send_object(self, object: Any, timeout: float | None = None) -> bool:
        """Sends `object`, pickled; large buffers in it are copied once, into shared memory. Waits as `send` does."""
        end = _end(timeout)
        return self._all_there(end) and self._publisher._publish_parts(*parts(object), _left(end))

    def ended(self) -> list[tuple[int, str]]:
        """Which workers have gone since the last call, by their numbers in the order of their coming, and how.

        Who "never came" has the number of its place among the receivers.
        """
        never_came, self._never_came = self._never_came, []
        return [*self._publisher.ended(), *never_came]

    def _all_there(self, end: float | None) -> bool:
        if not self._missing or self.wait_for_workers(PATIENCE if end is None else _left(end)):
            return True
        if end is None:
            raise RendezvousError(
                f"{len(self._missing)} workers did not come within {PATIENCE:.0f} seconds; one is there when it first receives, "
                "in a process or thread of its own"
            )
        return False

    def _stop_listening(self) -> None:
        for worker in self._missing:
            worker.host.close()
        self._missing = []
        self._clean_up()

    def close(self) -> None:
        """Leaves: workers receive all that was sent, and are then told."""
        self._stop_listening()
        self._publisher.close()


class BroadcastReceiver(Receives):
    """One worker's end, of the process that first uses it. `for` runs over its messages until the sender leaves.

    Sleeps between steps, but for a short while in which the next message is due, as the last ones say: it spins for at most eight
    hundredths of a step.
    """

    def __init__(self, path: str, life: Life | None) -> None:
        self._path = path
        self._life = life
        self._subscriber: Subscriber | None = None
        self._given = Given()

    def __reduce__(self) -> tuple[Any, ...]:
        starting = context.get_spawning_popen()
        if starting is None:
            # Where it goes nobody knows: from now on its end is not told before it has come.
            _kept.append(self._life)
            return _adopt, (self._path, None)
        self._given.to(starting)
        return _adopt, (self._path, None if self._life is None else reduction.DupFd(self._life.file))

    def _is_on_its_way(self) -> bool:
        """Is a copy of this end on its way to a process that is being started? When none is, who gave
        its only copy away does not count."""
        is_on_its_way = self._given.is_on_its_way()
        if self._given.away and not is_on_its_way and self._subscriber is None:
            self._life = None
        return is_on_its_way

    def _native_end(self) -> Subscriber:
        if self._subscriber is None:
            try:
                with join(self._path) as connection:
                    self._subscriber = connection.subscribe(0)
            except RendezvousError:
                if self._life is None or not self._life.other_side_is_gone():
                    raise
                raise Closed("the sender has left, or another process uses this end") from None
            self._subscriber._set_paced(True)
        return self._subscriber

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        came = self._native_end().recv(timeout)
        return came and came[0]

    def close(self) -> None:
        """Leaves: the sender does not wait for this worker any more."""
        self._life = None
        if self._subscriber is not None:
            self._subscriber.close()


# Of ends that were pickled to be sent somewhere.
_kept: list[Life | None] = []


def _adopt(path: str, life: Any) -> BroadcastReceiver:
    return BroadcastReceiver(path, None if life is None else Life(life.detach()))


def broadcast(workers: int, capacity: int = 1 << 22) -> tuple[BroadcastSender, list[BroadcastReceiver]]:
    """A broadcast from this process to `workers` that it starts: give each `multiprocessing.Process` one of the receivers, however it
    is started. Every worker gets every message; the longest takes about three eighths of `capacity` bytes.

    The first message waits until all workers are there.
    """
    if workers < 1:
        raise ValueError(f"a broadcast has at least one worker, and not {workers}")
    sender = BroadcastSender(capacity, workers)
    return sender, sender._receivers()
