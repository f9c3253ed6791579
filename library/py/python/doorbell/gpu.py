# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting for a GPU: spinning as long as that pays on this machine, then asleep; in a thread, in asyncio, or in any event loop.

An event is a `torch.cuda.Event` that was recorded, an event of CuPy, or the number of a `CUevent` or `cudaEvent_t`."""

import asyncio
import ctypes
import operator
from collections.abc import Hashable

from ._native import Error, _Events, _Waiter

__all__ = ["Events", "Waiter", "wait_async"]


def _raw(event: object) -> int:
    """The number of the driver's event behind `event`."""
    for name in ("cuda_event", "ptr", "handle"):
        number = getattr(event, name, None)
        if number is not None:
            event = number
            break
    # A handle may be of ctypes (numba's), or a number by __int__ alone (cuda-python's).
    if isinstance(event, ctypes.c_void_p):
        event = event.value or 0
    try:
        number = int(event) if hasattr(event, "__int__") and not isinstance(event, float) else operator.index(event)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{event!r} is no event of a GPU: it is no number and has none of cuda_event, ptr and handle that is one"
        ) from None
    if number == 0:
        raise ValueError("the event was not recorded yet")
    return number


class Waiter:
    """Waits for one event at a time. It learns from its own waits: make one for each place that waits."""

    def __init__(self, spin: float | None = None) -> None:
        """`spin`: seconds for which it asks before it sleeps; None is as long as that pays."""
        self._waiter = _Waiter(spin)

    def wait(self, event: object, timeout: float | None = None) -> bool:
        """Waits until what was recorded in `event` is done. False if `timeout` seconds were over first."""
        return self._waiter.wait(_raw(event), timeout)

    def counts(self) -> dict[str, int]:
        """How many waits were over within the spin, how many spins were in vain, how many waits slept, and how many of these were ended
        by a look, for nobody told."""
        hits, in_vain, slept, rescued = self._waiter.counts()
        return {"hits": hits, "in_vain": in_vain, "slept": slept, "rescued": rescued}


class Events:
    """Any number of events behind one descriptor, which is readable once one is done."""

    def __init__(self) -> None:
        self._events = _Events()
        self._waited: dict[int, tuple[Hashable, object]] = {}
        self._last = 0

    def fileno(self) -> int:
        """For an event loop; never read from it."""
        return self._events.fileno()

    def __len__(self) -> int:
        return len(self._waited)

    def add(self, event: object, key: Hashable) -> None:
        """Waits for `event`; `done` then tells `key`. It must not be recorded again before."""
        self._last += 1
        self._events.add(_raw(event), self._last)
        self._waited[self._last] = (key, event)

    def remove(self, key: Hashable) -> None:
        """Waits for `key` no more."""
        for number in [number for number, (own, _) in self._waited.items() if own == key]:
            self._events.remove(number)
            del self._waited[number]

    def done(self) -> list[tuple[Hashable, Error | None]]:
        """The keys of those that ended since it was asked last, each with what went wrong. Never waits."""
        told = [(number, error) for number, error in self._events.done() if number in self._waited]
        return [(self._waited.pop(number)[0], Error(error) if error else None) for number, error in told]


_loops: dict[asyncio.AbstractEventLoop, Events] = {}


def _of_loop(loop: asyncio.AbstractEventLoop) -> Events:
    """All that is awaited in one loop stands behind one descriptor."""
    for old in [old for old in list(_loops) if old.is_closed()]:
        _loops.pop(old, None)
    if loop not in _loops:
        events = _loops[loop] = Events()

        def tell() -> None:
            for ready, error in events.done():
                if isinstance(ready, asyncio.Future) and not ready.done():
                    if error is None:
                        ready.set_result(None)
                    else:
                        ready.set_exception(error)

        loop.add_reader(events.fileno(), tell)
    return _loops[loop]


async def wait_async(event: object) -> None:
    """Waits in asyncio until what was recorded in `event` is done; any number of tasks may, and may be cancelled."""
    loop = asyncio.get_running_loop()
    events = _of_loop(loop)
    ready: asyncio.Future[None] = loop.create_future()
    events.add(event, ready)
    try:
        await ready
    finally:
        events.remove(ready)
