# SPDX-License-Identifier: MIT OR Apache-2.0
"""One scheduler, many workers: a broadcast to the processes that this one starts."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from ._native import Closed, Host, Publisher, RendezvousError, Segment, Subscriber, join
from .objects import load, parts

# How long a worker that was started may take until it is there.
PATIENCE = 300.0


def _end(timeout: float | None) -> float | None:
    """When `timeout` seconds from now are over."""
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


class BroadcastSender:
    """Sends each message to all workers. Waits for one that is slow, and for none that has gone."""

    def __init__(self, capacity: int, workers: int) -> None:
        self._publisher = Publisher(capacity)
        self._missing = workers
        self._folder = tempfile.mkdtemp(prefix="doorbell-")
        self._path = os.path.join(self._folder, "broadcast")
        self._host: Host | None = Host(self._path)

    def wait_for_workers(self, timeout: float | None = PATIENCE) -> bool:
        """Waits until all are there, which the first message does too. False if `timeout` seconds went by first."""
        end = _end(timeout)
        while self._missing and self._host is not None:
            connection = self._host.accept(Segment(lanes=1, lane_capacity=4096), _left(end))
            if connection is None:
                return False
            self._publisher.admit(connection, 0)
            self._missing -= 1
        self._stop_listening()
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
        """Which workers have gone since the last call, by their numbers in the order of their coming, and how."""
        return list(self._publisher.ended())

    def _all_there(self, end: float | None) -> bool:
        if not self._missing or self.wait_for_workers(PATIENCE if end is None else _left(end)):
            return True
        if end is None:
            raise RendezvousError(
                f"{self._missing} workers did not come within {PATIENCE:.0f} seconds; one is there when it first receives, "
                "in a process or thread of its own"
            )
        return False

    def _stop_listening(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None
            shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Leaves: workers receive all that was sent, and are then told."""
        self._stop_listening()
        self._publisher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


class BroadcastReceiver:
    """One worker's end, of the process that first uses it. `for` runs over its messages until the sender leaves.

    Sleeps between steps, but for a short while in which the next message is due, as the last ones say: it spins for at most eight
    hundredths of a step.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._subscriber: Subscriber | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return BroadcastReceiver, (self._path,)

    def _native_end(self) -> Subscriber:
        if self._subscriber is None:
            with join(self._path) as connection:
                self._subscriber = connection.subscribe(0)
            self._subscriber._set_paced(True)
        return self._subscriber

    def recv(self, timeout: float | None = None) -> bytes | None:
        """A copy of the next message. None if `timeout` seconds went by first."""
        came = self._native_end().recv(timeout)
        return came and came[0]

    def recv_object(self, timeout: float | None = None) -> Any:
        """The next object; its large buffers cannot be written to. TimeoutError if `timeout` seconds went by first."""
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

    def close(self) -> None:
        """Leaves: the sender does not wait for this worker any more."""
        if self._subscriber is not None:
            self._subscriber.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


def broadcast(workers: int, capacity: int = 1 << 22) -> tuple[BroadcastSender, list[BroadcastReceiver]]:
    """A broadcast from this process to `workers` that it starts: give each `multiprocessing.Process` one of the receivers, however it
    is started. Every worker gets every message; the longest takes about three eighths of `capacity` bytes.

    The first message waits until all workers are there.
    """
    if workers < 1:
        raise ValueError(f"a broadcast has at least one worker, and not {workers}")
    sender = BroadcastSender(capacity, workers)
    return sender, [BroadcastReceiver(sender._path) for _ in range(workers)]
