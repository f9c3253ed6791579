# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ends that several threads share, under load, and closing what another thread waits with."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doorbell

THREADS = 8
EACH = 500
FOREVER = 60.0


def in_threads(run: Callable[[int], object]) -> list[BaseException]:
    """Runs `run` in threads. What they raised."""
    raised: list[BaseException] = []

    def body(number: int) -> None:
        try:
            run(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_that_share_a_sender_wait_their_turn_while_there_is_no_room() -> None:
    """Of 4,000 sends 3,500 raised: whoever came while another waited for room was refused."""
    sender, receiver = doorbell.channel(4096)
    received: list[bytes] = []
    slow = threading.Thread(target=lambda: received.extend(receiver))
    slow.start()
    assert in_threads(lambda thread: [sender.send(bytes([thread]) * 200) for _ in range(EACH)]) == []
    sender.close()
    slow.join()
    assert sorted(received) == sorted(bytes([thread]) * 200 for thread in range(THREADS) for _ in range(EACH))


def test_threads_that_share_a_receiver_wait_their_turn_for_messages() -> None:
    sender, receiver = doorbell.channel(4096)
    received: list[bytes] = []
    feeder = threading.Thread(target=lambda: [sender.send(str(number).encode()) for number in range(THREADS * EACH)])
    feeder.start()

    def take(_: int) -> None:
        for _ in range(EACH):
            message = receiver.recv(FOREVER)
            assert message is not None
            received.append(message)

    assert in_threads(take) == []
    feeder.join()
    assert sorted(received) == sorted(str(number).encode() for number in range(THREADS * EACH))


def test_of_threads_that_wait_with_one_end_each_keeps_its_own_timeout() -> None:
    _sender, receiver = doorbell.channel()
    raised: list[BaseException] = []
    patient = threading.Thread(target=lambda: raised.extend(in_threads(lambda _: receiver.recv(FOREVER))))
    patient.start()
    assert receiver.recv(0.05) is None
    assert receiver.try_recv() is None
    receiver.close()
    patient.join()
    assert len(raised) == THREADS


def test_threads_that_write_in_place_at_one_sender_wait_their_turn() -> None:
    """A send while another thread had reserved room was refused."""
    sender, receiver = doorbell.channel(1 << 20)

    def send(thread: int) -> None:
        for number in range(EACH):
            if thread % 2:
                sender.send_object((thread, number))
            else:
                slot = sender.reserve(100)
                assert slot is not None
                with slot, memoryview(slot) as view:
                    view[:1] = bytes([thread])
                assert sender.send(b"!")

    received: list[bytes] = []
    reading = threading.Thread(target=lambda: received.extend(receiver))
    reading.start()
    assert in_threads(send) == []
    with pytest.raises(ValueError, match="still held"):
        with sender.reserve(10) as _slot:  # type: ignore[union-attr]
            sender.send(b"by the thread that has reserved")
    sender.close()
    reading.join()
    assert len(received) == THREADS // 2 * EACH * 3


def test_threads_that_look_at_messages_in_place_wait_their_turn() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=1 << 20)
    sender, receiver = segment.sender(0), segment.receiver(0)
    for number in range(THREADS * EACH):
        sender.send(str(number).encode())
    seen: list[bytes] = []

    def look(_: int) -> None:
        for _ in range(EACH):
            with receiver.recv_view() as view, memoryview(view) as bytes_of_it:  # type: ignore[union-attr]
                seen.append(bytes(bytes_of_it))

    assert in_threads(look) == []
    assert sorted(seen) == sorted(str(number).encode() for number in range(THREADS * EACH))


def a_sender_without_room() -> tuple[Callable[[], object], Callable[[], object], Any]:
    sender, receiver = doorbell.channel(256)
    sender.send(bytes(60))
    while sender.send(bytes(60), 0):
        pass
    return lambda: sender.send(bytes(60)), sender.close, receiver


def a_receiver() -> tuple[Callable[[], object], Callable[[], object], Any]:
    sender, receiver = doorbell.channel()
    return receiver.recv, receiver.close, sender


