# SPDX-License-Identifier: MIT OR Apache-2.0
"""What always has something gives way to the other tasks of the event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

import doorbell

FOREVER = 60.0
MANY = 1000


async def ticks_during(run: Awaitable[object]) -> int:
    """How many turns another task got until `run` was done."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.ensure_future(tick())
    # It begins when this one waits for the first time.
    await run
    ticker.cancel()
    return ticks


async def take(messages: AsyncIterator[object]) -> None:
    for _ in range(MANY):
        await anext(messages)


async def of_a_receiver(_: Path) -> int:
    sender, receiver = doorbell.channel(1 << 20)
    for _message in range(MANY):
        sender.send(b"!")
    return await ticks_during(take(aiter(receiver)))


async def of_a_gather(_: Path) -> int:
    sender, receiver = doorbell.channel(1 << 20, senders=2)
    for _message in range(MANY):
        sender.send(b"!")
    return await ticks_during(take(aiter(receiver)))


async def of_a_subscriber(_: Path) -> int:
    publisher = doorbell.Publisher(1 << 20)
    subscriber = publisher.subscribe()
    for _message in range(MANY):
        publisher.publish(b"!")
    return await ticks_during(take(aiter(subscriber)))


async def of_a_sender(_: Path) -> int:
    sender, _receiver = doorbell.channel(1 << 20)
    to = doorbell.AsyncSender(sender)

    async def send() -> None:
        for _message in range(MANY):
            await to.send(b"!")

    return await ticks_during(send())


async def of_a_bell(_: Path) -> int:
    bell = doorbell.Bell()
    handle = doorbell.AsyncBell(bell)

    async def hear() -> None:
        for _ring in range(MANY):
            bell.ring()
            await handle.wait()

    return await ticks_during(hear())


async def of_a_listener(folder: Path) -> int:
    listener = doorbell.listen(folder / "service", capacity=1 << 20)

    def ask() -> None:
        with doorbell.connect(folder / "service", FOREVER) as connection:
            for _message in range(MANY):
                connection.send(b"!")
            all_sent.set()
            done.wait(FOREVER)

    all_sent, done = threading.Event(), threading.Event()
    client = threading.Thread(target=ask)
    client.start()
    asked = doorbell.AsyncListener(listener)
    await asked.recv()
    all_sent.wait(FOREVER)

    async def serve() -> None:
        for _message in range(MANY - 1):
            await asked.recv()

    ticks = await ticks_during(serve())
    done.set()
    client.join()
    return ticks


async def of_answers(folder: Path) -> int:
    listener = doorbell.listen(folder / "service", capacity=1 << 20)

    def ask() -> None:
        with doorbell.connect(folder / "service", FOREVER) as connection:
            connection.send(b"!")
            done.wait(FOREVER)

    done = threading.Event()
    client = threading.Thread(target=ask)
    client.start()
    asked = doorbell.AsyncListener(listener)
    number, _question = await asked.recv()

    async def answer() -> None:
        for _message in range(MANY):
            await asked.send(number, b"!")

    ticks = await ticks_during(answer())
    done.set()
    client.join()
    return ticks


ALL = [of_a_receiver, of_a_gather, of_a_subscriber, of_a_sender, of_a_bell, of_a_listener, of_answers]


@pytest.mark.parametrize("run", ALL)
def test_a_task_whose_end_always_has_something_gives_way(run: Callable[[Path], Awaitable[int]], tmp_path: Path) -> None:
    """A client that sent without pause kept every other task of the loop from running, time-outs with them."""

    async def ticks() -> int:
        return await run(tmp_path)

    assert asyncio.run(ticks()) > MANY // 100


def test_a_cancelled_await_that_gave_way_loses_nothing() -> None:
    sender, receiver = doorbell.channel(1 << 20)
    for number in range(MANY):
        sender.send(number.to_bytes(4, "little"))

    async def take_with_interruptions() -> list[int]:
        messages = doorbell.AsyncReceiver(receiver._native_end())
        heard: list[int] = []
        while len(heard) < MANY:
            task = asyncio.ensure_future(messages.recv())
            await asyncio.sleep(0)
            if not task.done():
                task.cancel()
            try:
                heard.append(int.from_bytes(await task, "little"))
            except asyncio.CancelledError:
                pass
        return heard

    assert asyncio.run(take_with_interruptions()) == list(range(MANY))
