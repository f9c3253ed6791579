# SPDX-License-Identifier: MIT OR Apache-2.0
"""Waiting for a GPU, on a driver made for tests, which is none. It is opened once in a process, so a process of its own runs each test."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "doorbell/tests/gpu/driver.c"

BENCH = """
import asyncio, ctypes, os, select
from doorbell import Error, gpu
cuda = ctypes.CDLL(os.environ["DOORBELL_CUDA_LIBRARY"])

class Event:
    # As torch.cuda.Event has it.
    def __init__(self, ns):
        self.memory = (ctypes.c_uint64 * 3)()
        context, stream, event, work = (ctypes.c_void_p() for _ in range(4))
        base = ctypes.addressof(self.memory)
        cuda.cuCtxGetCurrent(ctypes.byref(context))
        if not context:
            cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            cuda.cuCtxSetCurrent(context)
        assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert cuda.cuEventCreate(ctypes.byref(event), 2) == 0
        cuda.cuModuleGetFunction(ctypes.byref(work), None, b"work")
        words = [ctypes.c_uint64(ns), ctypes.c_uint64(base), ctypes.c_uint64(base + 16), ctypes.c_uint32(1)]
        pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(word) for word in words])
        one = ctypes.c_uint(1)
        assert cuda.cuLaunchKernel(work, one, one, one, one, one, one, 0, stream, pointers, None) == 0
        assert cuda.cuEventRecord(event, stream) == 0
        self.cuda_event = event.value

    def is_over(self):
        return self.memory[1] != 0
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("driver") / "libcuda-made-for-tests.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", file, SOURCE], check=True)
    return file


def run(driver: Path, program: str, script: str = "") -> None:
    """Runs `program` on a driver that does what `script` says."""
    text = BENCH + textwrap.dedent(program)
    environment = {**os.environ, "DOORBELL_CUDA_LIBRARY": str(driver), "DOORBELL_TEST_DRIVER": script}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_wait_ends_with_the_kernel_and_one_that_is_over_at_once(driver: Path) -> None:
    run(driver, """
        for spin in (None, 0.0, 30.0):
            waiter = gpu.Waiter(spin)
            for _ in range(20):
                event = Event(1_000_000)
                assert waiter.wait(event) and event.is_over()
                assert waiter.wait(event.cuda_event)
        assert waiter.counts()["slept"] == 0
    """)


def test_a_timeout_ends_a_wait_and_the_event_may_be_waited_for_again(driver: Path) -> None:
    run(driver, """
        event = Event(5_000_000_000)
        waiter = gpu.Waiter(0.0)
        assert not waiter.wait(event, 0.001)
        assert not event.is_over()
        assert waiter.wait(event, 30) and event.is_over()
    """)


def test_a_thread_waits_no_longer_for_its_turn_than_it_said(driver: Path) -> None:
    run(driver, """
        import threading
        waiter, done = gpu.Waiter(0.0), Event(1_000_000)
        assert waiter.wait(done)
        late = Event(3_000_000_000)
        holder = threading.Thread(target=waiter.wait, args=(late,))
        holder.start()
        # Of what is done already it tells at once, but for the other thread.
        while waiter.wait(done, 0.001):
            assert not late.is_over(), "it waited until the other was done"
        assert not late.is_over()
        holder.join()
        assert waiter.wait(done) and waiter.counts()["slept"] >= 2
    """)


def test_tasks_wait_side_by_side_and_may_be_cancelled(driver: Path) -> None:
    run(driver, """
        async def main():
            events = [Event(1_000_000 * (8 - place)) for place in range(8)]
            late = Event(300_000_000)
            cancelled = asyncio.create_task(gpu.wait_async(late))
            await asyncio.gather(*[gpu.wait_async(event) for event in events])
            assert all(event.is_over() for event in events)
            cancelled.cancel()
            try:
                await asyncio.wait_for(gpu.wait_async(late), 0.001)
            except TimeoutError:
                pass
            await gpu.wait_async(late)
            assert late.is_over()
        asyncio.run(main())
        asyncio.run(main())
    """)


def test_one_descriptor_tells_each_key_once(driver: Path) -> None:
    run(driver, """
        events, kept = gpu.Events(), []
        for key in "abc":
            kept.append(Event(1_000_000))
            events.add(kept[-1], key)
        events.remove("b")
        told = []
        while len(events):
            select.select([events], [], [], 30)
            told += events.done()
        assert sorted(told) == [("a", None), ("c", None)], told
    """)


def test_a_lost_device_is_an_error_by_its_name(driver: Path) -> None:
    run(driver, """
        async def main():
            try:
                await gpu.wait_async(Event(1))
            except Error as error:
                assert "CUDA_ERROR_LAUNCH_FAILED" in str(error), error
            else:
                raise AssertionError("no error")
        asyncio.run(main())
    """, "never=1 lost_us=5000000")


def test_what_is_no_event_and_a_machine_without_a_driver_say_so(driver: Path) -> None:
    run(driver, """
        for wrong, kind in (("x", TypeError), ("1", TypeError), (1.0, TypeError), (object(), TypeError), (0, ValueError)):
            try:
                gpu.Waiter().wait(wrong)
            except kind:
                pass
            else:
                raise AssertionError(wrong)
    """)
    program = "from doorbell import Error, gpu\ntry:\n    gpu.Waiter()\nexcept Error as error:\n    assert 'NVIDIA' in str(error)\nelse:\n    raise SystemExit(1)"
    environment = {**os.environ, "DOORBELL_CUDA_LIBRARY": "/nowhere.so"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
