# SPDX-License-Identifier: MIT OR Apache-2.0
"""channel, listen, connect: what a user writes first."""

import array
import asyncio
import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
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


def send_and_wait(tx: doorbell.ChannelSender) -> None:
    tx.send(b"one", FOREVER)
    signal.pause()


def take_and_wait(rx: doorbell.ChannelReceiver, said: Any) -> None:
    assert rx.try_recv() is None
    said.set()
    signal.pause()


@pytest.mark.parametrize("method", METHODS)
def test_a_receiver_hears_of_a_killed_worker_after_all_that_it_sent(method: str) -> None:
    """It waited for ever."""
    context: Any = multiprocessing.get_context(method)
    tx, rx = doorbell.channel()
    for _ in range(2):
        child = context.Process(target=send_and_wait, args=(tx,))
        child.start()
        while True:
            # Until the second has come, the first one's end is told.
            try:
                message = rx.recv(FOREVER)
                break
            except doorbell.PeerGone:
                time.sleep(0.01)
        assert message == b"one" and rx.try_recv() is None
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(doorbell.PeerGone, match=f"process {child.pid}"):
            rx.recv(FOREVER)
        child.join()
    # This process may take the dead one's place.
    assert tx.send(b"mine") and rx.recv(FOREVER) == b"mine"


@pytest.mark.parametrize("method", METHODS)
def test_a_sender_hears_of_a_killed_worker_that_received(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    tx, rx = doorbell.channel(4096)
    said = context.Event()
    child = context.Process(target=take_and_wait, args=(rx, said))
    child.start()
    assert said.wait(FOREVER)
    killer = threading.Timer(0.05, os.kill, (child.pid, signal.SIGKILL))
    killer.start()
    # Until there is no room, and then for room.
    with pytest.raises(doorbell.PeerGone, match=f"process {child.pid}"):
        while True:
            assert tx.send(bytes(500), FOREVER), "hung"
    killer.join()
    child.join()


def test_a_gather_of_several_workers_names_the_one_that_was_killed() -> None:
    context = multiprocessing.get_context("spawn")
    tx, rx = doorbell.channel(senders=2)
    children = [context.Process(target=send_and_wait, args=(tx,)) for _ in range(2)]
    for child in children:
        child.start()
    assert [rx.recv(FOREVER) for _ in range(2)] == [b"one", b"one"]
    for child in children:
        child.kill()
        with pytest.raises(doorbell.PeerGone, match=f"process {child.pid}"):
            rx.recv(FOREVER)
        child.join()


def test_a_fork_waits_until_no_thread_takes_an_end() -> None:
    """The child had a copy of a lock that nobody in it would let go of."""
    tx, rx = doorbell.channel()
    taking, go = threading.Event(), threading.Event()
    take = tx._take

    def slowly() -> Any:
        taking.set()
        go.wait(FOREVER)
        return take()

    tx._take = slowly  # type: ignore[method-assign]
    first = threading.Thread(target=tx.send, args=(b"the parent's",))
    first.start()
    assert taking.wait(FOREVER)
    # Long enough for a fork that does not wait.
    threading.Timer(0.2, go.set).start()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            rx.close()
            other, _unread = doorbell.channel()
            other.send(b"the child's")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    first.join()
    assert rx.recv(FOREVER) == b"the parent's"


def test_listeners_and_clients_choose_users(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    others = [os.geteuid() + 1]
    with doorbell.listen(name, users=others, mode=0o600) as service:
        assert service.path == name

        def refuse() -> None:
            while not service.turned_away:
                service.accept(0.1)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with pytest.raises(doorbell.RendezvousError, match="not let in"):
            doorbell.connect(name)
        refusing.join()
        assert service.turned_away == 1
    with doorbell.listen(name, users="anyone", mode=0o600) as service:
        with pytest.raises(doorbell.RendezvousError, match=f"user {os.geteuid()}"):
            doorbell.connect(name, users=others)
        asking = threading.Thread(target=lambda: doorbell.connect(name, users=[os.geteuid()]).send(b"hello"))
        asking.start()
        came = service.recv(FOREVER)
        assert came is not None and came[1] == b"hello"
        asking.join()
    with pytest.raises(ValueError, match="no choice of users"):
        doorbell.listen(name, users="nobody")  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "flag"), [("pid", 0x20000000), ("time", 0x80)])
