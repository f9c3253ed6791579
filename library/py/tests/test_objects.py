# SPDX-License-Identifier: MIT OR Apache-2.0
"""Objects as messages, to one process and to many."""

import dataclasses
import multiprocessing
import os
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import doorbell

FOREVER = 60.0
STARTS = multiprocessing.get_all_start_methods()


@dataclasses.dataclass
class Step:
    number: int
    name: str
    tokens: Any


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Step):
        return (one.number, one.name) == (other.number, other.name) and same(one.tokens, other.tokens)
    if isinstance(one, numpy.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return bool(one == other)


OBJECTS: list[Any] = [
    None,
    {"step": 1, "of": [1, 2.5, "three"]},
    re.compile("a+"),
    Step(7, "seven", numpy.arange(20_000)),
    Step(8, "few", numpy.arange(3)),
    Step(9, "strided", numpy.arange(40_000).reshape(200, 200)[:, ::2]),
    numpy.zeros((0, 4)),
    numpy.array(["words", None], dtype=object),
]


@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_an_object_arrives_as_it_was(number: int) -> None:
    sender, receiver = doorbell.channel(1 << 20)
    assert sender.send_object(OBJECTS[number])
    assert same(OBJECTS[number], receiver.recv_object(FOREVER))


def test_the_size_of_a_queue_is_what_lies_in_it() -> None:
    sender, receiver = doorbell.channel(senders=2)
    assert receiver.qsize() == sender.qsize() == 0
    for number in range(5):
        sender.send_object(number)
    assert receiver.qsize() == sender.qsize() == 5
    assert [receiver.recv_object() for _ in range(5)] == list(range(5))
    assert receiver.try_recv() is None
    assert receiver.qsize() == 0


def test_large_arrays_lie_in_the_message_and_not_in_the_pickle() -> None:
    sender, receiver = doorbell.channel(1 << 20)
    sender.send_object([numpy.arange(10_000), numpy.arange(5_000, dtype="f4")])
    first, second = receiver.recv_object()
    assert not first.flags.owndata and not first.flags.writeable
    assert second.flags.aligned and same(second, numpy.arange(5_000, dtype="f4"))
    with pytest.raises(TimeoutError):
        receiver.recv_object(0.0)
    with pytest.raises(ValueError, match="does not fit"):
        sender.send_object(numpy.zeros(1 << 20))


def test_tensors_arrive_as_they_were() -> None:
    torch = pytest.importorskip("torch")
    sender, receiver = doorbell.channel(1 << 20)
    for tensor in (torch.arange(5_000), torch.ones(4, 4).bfloat16(), torch.zeros(0), torch.ones(100, 100)[:, ::2]):
        sender.send_object(tensor)
        assert torch.equal(receiver.recv_object(), tensor)


def work(steps: doorbell.BroadcastReceiver, results: doorbell.ChannelSender) -> None:
    with results:
        while (step := steps.recv_object(FOREVER)) is not None:
            results.send_object(Step(step.number, "done", step.tokens.sum()))


@pytest.mark.parametrize("start", STARTS)
def test_every_worker_gets_every_step(start: str) -> None:
    workers, count = 3, 40
    scheduler, steps = doorbell.broadcast(workers)
    sender, results = doorbell.channel(senders=workers)
    context: Any = multiprocessing.get_context(start)
    processes = [context.Process(target=work, args=(each, sender)) for each in steps]
    for process in processes:
        process.start()
    sender.close()
    with scheduler:
        for number in range(count):
            assert scheduler.send_object(Step(number, "step", numpy.full(3000, number)))
        assert scheduler.send_object(None)
        done = sorted((step.number, int(step.tokens)) for step in map(load, results))
    assert done == sorted((number, 3000 * number) for number in range(count) for _ in range(workers))
    for process in processes:
        process.join(FOREVER)
        assert process.exitcode == 0
    with pytest.raises(ValueError, match="closed"):
        scheduler.send(b"")


def load(message: bytes) -> Any:
    from doorbell.objects import load

    return load(message)


def hear_one(steps: doorbell.BroadcastReceiver) -> None:
    steps.recv(FOREVER)


def test_a_worker_that_has_gone_holds_nobody_back() -> None:
    scheduler, (stays, goes) = doorbell.broadcast(2, 1 << 14)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=hear_one, args=(goes,))
    process.start()
    stayed: list[bytes] = []
    stay = threading.Thread(target=lambda: stayed.extend(stays))
    stay.start()
    for _ in range(200):
        assert scheduler.send(bytes(1000), FOREVER)
    process.join(FOREVER)
    assert process.exitcode == 0
    assert [how for _, how in scheduler.ended()] in (["left"], ["gone"])
    scheduler.close()
    stay.join(FOREVER)
    assert stayed == [bytes(1000)] * 200