def a_view() -> tuple[Callable[[], object], Callable[[], object], Any]:
    segment = doorbell.Segment(lanes=1)
    sender, receiver = segment.sender(0), segment.receiver(0)
    return receiver.recv_view, receiver.close, sender


def a_receiver_of_several() -> tuple[Callable[[], object], Callable[[], object], Any]:
    sender, receiver = doorbell.channel(senders=3)
    return receiver.recv, receiver.close, sender


def a_subscriber() -> tuple[Callable[[], object], Callable[[], object], Any]:
    publisher = doorbell.Publisher(4096)
    subscriber = publisher.subscribe()
    return subscriber.recv, subscriber.close, publisher


def a_publisher_that_is_held_back() -> tuple[Callable[[], object], Callable[[], object], Any]:
    publisher = doorbell.Publisher(4096)
    subscriber = publisher.subscribe()
    while publisher.publish(bytes(100), 0):
        pass
    return lambda: publisher.publish(bytes(100)), publisher.close, subscriber


def a_service() -> tuple[Callable[[], object], Callable[[], object], Any]:
    import tempfile

    folder = tempfile.TemporaryDirectory()
    service = doorbell.listen(Path(folder.name) / "service")
    return service.recv, service.close, folder


ENDS = [a_sender_without_room, a_receiver, a_view, a_receiver_of_several, a_subscriber, a_publisher_that_is_held_back, a_service]


@pytest.mark.parametrize("end", ENDS)
def test_closing_an_end_ends_another_threads_wait_with_it(
    end: Callable[[], tuple[Callable[[], object], Callable[[], object], Any]],
) -> None:
    """It was refused while another thread waited."""
    wait, close, _kept = end()
    raised: list[BaseException] = []

    def waits() -> None:
        try:
            wait()
        except ValueError as error:
            raised.append(error)

    threads = [threading.Thread(target=waits) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[0].join(0.05)
    close()
    for thread in threads:
        thread.join()
    assert ["closed" in str(error) for error in raised] == [True] * 3


def test_clones_of_a_sender_have_a_ring_each_and_the_stream_ends_with_the_last() -> None:
    sender, receiver = doorbell.channel(4096, senders=THREADS)
    clones = [sender.clone() for _ in range(THREADS)]
    sender.close()

    def send(thread: int) -> None:
        with clones[thread] as clone:
            for number in range(EACH):
                clone.send(f"{thread} {number}".encode())

    sending = threading.Thread(target=lambda: in_threads(send))
    sending.start()
    received = list(receiver)
    sending.join()
    assert sorted(received) == sorted(f"{thread} {number}".encode() for thread in range(THREADS) for number in range(EACH))
    for thread in range(THREADS):
        own = [message for message in received if message.startswith(b"%d " % thread)]
        assert own == [f"{thread} {number}".encode() for number in range(EACH)]


AT_EXIT = """
import socket, tempfile, threading, doorbell
sender, receiver = doorbell.channel()
several = doorbell.channel(senders=2)
full, unread = doorbell.channel(256)
while full.send(bytes(60), 0):
    pass
bell, publisher = doorbell.Bell(), doorbell.Publisher(4096)
subscriber = publisher.subscribe()
folder = tempfile.mkdtemp()
service, other = doorbell.listen(folder + "/s"), doorbell.listen(folder + "/t")
host, segment = doorbell.Host(folder + "/h"), doorbell.Segment()
scheduler, steps = doorbell.broadcast(1)
stopped = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
stopped.bind(folder + "/stopped")
stopped.listen()
waits = [receiver.recv, several[1].recv, lambda: full.send(bytes(60)), bell.wait, subscriber.recv, service.recv,
    other.accept, lambda: host.accept(segment), lambda: doorbell.connect(folder + "/stopped", 60), scheduler.wait_for_workers,
    lambda: list(receiver), lambda: doorbell.Select().wait([doorbell.Bell()])]
for wait in waits:
    threading.Thread(target=wait, daemon=True).start()
threading.Event().wait(0.1)
print("ends")
"""


def test_daemon_threads_that_wait_at_the_interpreters_exit_say_nothing() -> None:
    """The end was closed under them, which was refused with a traceback."""
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=FOREVER)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ends\n", "")
