# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package promises of many senders to one receiver, and of one publisher to many subscribers."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import doorbell

FOREVER = 60.0
MESSAGES = 200
TO_PARENT, FROM_PARENT = 0, 1


def start(count: int) -> list[tuple[subprocess.Popen[bytes], doorbell.Connection]]:
    """Children of this file's last lines, each with a segment of its own."""
    segments = [doorbell.Segment(lanes=2, lane_capacity=4096) for _ in range(count)]
    return [doorbell.start([sys.executable, __file__], segment) for segment in segments]


def test_messages_of_several_processes_come_in_the_order_of_each_and_a_death_is_told_by_lane() -> None:
    children = start(3)
    gather = doorbell.Gather()
    with pytest.raises(doorbell.Closed):
        gather.recv(FOREVER)
    for number, (_, connection) in enumerate(children):
        assert gather.add(connection, TO_PARENT) == number
    heard = [0] * 3
    for _ in range(3 * MESSAGES):
        received = gather.recv(FOREVER)
        assert received is not None
        lane, message = received
        assert message == str(heard[lane]).encode()
        heard[lane] += 1
    assert gather.recv(0.01) is None
    assert gather.try_recv() is None
    for number, (process, _) in enumerate(children):
        process.kill()
        process.wait()
        with pytest.raises(doorbell.PeerGone, match=f"lane {number}|process {process.pid}") as told:
            gather.recv(FOREVER)
        assert told.value.lane == number
    assert doorbell.PeerGone().lane is None
    assert gather.remove(0)
    assert not gather.remove(0)
    gather.close()
    with pytest.raises(ValueError, match="closed"):
        gather.recv()


def test_async_for_runs_over_all_lanes_until_no_sender_is_left() -> None:
    segment = doorbell.Segment(lanes=3, lane_capacity=256)
    gather = doorbell.Gather()
    for lane in range(3):
        gather.add(segment, lane)

    def send(lane: int) -> None:
        sender = segment.sender(lane)
        for number in range(MESSAGES):
            sender.send(str(number).encode())
        sender.close()

    sending = [threading.Thread(target=send, args=(lane,)) for lane in range(3)]
    heard: list[list[bytes]] = [[], [], []]

    async def run() -> None:
        async for lane, message in gather:
            heard[lane].append(message)

    for thread in sending:
        thread.start()
    asyncio.run(asyncio.wait_for(run(), FOREVER))
    for thread in sending:
        thread.join()
    assert heard == [[str(number).encode() for number in range(MESSAGES)]] * 3
    assert list(gather) == []


def test_a_lane_added_while_a_task_awaits_is_heard_and_one_removed_disturbs_nobody() -> None:
    segments = [doorbell.Segment(lanes=1, lane_capacity=256) for _ in range(3)]
    senders = [segment.sender(0) for segment in segments]
    gather = doorbell.Gather()
    gather.add(segments[0], 0)
    messages = gather.__aiter__()

    async def awaiting() -> "asyncio.Task[tuple[int, bytes]]":
        task = asyncio.ensure_future(messages.recv())
        for _ in range(3):
            await asyncio.sleep(0)
        assert not task.done()
        return task

    async def run() -> None:
        task = await awaiting()
        with pytest.raises(doorbell.Error, match="another task awaits"):
            await messages.recv()
        with pytest.raises(doorbell.Error, match="another task awaits"):
            await gather.__aiter__().recv()
        number = gather.add(segments[1], 0)
        await asyncio.sleep(0.01)
        assert not task.done()
        senders[1].send(b"from the new lane")
        assert await asyncio.wait_for(task, FOREVER) == (number, b"from the new lane")

        # From another thread, as lanes come.
        task = await awaiting()
        number = await asyncio.get_running_loop().run_in_executor(None, gather.add, segments[2], 0)
        senders[2].send(b"newer")
        assert await asyncio.wait_for(task, FOREVER) == (number, b"newer")

        # Whoever gets the descriptor of a lane that was removed keeps its own reader.
        task = await awaiting()
        before = gather.filenos()
        assert gather.remove(2)
        del segments[2], senders[2]
        closed = [file for file in before if file not in gather.filenos()]
        mine, theirs = os.pipe()
        strangers = [mine, *(os.dup(mine) for _ in range(64))]
        assert {theirs, *strangers}.issuperset(closed)
        heard = asyncio.Event()
        for file in strangers:
            asyncio.get_running_loop().add_reader(file, heard.set)
        senders[0].send(b"still here")
        assert await asyncio.wait_for(task, FOREVER) == (0, b"still here")
        os.write(theirs, b"!")
        await asyncio.wait_for(heard.wait(), FOREVER)
        for file in strangers:
            asyncio.get_running_loop().remove_reader(file)
        for file in [*strangers, theirs]:
            os.close(file)

        # Nothing is lost by cancelling it, and closing it is told.
        task = await awaiting()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        task = await awaiting()
        gather.close()
        with pytest.raises(ValueError, match="closed"):
            await asyncio.wait_for(task, FOREVER)

    asyncio.run(run())