def test_a_worker_in_another_namespace_takes_nobody_for_dead(kind: str, flag: int) -> None:
    """It asked the kernel for a number that is another's there, took the living parent for dead, and its end with it."""
    tx, rx = doorbell.channel(4096)
    tx.send(b"first")
    refused, between = 77, os.fork()
    if between == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(flag) != 0:
            os._exit(refused)
        if kind == "time":
            # Of those who are made from now on: by the clock there their parent has begun in another year.
            pathlib.Path("/proc/self/timens_offsets").write_text("boottime 40000000 0\n")
        child = os.fork()
        if child == 0:
            try:
                right = rx.recv(FOREVER) == b"first" and rx.recv(0.1) is None
                try:
                    tx.send(b"a second sender's", 0.1)
                    right = False
                except doorbell.RendezvousError as error:
                    right = right and "taken" in str(error)
                os._exit(0 if right else 1)
            finally:
                os._exit(2)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    status = os.waitstatus_to_exitcode(os.waitpid(between, 0)[1])
    if status == refused:
        pytest.skip(f"no {kind} namespace can be made here")
    assert status == 0
    assert tx.send(b"the parent goes on", FOREVER)


def test_a_task_that_sends_to_a_client_which_half_closes_and_stands_still_is_told(tmp_path: pathlib.Path) -> None:
    """It waited for room for ever: the client was forgotten, and who was to wake it with it."""

    async def serve(service: doorbell.Listener) -> None:
        listener = doorbell.AsyncListener(service)
        came = await listener.recv()
        assert came is not None
        who = came[0]

        async def fill() -> None:
            while True:
                await listener.send(who, bytes(500))

        filling = asyncio.create_task(fill())
        receiving = asyncio.create_task(listener.recv())
        with pytest.raises(doorbell.Closed):
            await asyncio.wait_for(filling, FOREVER)
        receiving.cancel()

    name = tmp_path / "service"
    with doorbell.listen(name, capacity=4096) as service:
        client = os.fork()
        if client == 0:
            there = doorbell.connect(name)
            there.send(b"hello")
            there.sender.close()
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
        try:
            asyncio.run(serve(service))
        finally:
            os.kill(client, signal.SIGKILL)
            os.waitpid(client, 0)


def test_a_client_that_has_said_nothing_can_be_sent_to(tmp_path: pathlib.Path) -> None:
    """Only those who had said something were known by their numbers."""
    name = tmp_path / "service"
    with doorbell.listen(name) as service:
        heard: list[bytes | None] = []
        client = threading.Thread(target=lambda: heard.append(doorbell.connect(name).recv(FOREVER)))
        client.start()
        while not service.clients:
            assert service.recv(0.01) is None
        [(who, _)] = service.clients
        assert service.send(who, b"hello")
        client.join()
        assert heard == [b"hello"]


