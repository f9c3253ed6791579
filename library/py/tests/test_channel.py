# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package promises of channels."""

import array
import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import numpy
import pytest

import doorbell

T = TypeVar("T")

FOREVER = 60.0
REQUESTS, ANSWERS = 0, 1


def answer(path: str) -> None:
    """The other process: sends each message back, reversed."""
    with doorbell.join(path) as connection, connection.sender(ANSWERS) as answers, connection.receiver(REQUESTS) as requests:
        for message in requests:
            answers.send(bytes(reversed(message)))


def start_answering(path: Path) -> tuple[multiprocessing.process.BaseProcess, doorbell.Connection]:
    segment = doorbell.Segment(lanes=2)
    with doorbell.Host(path) as host:
        child = multiprocessing.get_context("spawn").Process(target=answer, args=(str(path),))
        child.start()
        connection = host.accept(segment, FOREVER)
        assert connection is not None
        return child, connection


def test_two_processes_have_a_conversation(tmp_path: Path) -> None:
    child, connection = start_answering(tmp_path / "lanes")
    requests, answers = connection.sender(REQUESTS), connection.receiver(ANSWERS)
    for message in (b"first", b"", bytes(range(256)) * 60):
        assert requests.send(message)
        assert answers.recv(FOREVER) == message[::-1]
    with pytest.raises(doorbell.RendezvousError, match="taken"):
        connection.sender(REQUESTS)
    with pytest.raises(doorbell.RendezvousError, match="no lane 2"):
        connection.sender(2)
    with pytest.raises(ValueError, match="does not fit"):
        requests.send(bytes(requests.longest + 1))
    requests.close()
    with pytest.raises(ValueError, match="closed"):
        requests.send(b"")
    child.join(FOREVER)
    assert child.exitcode == 0
    with pytest.raises((doorbell.Closed, doorbell.PeerGone)):
        answers.recv(FOREVER)


def test_async_for_runs_over_the_messages_of_another_process_until_it_leaves(tmp_path: Path) -> None:
    child, connection = start_answering(tmp_path / "lanes")
    requests, answers = connection.sender(REQUESTS), connection.receiver(ANSWERS)

    async def run() -> list[bytes]:
        heard = []
        await asyncio.get_running_loop().run_in_executor(None, requests.send, b"12")
        try:
            async for message in answers:
                heard.append(message)
                if len(heard) < 3:
                    requests.send(message + b"3")
                else:
                    requests.close()
        except doorbell.PeerGone:
            # It left the lane and hung up at once: either may be told.
            assert len(heard) == 3
        return heard

    try:
        assert asyncio.run(asyncio.wait_for(run(), FOREVER)) == [b"21", b"312", b"3213"]
    finally:
        child.kill()
        child.join()


async def awaiting(receiving: Awaitable[T]) -> "asyncio.Future[T]":
    task = asyncio.ensure_future(receiving)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def test_a_receiver_is_awaited_by_one_task_at_a_time_which_closing_it_ends() -> None:
    """A second task took the file's news from the first, and one that awaited a closed receiver did so for ever."""
    segment = doorbell.Segment(lanes=1, lane_capacity=256)
    sender, receiver = segment.sender(0), segment.receiver(0)

    async def run() -> None:
        messages = receiver.__aiter__()
        task = await awaiting(messages.recv())
        with pytest.raises(doorbell.Error, match="another task awaits"):
            await messages.recv()
        with pytest.raises(doorbell.Error, match="another task awaits"):
            await receiver.__aiter__().recv()
        sender.send(b"to the first")
        assert await asyncio.wait_for(task, FOREVER) == b"to the first"

        # Nothing is lost by cancelling it.
        task = await awaiting(messages.recv())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        sender.send(b"to the next")
        assert await asyncio.wait_for(messages.recv(), FOREVER) == b"to the next"

        # Whoever gets the descriptor of the closed receiver keeps its own reader.
        task = await awaiting(messages.recv())
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, receiver.close)
        mine, theirs = os.pipe()
        strangers = [mine, *(os.dup(mine) for _ in range(16))]
        heard = asyncio.Event()
        for file in strangers:
            loop.add_reader(file, heard.set)
        with pytest.raises(ValueError, match="closed"):
            await asyncio.wait_for(task, FOREVER)
        os.write(theirs, b"!")
        await asyncio.wait_for(heard.wait(), FOREVER)
        for file in strangers:
            loop.remove_reader(file)
        for file in [*strangers, theirs]:
            os.close(file)
        with pytest.raises(ValueError, match="closed"):
            await messages.recv()

    asyncio.run(run())


