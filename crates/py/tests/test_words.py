# SPDX-License-Identifier: MIT OR Apache-2.0
"""channel, listen, connect: what a user writes first."""

import asyncio
import multiprocessing
import os
import pathlib
import threading
from typing import Any

import doorbell
import pytest

METHODS = ["fork", "spawn", "forkserver"]
# Longer than anything takes on the slowest machine.
FOREVER = 60.0


def send_all(tx: doorbell.ChannelSender, who: int) -> None:
    for number in range(100):
        assert tx.send(f"{who} {number}".encode(), FOREVER)


def echo(rx: doorbell.ChannelReceiver, tx: doorbell.ChannelSender) -> None:
    for message in rx:
        tx.send(message, FOREVER)


def test_a_channel_between_threads() -> None:
    tx, rx = doorbell.channel()
    threading.Thread(target=tx.send, args=(b"hello",)).start()
    assert rx.recv(FOREVER) == b"hello"
    assert rx.recv(0.01) is None
    tx.close()
    assert list(rx) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_process_that_is_given_an_end_sends_and_nothing_is_lost(method: str) -> None:
    """In a forked child all vanished, and send said that it had sent."""
    context: Any = multiprocessing.get_context(method)
    tx, rx = doorbell.channel()
    child = context.Process(target=send_all, args=(tx, 7))
    child.start()
    assert [rx.recv(FOREVER) for _ in range(100)] == [f"7 {number}".encode() for number in range(100)]
    child.join()
    assert child.exitcode == 0
    # It has left: its successor may be another process, or this one.
    assert list(rx) == []
    assert tx.send(b"mine") and rx.recv(FOREVER) == b"mine"


@pytest.mark.parametrize("method", METHODS)
def test_a_process_that_is_given_both_directions_answers(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    (tx, requests), (answers, rx) = doorbell.channel(), doorbell.channel()
    child = context.Process(target=echo, args=(requests, answers))
    child.start()
    for number in range(200):
        assert tx.send(b"%d" % number, FOREVER)
        assert rx.recv(FOREVER) == b"%d" % number
    tx.close()
    child.join()
    assert child.exitcode == 0


def test_an_end_that_the_parent_uses_is_refused_to_the_child_by_name() -> None:
    tx, rx = doorbell.channel()
    tx.send(b"the parent's")

    def use_it() -> None:
        try:
            tx.send(b"lost")
        except doorbell.RendezvousError:
            os._exit(7)

    child = multiprocessing.get_context("fork").Process(target=use_it)
    child.start()
    child.join()
    assert child.exitcode == 7
    assert rx.recv(FOREVER) == b"the parent's" and rx.try_recv() is None


def test_several_processes_send_to_one() -> None:
    context = multiprocessing.get_context("fork")
    tx, rx = doorbell.channel(senders=3)
    children = [context.Process(target=send_all, args=(tx, who)) for who in range(3)]
    for child in children:
        child.start()
    came = [rx.recv(FOREVER) for _ in range(300)]
    assert sorted(came, key=str) == sorted((f"{w} {n}".encode() for w in range(3) for n in range(100)), key=str)
    for child in children:
        child.join()
        assert child.exitcode == 0


def ask(name: pathlib.Path) -> None:
    with doorbell.connect(name, FOREVER) as service:
        service.send(b"hello from %d" % os.getpid())
        assert service.recv(FOREVER) == b"hello %d" % os.getpid()


def test_a_service_answers_each_client_and_those_that_leave_come_again(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    context = multiprocessing.get_context("spawn")
    with doorbell.listen(name) as service:
        for _ in range(2):
            children: list[Any] = [context.Process(target=ask, args=(name,)) for _ in range(3)]
            for child in children:
                child.start()
            for _ in children:
                came = service.recv(FOREVER)
                assert came is not None
                client, message = came
                assert service.send(client, b"hello " + message.split()[-1])
            for child in children:
                child.join()
                assert child.exitcode == 0
    with pytest.raises(doorbell.RendezvousError):
        doorbell.connect(name)


def test_a_client_of_its_own_and_under_asyncio(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    with doorbell.listen(name) as service:
        asking = threading.Thread(target=ask, args=(name,))
        asking.start()
        client = service.accept(FOREVER)
        assert client is not None

        async def serve() -> int:
            count = 0
            async for message in client:
                client.send(b"hello " + message.split()[-1])
                count += 1
            return count

        assert asyncio.run(serve()) == 1
        asking.join()