def test_a_worker_that_never_comes_is_told_of() -> None:
    scheduler, _steps = doorbell.broadcast(1)
    assert not scheduler.wait_for_workers(0.05)
    scheduler.close()


def test_a_worker_that_is_closed_before_its_first_use_is_not_waited_for() -> None:
    """The first message waited for it for five minutes, and failed."""
    scheduler, (closed, collected, stays) = doorbell.broadcast(3)
    closed.close()
    del collected
    heard: list[bytes] = []
    hearing = threading.Thread(target=lambda: heard.extend(stays))
    hearing.start()
    assert scheduler.send(b"step", FOREVER)
    assert sorted(scheduler.ended()) == [(0, "never came"), (1, "never came")]
    scheduler.close()
    hearing.join(FOREVER)
    assert heard == [b"step"]


def end_at_once() -> None:
    os._exit(3)


class DiesWhenItComes:
    """Unpickling it ends the process: as a module that cannot be imported."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return end_at_once, ()


def never(steps: doorbell.BroadcastReceiver, dies: object) -> None:
    """A worker that does not come so far."""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_worker_that_dies_before_it_has_its_end_is_not_waited_for(start: str) -> None:
    scheduler, steps = doorbell.broadcast(1)
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=never, args=(steps[0], DiesWhenItComes()))
    process.start()
    assert scheduler.send(b"step", FOREVER)
    assert scheduler.ended() == [(0, "never came")]
    process.join(FOREVER)
    scheduler.close()


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_worker_that_dies_is_not_waited_for_though_one_before_could_not_be_started(start: str) -> None:
    """The first one counted for ever as one that is being started."""
    scheduler, steps = doorbell.broadcast(1)
    context: Any = multiprocessing.get_context(start)
    with pytest.raises(Exception, match="pickle") as failed:
        context.Process(target=never, args=(steps[0], lambda: None)).start()
    context.Process(target=never, args=(steps[0], DiesWhenItComes())).start()
    assert scheduler.send(b"step", FOREVER)
    assert scheduler.ended() == [(0, "never came")]
    # What was to start the first is in the traceback.
    assert failed.tb is not None
    scheduler.close()


def leave(scheduler: doorbell.BroadcastSender) -> None:
    scheduler.close()


def drop(scheduler: doorbell.BroadcastSender) -> None:
    pass


@pytest.mark.parametrize("end", [leave, drop])
def test_a_worker_hears_of_a_scheduler_that_left_before_it_came(end: Callable[[doorbell.BroadcastSender], None]) -> None:
    """It was told that nobody listens at a path of which it knew nothing; and a folder stayed behind."""
    scheduler, (steps,) = doorbell.broadcast(1)
    folder = scheduler._folder
    end(scheduler)
    del scheduler
    assert list(steps) == []
    assert not os.path.exists(folder)


def test_the_first_message_waits_for_workers_no_longer_than_it_may() -> None:
    """It waited for minutes, and raised."""
    scheduler, _steps = doorbell.broadcast(2)
    assert not scheduler.send(b"step", 0.05)
    assert not scheduler.send_object("step", 0.05)
    scheduler.close()


@pytest.mark.parametrize("lengths", [[0.004] * 30, [0.002, 0.02] * 12, [0.003] * 10 + [0.0] * 20 + [0.003] * 10])
def test_a_worker_that_expects_the_next_step_misses_none_whatever_the_pace(lengths: list[float]) -> None:
    import time

    scheduler, (steps,) = doorbell.broadcast(1)

    def send() -> None:
        for number, length in enumerate(lengths):
            time.sleep(length)
            scheduler.send(number.to_bytes(4, "little"))
        scheduler.close()

    sending: Callable[[], None] = send
    thread = threading.Thread(target=sending)
    thread.start()
    heard = [int.from_bytes(message, "little") for message in steps]
    thread.join()
    assert heard == list(range(len(lengths)))