def test_all_that_one_who_is_killed_had_sent_is_received() -> None:
    segment = doorbell.Segment(lanes=1)
    process, connection = doorbell.start([sys.executable, __file__], segment)
    receiver = connection.receiver(0)
    for number in range(100):
        assert receiver.recv(FOREVER) == str(number).encode()
    threading.Timer(0.05, process.kill).start()
    with pytest.raises(doorbell.PeerGone, match=f"process {process.pid}"):
        receiver.recv(FOREVER)
    process.wait()


def test_a_send_without_room_waits_for_it_or_for_its_timeout() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=4096)
    sender, receiver = segment.sender(0), segment.receiver(0)
    sent = 0
    while sender.send(b"x" * 1000, 0):
        sent += 1
    assert 1 <= sent <= 4
    assert not sender.send(b"x" * 1000, 0.01)
    taker = threading.Timer(0.02, lambda: [receiver.recv() for _ in range(sent)])
    taker.start()
    assert sender.send(b"y", FOREVER)
    taker.join()
    assert receiver.recv(FOREVER) == b"y"
    assert receiver.recv(0.01) is None
    assert receiver.try_recv() is None


def test_a_view_is_the_message_itself_until_it_is_released() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=4096)
    sender, receiver = segment.sender(0), segment.receiver(0)
    sender.send(b"in place")
    view = receiver.recv_view(FOREVER)
    assert view is not None and len(view) == 8
    memory = memoryview(view)
    assert memory.readonly and bytes(memory) == b"in place"
    with pytest.raises(ValueError, match="release it first"):
        receiver.recv(0)
    with pytest.raises(ValueError, match="release it first"):
        receiver.close()
    with pytest.raises(BufferError, match="1 memoryviews"):
        view.release()
    part = memory[3:]
    memory.release()
    with pytest.raises(BufferError):
        view.release()
    assert part.tobytes() == b"place"
    part.release()
    view.release()
    view.release()
    with pytest.raises(ValueError, match="released"):
        memoryview(view)

    # One that nobody keeps is released with its last memoryview.
    sender.send(b"another")
    memory = memoryview(receiver.recv_view(FOREVER))  # type: ignore[arg-type]
    assert memory.tobytes() == b"another"
    del memory
    sender.send(b"last")
    assert receiver.recv(FOREVER) == b"last"
    assert receiver.recv_view(0.01) is None
    sender.close()
    with pytest.raises(doorbell.Closed):
        receiver.recv_view(FOREVER)
    assert list(receiver) == []


def test_a_slot_is_the_message_itself_until_it_is_sent() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=4096)
    sender, receiver = segment.sender(0), segment.receiver(0)
    with sender.reserve(8, FOREVER) or pytest.fail() as slot:
        memory = memoryview(slot)
        assert not memory.readonly and len(slot) == 8
        memory[:] = b"in place"
        with pytest.raises(ValueError, match="commit or release it first"):
            sender.send(b"another")
        with pytest.raises(ValueError, match="commit or release it first"):
            sender.close()
        with pytest.raises(BufferError, match="1 memoryviews"):
            slot.commit()
        assert receiver.try_recv() is None
        memory.release()
    assert receiver.recv(FOREVER) == b"in place"
    slot.commit()
    slot.release()
    assert receiver.try_recv() is None

    # Less than was reserved, nothing of it, and more.
    slot = sender.reserve(100, FOREVER) or pytest.fail()
    with pytest.raises(ValueError, match="100 bytes, and not 101"):
        slot.commit(101)
    memoryview(slot)[:5] = b"short"
    slot.commit(5)
    assert receiver.recv(FOREVER) == b"short"
    with pytest.raises(KeyError), sender.reserve(8, FOREVER) or pytest.fail():
        raise KeyError
    sender.reserve(8, FOREVER)
    assert sender.send(b"next", FOREVER)
    assert receiver.recv(FOREVER) == b"next"
    while sender.try_send(b"x" * 1000):
        pass
    assert sender.reserve(1000, 0.01) is None


def test_a_forked_child_does_not_send_what_its_parent_reserved() -> None:
    tx, rx = doorbell.channel(4096)
    slot = tx.reserve(6) or pytest.fail()
    memoryview(slot)[:] = b"parent"
    child = os.fork()
    if child == 0:
        try:
            slot.commit()
        except doorbell.Error:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    slot.commit()
    assert rx.recv(FOREVER) == b"parent"


def test_arrays_of_any_type_are_sent_as_their_bytes() -> None:
    tx, rx = doorbell.channel(4096)
    numbers = array.array("d", [0.5, 2.0, -1.0])
    tx.send(numbers)
    assert rx.recv(FOREVER) == numbers.tobytes()
    table = memoryview(bytes(range(24))).cast("H", [3, 4])
    assert tx.send_batch([table, numbers]) == 2
    assert rx.recv(FOREVER) == bytes(range(24))
    assert rx.recv(FOREVER) == numbers.tobytes()
    # They may lie apart.
    tx.send(memoryview(b"abcdef")[::2])
    assert rx.recv(FOREVER) == b"ace"
    tx.send(memoryview(numbers)[::2])
    assert rx.recv(FOREVER) == array.array("d", [0.5, -1.0]).tobytes()


