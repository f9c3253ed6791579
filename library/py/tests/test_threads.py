# SPDX-License-Identifier: MIT OR Apache-2.0
"""Handles that several threads use at once, with the interpreter's lock and without (free-threaded CPython)."""

import sys
import sysconfig
import threading
from collections.abc import Callable

import pytest

import doorbell

THREADS = 4
EACH = 3000


def in_threads(run: Callable[[int], object]) -> None:
    """Runs `run` in threads that begin together, and raises what one of them raised."""
    begin = threading.Barrier(THREADS)
    raised: list[BaseException] = []

    def body(number: int) -> None:
        try:
            begin.wait()
            run(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def message(thread: int, number: int) -> bytes:
    return thread.to_bytes(4, "little") + number.to_bytes(4, "little")


def assert_all_came_in_the_order_of_each(received: list[bytes]) -> None:
    for thread in range(THREADS):
        of_thread = [one for one in received if one[:4] == thread.to_bytes(4, "little")]
        assert of_thread == [message(thread, number) for number in range(EACH)]


def test_the_interpreters_lock_stays_off_where_it_is() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this interpreter has a lock")
    assert not getattr(sys, "_is_gil_enabled")()


def test_threads_that_share_a_sender_and_never_wait_lose_nothing_and_are_never_refused() -> None:
    sender, receiver = doorbell.channel(1 << 20)
    in_threads(lambda thread: [sender.send(message(thread, number)) for number in range(EACH)])
    received = [receiver.try_recv() for _ in range(THREADS * EACH)]
    assert_all_came_in_the_order_of_each([one for one in received if one is not None])
    assert receiver.try_recv() is None


def test_threads_that_share_a_receiver_get_each_message_once() -> None:
    sender, receiver = doorbell.channel(1 << 20)
    for thread in range(THREADS):
        for number in range(EACH):
            sender.send(message(thread, number))
    received: list[list[bytes]] = [[] for _ in range(THREADS)]

    def receive(thread: int) -> None:
        while (one := receiver.try_recv()) is not None:
            received[thread].append(one)

    in_threads(receive)
    together = sorted(one for of_thread in received for one in of_thread)
    assert together == sorted(message(thread, number) for thread in range(THREADS) for number in range(EACH))


def test_rings_of_all_threads_are_heard_by_all_who_share_a_handle() -> None:
    bell = doorbell.Bell()
    heard = [0] * THREADS

    def ring_and_look(thread: int) -> None:
        for _ in range(EACH):
            bell.ring()
            heard[thread] += bell.try_wait()

    in_threads(ring_and_look)
    assert sum(heard) + bell.try_wait() == THREADS * EACH


def test_a_thread_that_waits_has_the_handle_to_itself() -> None:
    bell = doorbell.Bell()
    ringer = bell.clone()
    waiting = threading.Thread(target=bell.wait)
    waiting.start()
    with pytest.raises(doorbell.Error, match="another thread is waiting"):
        while True:
            # Before it waits, and after, this is answered.
            bell.counts()
    assert bell.try_wait() == 0
    ringer.ring()
    waiting.join()


def test_of_threads_that_reserve_at_one_sender_one_does_at_a_time() -> None:
    sender, receiver = doorbell.channel(1 << 20)

    def send_in_place(thread: int) -> None:
        for number in range(EACH // 10):
            while True:
                try:
                    slot = sender.reserve(8)
                    break
                except (ValueError, doorbell.Error):
                    # Another has reserved, or is about to.
                    continue
            assert slot is not None
            with memoryview(slot) as view:
                view[:] = message(thread, number)
            slot.commit()

    in_threads(send_in_place)
    received = [receiver.try_recv() for _ in range(THREADS * (EACH // 10))]
    assert sorted(one for one in received if one is not None) == sorted(
        message(thread, number) for thread in range(THREADS) for number in range(EACH // 10)
    )
