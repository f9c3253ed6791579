# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package promises of waiting for unlike ends, and of sending in asyncio."""

import asyncio
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import doorbell

FOREVER = 60.0


@pytest.mark.parametrize("by_files", [False, True])
def test_whichever_end_has_something_is_named(by_files: bool) -> None:
    select = doorbell.Select(by_files=by_files)
    bell, silent = doorbell.Bell(), doorbell.Bell()
    sender, receiver = doorbell.channel()
    senders, gathered = doorbell.channel(senders=2)
    publisher = doorbell.Publisher(4096)
    subscriber = publisher.subscribe("gap")
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    ends: list[Any] = [silent, bell, receiver, gathered, subscriber, reading, ours]
    assert select.wait(ends, 0) is None
    actions = {
        1: bell.clone().ring,
        2: lambda: sender.send(b"message"),
        3: lambda: senders.send(b"message"),
        4: lambda: publisher.publish(b"message"),
        5: lambda: os.write(writing, b"x"),
        6: lambda: theirs.send(b"x"),
    }
    for place, action in actions.items():
        thread = threading.Timer(0.02, action)
        thread.start()
        assert select.wait([silent, ends[place]], FOREVER) is ends[place]
        thread.join()
    assert bell.try_wait() == 1
    assert receiver.try_recv() == gathered.try_recv() == b"message"


def test_a_client_and_a_service_are_ends_too(tmp_path: Path) -> None:
    select = doorbell.Select()
    silent = doorbell.Bell()
    with doorbell.listen(tmp_path / "service") as service:
        thread = threading.Timer(0.02, lambda: clients.append(doorbell.connect(tmp_path / "service", FOREVER)))
        clients: list[doorbell.Duplex] = []
        thread.start()
        assert select.wait([silent, service], FOREVER) is service
        with pytest.raises(ValueError):
            select.wait([], 0)
        accepted = service.accept(FOREVER)
        assert accepted is not None
        thread.join()
        with clients.pop() as client:
            accepted.send(b"hello")
            assert select.wait([silent, client], FOREVER) is client
            assert client.try_recv() == b"hello"
        # What is to be told of a peer names its end as well.
        assert select.wait([silent, accepted], FOREVER) is accepted


def test_what_can_be_neither_received_from_nor_polled_is_refused() -> None:
    select = doorbell.Select()
    with pytest.raises(TypeError):
        select.wait([object()], 0)
    with pytest.raises(ValueError):
        select.wait([-1], 0)


def test_a_task_awaits_room_and_others_run_meanwhile(tmp_path: Path) -> None:
    messages = [bytes([number % 256]) * 100 for number in range(500)]

    async def both() -> list[bytes]:
        with doorbell.listen(tmp_path / "service", capacity=1024) as service:
            connecting = asyncio.to_thread(doorbell.connect, tmp_path / "service", FOREVER)
            accepting = asyncio.to_thread(service.accept, FOREVER)
            client, accepted = await asyncio.gather(connecting, accepting)
            assert accepted is not None

            async def send() -> None:
                sender = doorbell.AsyncSender(client.sender)
                for message in messages:
                    await sender.send(message)
                client.close()

            sending = asyncio.create_task(send())
            received = [message async for message in accepted]
            await sending
            return received

    assert asyncio.run(asyncio.wait_for(both(), FOREVER)) == messages


@pytest.mark.parametrize("senders", [1, 2])
def test_the_ends_of_a_channel_are_awaited(senders: int) -> None:
    """`async for` over a channel, and AsyncSender of one, were refused: they took the ends of segments alone."""
    messages = [bytes([number % 256]) * 100 for number in range(500)]

    async def both() -> list[bytes]:
        tx, rx = doorbell.channel(1024, senders=senders)

        async def send() -> None:
            sender = doorbell.AsyncSender(tx)
            for message in messages:
                await sender.send(message)
            tx.close()

        sending = asyncio.create_task(send())
        received = []
        async for message in rx:
            received.append(message)
            # A sender that may still come keeps the channel open.
            if senders > 1 and len(received) == len(messages):
                break
        await sending
        return received

    assert asyncio.run(asyncio.wait_for(both(), FOREVER)) == messages


def test_a_send_that_is_cancelled_sends_nothing_and_one_that_is_closed_ends() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=1024, eventfds=1)
    sender, receiver = segment.sender(0), segment.receiver(0)
    while sender.try_send(b"x" * 100):
        pass

    async def cancelled() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(doorbell.AsyncSender(sender).send(b"never" * 20), 0.02)
        waiting = asyncio.create_task(doorbell.AsyncSender(sender).send(b"never" * 20))
        await asyncio.sleep(0.02)
        sender.close()
        with pytest.raises(ValueError):
            await asyncio.wait_for(waiting, FOREVER)

    asyncio.run(cancelled())
    assert set(receiver) == {b"x" * 100}