def test_numpy_reads_and_writes_messages_where_they_lie() -> None:
    values = numpy.arange(1000, dtype="f8")
    segment = doorbell.Segment(lanes=1, lane_capacity=1 << 16)
    sender, receiver = segment.sender(0), segment.receiver(0)
    # Before 3.12 numpy's stubs do not know that there are buffers.
    sender.send(values.reshape(10, 100))  # type: ignore[arg-type]
    with sender.reserve(values.nbytes, FOREVER) or pytest.fail() as slot:
        numpy.multiply(values, 2, out=numpy.frombuffer(slot, dtype="f8"))  # type: ignore[call-overload]
    for factor in (1, 2):
        with receiver.recv_view(FOREVER) or pytest.fail() as view:
            assert (numpy.frombuffer(view, dtype="f8") == values * factor).all()  # type: ignore[call-overload]


def test_control_c_ends_a_receive() -> None:
    program = """
import doorbell
segment = doorbell.Segment(lanes=1)
sender, receiver = segment.sender(0), segment.receiver(0)
try:
    print("waiting", flush=True)
    receiver.recv()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(2)
        assert child.communicate(timeout=FOREVER)[0] == "interrupted\n"
    finally:
        child.kill()
        child.wait()


def meet_in_this_process(path: Path, segment: doorbell.Segment) -> tuple[doorbell.Connection, doorbell.Connection]:
    with doorbell.Host(path) as host:
        joined: list[doorbell.Connection] = []
        joining = threading.Thread(target=lambda: joined.append(doorbell.join(path)))
        joining.start()
        connection = host.accept(segment, FOREVER)
        joining.join()
        assert connection is not None
        return connection, joined[0]


def test_who_trusts_and_who_does_not_share_no_segment(tmp_path: Path) -> None:
    segment = doorbell.Segment(lanes=1)
    _connection, joined = meet_in_this_process(tmp_path / "distrust", segment)
    with pytest.raises(doorbell.Untrusted):
        segment.sender(0)
    with pytest.raises(doorbell.Untrusted):
        joined.segment.receiver(0)
    lent = doorbell.Segment(lanes=1)
    sender = lent.sender(0)
    with doorbell.Host(tmp_path / "lent") as host:
        refused: list[BaseException] = []

        def join() -> None:
            try:
                doorbell.join(tmp_path / "lent")
            except doorbell.RendezvousError as error:
                refused.append(error)

        joining = threading.Thread(target=join)
        joining.start()
        with pytest.raises(doorbell.Lent):
            host.accept(lent, FOREVER)
        joining.join()
        assert len(refused) == 1, "the memory was not sent"
    sender.close()


def test_an_end_keeps_the_connection_of_a_connection_that_was_closed(tmp_path: Path) -> None:
    connection, joined = meet_in_this_process(tmp_path / "keep", doorbell.Segment(lanes=1))
    sender, receiver = joined.sender(0), connection.receiver(0)
    segment = joined.segment
    joined.close()
    sender.send(b"still here")
    assert receiver.recv(FOREVER) == b"still here"
    sender.close()
    with pytest.raises(doorbell.Closed):
        receiver.recv(FOREVER)
    with pytest.raises(doorbell.HungUp):
        segment.receiver(0)


def test_a_batch_arrives_whole_and_says_how_much_of_it_there_was_room_for() -> None:
    segment = doorbell.Segment(lanes=1, lane_capacity=4096)
    sender, receiver = segment.sender(0), segment.receiver(0)
    assert sender.send_batch([b"one", bytearray(b"two"), memoryview(b"")], FOREVER) == 3
    assert [receiver.recv(FOREVER) for _ in range(3)] == [b"one", b"two", b""]
    sent = sender.send_batch([b"x" * 1000] * 10, 0.01)
    assert 1 <= sent <= 4
    taken = 0
    while receiver.try_recv() is not None:
        taken += 1
    assert taken == sent
    # More than fits at once, with one who takes.
    taker = threading.Thread(target=lambda: [receiver.recv(FOREVER) for _ in range(20)])
    taker.start()
    assert sender.send_batch([b"y" * 1000] * 20, FOREVER) == 20
    taker.join()
    with pytest.raises(ValueError, match="does not fit"):
        sender.send_batch([b"before", b"z" * 5000])
    assert receiver.recv(FOREVER) == b"before"


if __name__ == "__main__":
    connection = doorbell.inherit()
    sender = connection.sender(0)
    for number in range(100):
        sender.send(str(number).encode())
    doorbell.Bell().wait()
