# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ends of channels that nobody ever uses."""

import gc
import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import doorbell

FOREVER = 60.0
STARTS = multiprocessing.get_all_start_methods()


def messages(receiver: doorbell.ChannelReceiver) -> list[bytes]:
    """All that is received. Fails, and does not hang, if its end is never told."""
    received: list[list[bytes]] = []
    thread = threading.Thread(target=lambda: received.append(list(receiver)), daemon=True)
    thread.start()
    thread.join(FOREVER)
    assert received, "the end of the stream was not told"
    return received[0]


def enter_and_leave(sender: doorbell.ChannelSender) -> None:
    with sender:
        pass


def close(sender: doorbell.ChannelSender) -> None:
    sender.close()


@pytest.mark.parametrize("senders", [1, 3])
@pytest.mark.parametrize("leave", [enter_and_leave, close])
def test_a_sender_that_is_closed_before_its_first_use_ends_the_stream(
    leave: Callable[[doorbell.ChannelSender], None], senders: int
) -> None:
    sender, receiver = doorbell.channel(senders=senders)
    leave(sender)
    assert messages(receiver) == []


def test_a_sender_that_is_collected_before_its_first_use_ends_the_stream() -> None:
    sender, receiver = doorbell.channel()
    del sender
    assert messages(receiver) == []


def test_one_who_waits_already_hears_that_the_unused_sender_was_closed() -> None:
    sender, receiver = doorbell.channel()
    threading.Timer(0.05, sender.close).start()
    assert messages(receiver) == []


def test_places_that_nobody_takes_do_not_keep_the_stream_open() -> None:
    sender, receiver = doorbell.channel(senders=8)
    sender.send(b"one of eight")
    sender.close()
    assert messages(receiver) == [b"one of eight"]


def test_a_receiver_that_is_closed_before_its_first_use_is_told_to_senders() -> None:
    sender, receiver = doorbell.channel(256)
    receiver.close()
    with pytest.raises(doorbell.Closed):
        while True:
            sender.send(bytes(60), FOREVER)


@pytest.mark.parametrize("senders", [1, 3])
def test_an_end_that_was_closed_is_not_taken_anew(senders: int) -> None:
    """A thread between two receives took it anew, and waited for ever."""
    sender, receiver = doorbell.channel(senders=senders)
    assert sender.send(b"before") and receiver.recv(FOREVER) == b"before"
    receiver.close()
    with pytest.raises(ValueError, match="closed"):
        receiver.recv(FOREVER)
    sender.close()
    with pytest.raises(ValueError, match="closed"):
        sender.send(b"behind")


def end_at_once() -> None:
    os._exit(3)


class DiesWhenItComes:
    """Unpickling it ends the process: as a module that cannot be imported."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return end_at_once, ()


def never(sender: doorbell.ChannelSender, dies: object = None) -> None:
    """A child that does not use its end."""


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("child", [enter_and_leave, close, never])
def test_a_child_that_does_not_use_its_end_ends_the_stream(start: str, child: Callable[..., None]) -> None:
    sender, receiver = doorbell.channel()
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=child, args=(sender,))
    process.start()
    # As with a pipe: the parent's own copy counts.
    sender.close()
    assert messages(receiver) == []
    process.join(FOREVER)
    assert process.exitcode == 0


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_child_that_dies_before_it_has_its_end_is_told_to_who_kept_a_copy(start: str) -> None:
    sender, receiver = doorbell.channel()
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=never, args=(sender, DiesWhenItComes()))
    process.start()
    assert messages(receiver) == []
    process.join(FOREVER)
    assert sender is not None


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_one_who_waits_already_hears_that_a_child_died_before_it_had_its_end(start: str) -> None:
    """Who had begun to wait before the child was started waited for ever."""
    sender, receiver = doorbell.channel()
    assert receiver.try_recv() is None
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=never, args=(sender, DiesWhenItComes()))
    threading.Timer(0.1, process.start).start()
    assert messages(receiver) == []
    assert sender is not None


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_who_could_start_no_thread_for_a_child_hears_of_the_end_of_the_next(
    start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first child counted for ever as one that is being started."""
    sender, receiver = doorbell.channel()
    assert receiver.try_recv() is None
    context: Any = multiprocessing.get_context(start)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="new thread") as failed:
        patched.setattr(threading.Thread, "start", no_thread)
        context.Process(target=never, args=(sender,)).start()
    context.Process(target=never, args=(sender,)).start()
    assert messages(receiver) == []
    # What was to start the first is in the traceback.
    assert failed.tb is not None


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_an_end_that_was_for_a_child_that_could_not_be_started_is_of_use(start: str) -> None:
    """It counted as given away."""
    sender, receiver = doorbell.channel()
    assert receiver.try_recv() is None
    context: Any = multiprocessing.get_context(start)
    with pytest.raises(Exception, match="pickle") as failed:
        context.Process(target=never, args=(sender, lambda: None)).start()
    del failed
    gc.collect()
    for thread in threading.enumerate():
        if "_await_start" in thread.name:
            thread.join(FOREVER)
    process = context.Process(target=sender.send, args=(b"from the child",))
    process.start()
    assert messages(receiver) == [b"from the child"]


def test_an_end_is_free_that_could_not_be_taken_for_want_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken, and did not hear that nobody was left at the other side."""
    sender, receiver = doorbell.channel()
    multiprocessing.get_context("fork").Process(target=os.getpid).start()
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="new thread"):
        patched.setattr(doorbell.ChannelReceiver, "_hear", no_thread)
        receiver.try_recv()
    threading.Timer(0.05, sender.close).start()
    assert messages(receiver) == []


def test_a_forked_child_that_takes_an_end_hears_that_nobody_is_left() -> None:
    """What its parent had asked to be told, the parent was told."""
    sender, receiver = doorbell.channel()
    assert receiver.try_recv() is None
    context = multiprocessing.get_context("fork")
    # The parent has asked once another process may have a copy.
    first = context.Process(target=os.getpid)
    first.start()
    first.join()
    left, leaves = context.Pipe()

    def take() -> None:
        sender.close()
        left.recv()
        assert messages(receiver) == []

    child = context.Process(target=take)
    child.start()
    receiver.close()
    leaves.send("it is free")
    sender.close()
    child.join(FOREVER)
    assert child.exitcode == 0


@pytest.mark.parametrize("start", STARTS)
def test_the_end_that_a_child_is_to_use_is_not_over_before_it_comes(start: str) -> None:
    sender, receiver = doorbell.channel()
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=sender.send, args=(b"from the child",))
    process.start()
    sender.close()
    assert messages(receiver) == [b"from the child"]
    process.join(FOREVER)
