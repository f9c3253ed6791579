# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package promises of bells."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import doorbell

FOREVER = 60.0
"""Longer than any of these tests takes on the slowest machine: running into it is a hang."""


def test_a_ring_before_the_wait_is_heard_and_two_are_two() -> None:
    bell = doorbell.Bell()
    other = bell.clone()
    bell.ring()
    bell.ring()
    assert bell.wait(FOREVER) == 2
    assert bell.try_wait() == 0
    assert other.try_wait() == 2


def test_a_wait_without_a_ring_ends_with_nothing() -> None:
    bell = doorbell.Bell()
    assert bell.wait(0.01) == 0
    assert bell.wait(0) == 0
    assert bell.wait(-1) == 0
    with pytest.raises(ValueError, match="not a number"):
        bell.wait(float("nan"))


def test_other_threads_run_while_one_waits() -> None:
    bell = doorbell.Bell()
    heard: list[int] = []
    # If the wait held the interpreter's lock, this thread would run again only when it is over, with nothing heard.
    waiter = _waiter(bell, heard)
    bell.ring()
    waiter.join(FOREVER)
    assert heard == [1]


def _waiter(bell: doorbell.Bell, heard: list[int]) -> threading.Thread:
    """A thread that waits with `bell`, and later adds what it heard."""

    waiter = threading.Thread(target=lambda: heard.append(bell.wait(FOREVER)))
    waiter.start()
    while waiter.is_alive():
        if _waiting(bell):
            return waiter
        time.sleep(0.001)
    raise AssertionError(f"the wait was over before it was seen: {heard}")


def _waiting(bell: doorbell.Bell) -> bool:
    try:
        bell.counts()
    except doorbell.Error as error:
        assert "another thread is waiting" in str(error)
        return True
    return False


def test_threads_that_wait_with_one_handle_take_turns() -> None:
    bell = doorbell.Bell()
    heard: list[int] = []
    waiter = _waiter(bell, heard)
    assert bell.try_wait() == 0
    assert bell.wait(0.01) == 0, "its turn has not come"
    with pytest.raises(doorbell.Error, match="give each thread one of its own"):
        bell.clone()
    bell.ring()
    waiter.join(FOREVER)
    assert heard == [1]
    bell.ring()
    assert bell.wait(FOREVER) == 1


def test_any_of_several_bells_wakes() -> None:
    bells = [doorbell.Bell() for _ in range(5)]
    assert doorbell.wait_any(bells, 0.01) is None
    ringer = threading.Timer(0.02, bells[3].ring)
    ringer.start()
    assert doorbell.wait_any(bells, FOREVER) == 3
    assert bells[3].try_wait() == 1


def test_a_file_is_readable_from_the_ring_until_it_was_heard() -> None:
    bell = doorbell.Bell()
    file = bell.file()
    assert select.select([file], [], [], 0) == ([], [], [])
    bell.ring()
    bell.ring()
    assert select.select([file], [], [], FOREVER)[0] == [file]
    assert file.heard() == 2
    assert select.select([file], [], [], 0) == ([], [], [])
    with pytest.raises(doorbell.Error, match="eventfd slots"):
        bell.file()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.heard()
    bell.file().close()


def test_a_task_awaits_a_bell_and_another_runs_meanwhile() -> None:
    async def run() -> int:
        bell = doorbell.Bell()
        waiter = doorbell.AsyncBell(bell)
        asyncio.get_running_loop().call_later(0.01, bell.ring)
        heard = await asyncio.wait_for(waiter.wait(), FOREVER)
        # A cancelled wait takes nothing.
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiter.wait(), 0.01)
        threading.Timer(0.01, bell.ring).start()
        heard += await asyncio.wait_for(waiter.wait(), FOREVER)
        first = asyncio.ensure_future(waiter.wait())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await waiter.wait()
        bell.ring()
        return heard + await asyncio.wait_for(first, FOREVER)

    assert asyncio.run(run()) == 3


def test_an_async_bell_that_is_awaited_is_not_closed_and_one_whose_wait_was_cancelled_is() -> None:
    async def run() -> None:
        # One waiter slot: as long as it is held, nobody else gets one.
        bell = doorbell.Bell()
        waiter = doorbell.AsyncBell(bell)
        task = asyncio.ensure_future(waiter.wait())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="await its end"):
            waiter.close()
        # The refusal took nothing away from the wait.
        threading.Timer(0.01, bell.ring).start()
        assert await asyncio.wait_for(task, FOREVER) == 1

        task = asyncio.ensure_future(waiter.wait())
        await asyncio.sleep(0)
        task.cancel()
        # It has not heard of that yet, and would look for its file.
        with pytest.raises(RuntimeError, match="await its end"):
            waiter.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(doorbell.Error, match="eventfd slots"):
            doorbell.AsyncBell(bell)
        number = waiter._file.fileno()
        waiter.close()
        waiter.close()
        with pytest.raises(ValueError, match="closed"):
            await waiter.wait()
        # The loop has forgotten the file, whose number may be a stranger's next.
        assert not asyncio.get_running_loop().remove_reader(number)

        # It has heard what `bell` has, which is nothing yet.
        successor = doorbell.AsyncBell(bell)
        bell.ring()
        assert await asyncio.wait_for(successor.wait(), FOREVER) == 2
        successor.close()

    asyncio.run(run())


def test_an_async_bell_whose_wait_failed_can_be_closed() -> None:
    async def run() -> None:
        segment = doorbell.Segment()
        program = [sys.executable, "-c", "import doorbell, sys; connection = doorbell.inherit(); sys.stdin.read()"]
        child, connection = doorbell.start(program, segment, stdin=subprocess.PIPE)
        waiter = doorbell.AsyncBell(connection.bell(0))
        task = asyncio.ensure_future(waiter.wait())
        await asyncio.sleep(0)
        child.kill()
        with pytest.raises(doorbell.PeerGone):
            await asyncio.wait_for(task, FOREVER)
        waiter.close()
        child.communicate()

    asyncio.run(run())


def test_a_parent_and_a_forked_child_share_a_bell() -> None:
    bell = doorbell.Bell.for_children()
    answer = doorbell.Bell.for_children()
    childs, parents = bell.clone(), answer.clone()
    child = os.fork()
    if child == 0:
        heard = childs.wait(FOREVER)
        answer.ring()
        os._exit(heard)
    bell.ring()
    assert parents.wait(FOREVER) == 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.parametrize("what", ["bell.wait()", "doorbell.wait_any([bell, doorbell.Bell()])", "host.accept(segment)"])
def test_control_c_ends_a_wait(what: str, tmp_path: Path) -> None:
    program = f"""
import doorbell
bell = doorbell.Bell()
segment = doorbell.Segment()
host = doorbell.Host({str(tmp_path / "host")!r})
try:
    print("waiting", flush=True)
    {what}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "waiting\n"
        # Once, at whatever moment it comes: nothing depends on its hitting the sleep.
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=FOREVER)
        assert said == "interrupted\n"
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()


def test_a_signal_handler_runs_during_a_wait_which_then_goes_on() -> None:
    bell = doorbell.Bell()
    ran: list[int] = []

    def ring(number: int, _: object) -> None:
        ran.append(number)
        bell.ring()

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert bell.wait(FOREVER) == 1
        assert ran == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