def test_a_connection_is_of_use_while_one_thread_waits_to_be_admitted(tmp_path: Path) -> None:
    """The waiting thread kept the connection locked, and the next one waited for it with the interpreter's lock."""
    segment = doorbell.Segment(lanes=1, lane_capacity=256)
    joined: list[doorbell.Connection] = []
    subscribed: list[doorbell.Subscriber] = []
    with doorbell.Host(tmp_path / "meet") as host:
        joining = threading.Thread(target=lambda: joined.append(doorbell.join(tmp_path / "meet")))
        joining.start()
        connection = host.accept(segment, FOREVER)
        joining.join()
    assert connection is not None
    subscribing = threading.Thread(target=lambda: subscribed.append(joined[0].subscribe(0)))
    subscribing.start()
    time.sleep(0.1)
    assert joined[0].peer is not None
    publisher = doorbell.Publisher(4096)
    publisher.admit(connection, 0)
    subscribing.join()
    publisher.publish(b"admitted")
    assert subscribed[0].recv(FOREVER) == (b"admitted", 0)


def test_a_signal_handler_cannot_subscribe_by_the_connection_whose_subscription_it_interrupts(tmp_path: Path) -> None:
    """It waited for the call that it had interrupted."""
    program = f"""
import doorbell, os, signal, threading, time
path, pid = {str(tmp_path / "meet")!r}, os.getpid()
host, publisher, admit = doorbell.Host(path), doorbell.Publisher(4096), threading.Event()
def meets():
    connection = host.accept(doorbell.Segment(lanes=1, lane_capacity=256))
    admit.wait()
    publisher.admit(connection, 0)
def interrupts():
    # ppoll and poll of x86-64, ppoll of arm64.
    while open(f"/proc/self/task/{{pid}}/syscall").read().split()[0] not in ("271", "7", "73"):
        time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
def heard(*_):
    try:
        connection.subscribe(0)
    except doorbell.Error as error:
        print(error)
    admit.set()
threading.Thread(target=meets, daemon=True).start()
connection = doorbell.join(path)
signal.signal(signal.SIGUSR1, heard)
threading.Thread(target=interrupts, daemon=True).start()
subscriber = connection.subscribe(0)
publisher.publish(b"admitted")
print(subscriber.recv())
"""
    told = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=FOREVER).stdout
    assert told.splitlines() == [
        "this connection waits to be admitted already; subscribe again when it is",
        str((b"admitted", 0)),
    ]