def test_a_service_waits_for_one_client_to_take_its_answers_as_long_as_it_says(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    answers = 100
    go = threading.Event()

    def take() -> int:
        with doorbell.connect(name, FOREVER) as service:
            service.send(b"hello")
            assert go.wait(FOREVER)
            return sum(service.recv(FOREVER) == bytes(1000) for _ in range(answers))

    with doorbell.listen(name, capacity=4096) as service, concurrent.futures.ThreadPoolExecutor() as threads:
        taking = threads.submit(take)
        came = service.recv(FOREVER)
        assert came is not None
        who, sent = came[0], 0
        while service.send(who, bytes(1000)):
            sent += 1
        assert 0 < sent < answers
        assert not service.send(who, bytearray(1000), 0.01), "nobody takes them yet"
        go.set()
        for number in range(sent, answers):
            message: bytes | bytearray = bytes(1000) if number % 2 else bytearray(1000)
            assert service.send(who, message, None if number % 3 else FOREVER)
        assert taking.result() == answers
        with pytest.raises((doorbell.Closed, doorbell.PeerGone)):
            while service.send(who, bytes(1000), FOREVER):
                pass


def test_a_wait_for_a_client_that_takes_nothing_ends_when_the_service_is_closed(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    with doorbell.listen(name, capacity=4096) as service, concurrent.futures.ThreadPoolExecutor() as threads:
        connecting = threads.submit(doorbell.connect, name, FOREVER)
        while not service.clients:
            assert service.recv(0.01) is None
        client = connecting.result()
        [(who, _)] = service.clients
        while service.send(who, bytes(1000)):
            pass
        sending = threads.submit(service.send, who, bytes(1000), None)
        assert not sending.done()
        time.sleep(0.05)
        service.close()
        with pytest.raises(ValueError, match="closed"):
            sending.result(FOREVER)
        client.close()


def test_tasks_serve_clients_and_wait_for_room_without_a_thread(tmp_path: pathlib.Path) -> None:
    name = tmp_path / "service"
    answers = 200

    def ask() -> int:
        with doorbell.connect(name, FOREVER) as service:
            service.send(b"hello")
            return sum(service.recv(FOREVER) == bytes(1000) for _ in range(answers))

    def greet() -> bytes | None:
        with doorbell.connect(name, FOREVER) as service:
            service.send(b"hi")
            return service.recv(FOREVER)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        service = doorbell.listen(name, capacity=4096)
        listener = doorbell.AsyncListener(service)
        asking = loop.run_in_executor(None, ask)
        client, message = await listener.recv()
        assert message == b"hello"
        # More than there is room for, so that room is awaited.
        for _ in range(answers):
            await listener.send(client, memoryview(bytes(1000)))
        assert await asking == answers
        with pytest.raises(doorbell.Closed):
            while True:
                await listener.send(client, b"late")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(listener.recv(), 0.01)
        # The next comes while a task waits for it, and another for messages.
        greeting = loop.run_in_executor(None, greet)
        accepted = await listener.accept()
        assert accepted.receiver.recv(FOREVER) == b"hi" and accepted.send(b"there")
        assert await greeting == b"there"
        # Whoever waits when it is closed is told.
        waiting = [asyncio.ensure_future(wait) for wait in (listener.accept(), listener.recv())]
        await asyncio.sleep(0.01)
        service.close()
        for wait in waiting:
            with pytest.raises(ValueError, match="closed"):
                await wait

    asyncio.run(asyncio.wait_for(serve(), FOREVER))


def test_what_is_sent_is_what_lay_in_the_buffer_whatever_it_is() -> None:
    tx, rx = doorbell.channel()
    for message in (
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"a part of it")[2:6],
        memoryview(bytearray(b"every other"))[::2],
        array.array("d", [1.5, 2.5]),
        b"",
        bytearray(),
    ):
        assert tx.send(message) and rx.recv(FOREVER) == bytes(memoryview(message))
    assert tx.send_batch([bytearray(b"one"), b"two"]) == 2
    assert [rx.recv(FOREVER), rx.recv(FOREVER)] == [b"one", b"two"]
    with pytest.raises(ValueError):
        tx.send(bytearray(1 << 20))


def test_a_client_says_how_much_memory_it_takes(tmp_path: pathlib.Path) -> None:
    """The limit could not be raised: a service with rings of 512 MiB had no clients in Python."""
    with doorbell.listen(tmp_path / "large", capacity=1 << 20) as service:
        met: list[doorbell.Duplex | None] = []
        serving = threading.Thread(target=lambda: met.append(service.accept(FOREVER)))
        serving.start()
        with pytest.raises(doorbell.RendezvousError):
            doorbell.connect(tmp_path / "large", FOREVER, most_memory=1 << 20)
        with doorbell.connect(tmp_path / "large", FOREVER, most_memory=1 << 40, most_eventfds=4, patience=FOREVER) as client:
            assert client.sender.longest > 300_000
            serving.join()
    with pytest.raises(ValueError, match="patience"):
        doorbell.connect(tmp_path / "large", patience=-1.0)


def test_one_thread_is_a_service_and_its_client(tmp_path: pathlib.Path) -> None:
    """Half a minute, and then "Resource temporarily unavailable": it waited for itself."""
    name = tmp_path / "service"
    with doorbell.listen(name) as service, doorbell.connect(name, FOREVER) as client:
        client.send(b"hello")
        came = service.recv(FOREVER)
        assert came is not None and came[1] == b"hello"
        assert service.send(came[0], b"and hello")
        assert client.recv(FOREVER) == b"and hello"


@contextlib.contextmanager
def stopped(name: pathlib.Path) -> Iterator[None]:
    """Somebody who listens and never answers, as a stopped process does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(name))
        listening.listen()
        yield


def test_a_connect_to_a_stopped_service_keeps_its_timeout(tmp_path: pathlib.Path) -> None:
    with stopped(tmp_path / "service"):
        with pytest.raises(doorbell.RendezvousError, match="within 50ms"):
            doorbell.connect(tmp_path / "service", 0.05)
        with pytest.raises(doorbell.RendezvousError, match="within 50ms"):
            doorbell.connect(tmp_path / "service", patience=0.05)


@pytest.mark.parametrize(
    "call",
    [
        "doorbell.connect(name, 600)",
        "doorbell.join(name, patience=600)",
        "doorbell.start(['cat'], doorbell.Segment(bells=1), stdin=subprocess.PIPE)",
    ],
)
def test_control_c_ends_a_rendezvous_though_no_system_call_hears_of_it(tmp_path: pathlib.Path, call: str) -> None:
    """A signal just before the system call did not end it: the thread slept for the whole timeout. Here another
    thread takes the signal, once this one sleeps."""
    program = f"""
import doorbell, os, signal, subprocess, sys, threading, time
name, pid = sys.argv[1], os.getpid()
def interrupts():
    # ppoll and poll of x86-64, ppoll of arm64.
    while open(f"/proc/self/task/{{pid}}/syscall").read().split()[0] not in ("271", "7", "73"):
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
try:
    threading.Thread(target=interrupts, daemon=True).start()
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""
    with stopped(tmp_path / "service"):
        command = [sys.executable, "-c", program, str(tmp_path / "service")]
        assert subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=FOREVER).stdout == "interrupted\n"