def test_a_connection_is_of_use_while_one_thread_admits_its_peer(tmp_path: Path) -> None:
    """The admitting thread kept the connection and the interpreter locked, until the peer took logs from its socket."""
    lanes = max(400, int(Path("/proc/sys/net/core/wmem_default").read_text()) // 500)
    segment = doorbell.Segment(lanes=lanes, lane_capacity=64, eventfds=0)
    joined: list[doorbell.Connection] = []
    admitted: list[int] = []
    failed: list[Exception] = []
    with doorbell.Host(tmp_path / "meet") as host:
        joining = threading.Thread(target=lambda: joined.append(doorbell.join(tmp_path / "meet")))
        joining.start()
        connection = host.accept(segment, FOREVER)
        joining.join()
    assert connection is not None
    publisher = doorbell.Publisher(256)

    def admit() -> None:
        try:
            for lane in range(lanes):
                admitted.append(publisher.admit(connection, lane, "gap"))
        except Exception as error:
            failed.append(error)

    admitting = threading.Thread(target=admit)
    admitting.start()
    while not admitted and admitting.is_alive():
        time.sleep(0.01)
    # Far more than a socket takes that nobody reads from (a packet counts for 768 bytes at least): it comes to a halt.
    before = -1
    while len(admitted) != before:
        before = len(admitted)
        time.sleep(0.5)
    assert admitting.is_alive() and 0 < len(admitted) < lanes
    assert connection.peer is not None
    # Its end is the end of the admission too.
    joined[0].close()
    admitting.join(FOREVER)
    assert not admitting.is_alive()
    assert [type(error) for error in failed] == [doorbell.RendezvousError]


def test_async_for_runs_over_what_is_published_until_the_publisher_leaves() -> None:
    publisher = doorbell.Publisher(256)
    subscriber = publisher.subscribe()
    heard: list[tuple[bytes, int]] = []

    def publish() -> None:
        for number in range(MESSAGES):
            publisher.publish(str(number).encode(), FOREVER)
        publisher.close()

    async def run() -> None:
        async for message, missed in subscriber:
            heard.append((message, missed))

    publishing = threading.Thread(target=publish)
    publishing.start()
    asyncio.run(asyncio.wait_for(run(), FOREVER))
    publishing.join()
    assert heard == [(str(number).encode(), 0) for number in range(MESSAGES)]
    with pytest.raises(doorbell.Closed):
        subscriber.try_recv()
    subscriber.close()
    with pytest.raises(ValueError, match="closed"):
        subscriber.fileno()


def test_a_gather_takes_lanes_of_one_kind_alone(tmp_path: Path) -> None:
    ((process, connection),) = start(1)
    segment = doorbell.Segment(lanes=1)
    gather = doorbell.Gather()
    gather.add(connection, TO_PARENT)
    with pytest.raises(ValueError, match="make one for each"):
        gather.add(segment, 0)
    with pytest.raises(TypeError):
        gather.add(tmp_path, 0)  # type: ignore[arg-type]
    # The kind of the lanes it had says nothing once it has none.
    assert gather.remove(0)
    assert gather.add(segment, 0) == 0
    with pytest.raises(ValueError, match="make one for each"):
        gather.add(connection, TO_PARENT)
    segment.sender(0).send(b"from a thread")
    assert gather.recv(FOREVER) == (0, b"from a thread")
    # Nor does the kind of one that could not be added.
    fresh = doorbell.Gather()
    with pytest.raises(doorbell.RendezvousError, match="taken"):
        fresh.add(segment, 0)
    assert fresh.add(connection, TO_PARENT) == 0
    process.kill()
    process.wait()


def test_what_is_published_is_heard_by_every_process_in_order() -> None:
    publisher = doorbell.Publisher(4096)
    children = start(2)
    for number, (_, connection) in enumerate(children):
        assert publisher.admit(connection, FROM_PARENT) == number
        connection.close()
    local = publisher.subscribe("gap")
    assert publisher.subscribers == 3
    for number in range(MESSAGES):
        assert publisher.publish(str(number).encode(), FOREVER)
        assert local.recv(FOREVER) == (str(number).encode(), 0)
    with pytest.raises(ValueError, match="does not fit"):
        publisher.publish(bytes(publisher.longest + 1))
    publisher.close()
    # They check for themselves what they hear.
    for process, _ in children:
        assert process.wait(FOREVER) == 0
    assert list(local) == []
    with pytest.raises(ValueError, match="closed"):
        publisher.publish(b"")


def test_a_slow_subscriber_is_waited_for_or_dropped_or_misses_messages_as_chosen() -> None:
    with doorbell.Publisher(256) as publisher:
        holding = publisher.subscribe()
        sent = 0
        while publisher.publish(str(sent).encode(), 0):
            sent += 1
        assert 1 < sent < 20
        taker = threading.Timer(0.02, lambda: [holding.recv(FOREVER) for _ in range(sent)])
        taker.start()
        assert publisher.publish(b"last", FOREVER)
        taker.join()
        assert holding.recv(FOREVER) == (b"last", 0)
        assert holding.recv(0.01) is None
        holding.close()
        with pytest.raises(ValueError, match="closed"):
            holding.recv()

        dropped, missing = publisher.subscribe("drop"), publisher.subscribe("gap")
        for number in range(100):
            assert publisher.publish(str(number).encode(), FOREVER)
        assert publisher.ended() == [(0, "left"), (1, "dropped")]
        assert publisher.ended() == []
        with pytest.raises(doorbell.Dropped):
            for _ in dropped:
                pass
        received = missing.recv(FOREVER)
        assert received is not None
        assert received == (str(received[1]).encode(), received[1])
        assert received[1] > 50
        with pytest.raises(ValueError, match="hold back"):
            publisher.subscribe("sometimes")  # type: ignore[arg-type]


def main() -> None:
    """A child: sends its messages, and then hears what is published, if it is admitted at all."""
    connection = doorbell.inherit()
    sender = connection.sender(TO_PARENT)
    for number in range(MESSAGES):
        # What the parent does not take has room in the ring.
        sender.send(str(number).encode())
    subscriber = connection.subscribe(FROM_PARENT)
    heard = 0
    try:
        for message, missed in subscriber:
            assert (message, missed) == (str(heard).encode(), 0)
            heard += 1
    except doorbell.PeerGone:
        # It left and hung up at once: either may be told.
        pass
    assert heard == MESSAGES


if __name__ == "__main__":
    main()
