# SPDX-License-Identifier: MIT OR Apache-2.0
"""What it costs to tell workers of the next step, as the scheduler of an inference server does: `doorbell.broadcast`, against
multiprocessing.Queue and, where its wheel is, the module of vLLM that does it there.

    python benches/steps.py [--vllm WHEEL] [--steps 1,2,5,10,20,50] [--workers 1] [--bytes 10000] [--seconds 2] [--load]

A step's message is a dictionary with an array of numbers, and the moment at which the scheduler began to send it. A worker's latency is
from there until it has the object. `cores` is what one worker used of the processor, on average.

Of the wheel (`pip download vllm --no-deps`) one file is run, `shm_broadcast.py`, as it is there. It imports torch, which it does not
use for such messages, and small parts of vLLM: those are stood in for below. zmq is the real one.
"""

import argparse
import contextlib
import importlib.util
import logging
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import types
import uuid
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import doorbell

FILE = "vllm/distributed/device_communicators/shm_broadcast.py"
WARM_UP = 20

Receive = Callable[[], Any]


class Doorbell:
    def __init__(self, workers: int) -> None:
        self.sender, self.receivers = doorbell.broadcast(workers, 1 << 22)

    def start(self) -> None:
        self.sender.wait_for_workers()

    def send(self, object: Any) -> None:
        self.sender.send_object(object)

    def receive(self, worker: int) -> Receive:
        return self.receivers[worker].recv_object

    def close(self) -> None:
        self.sender.close()


class Queues:
    def __init__(self, workers: int) -> None:
        self.queues = [multiprocessing.get_context("fork").Queue() for _ in range(workers)]

    def start(self) -> None:
        pass

    def send(self, object: Any) -> None:
        for queue in self.queues:
            queue.put(object)

    def receive(self, worker: int) -> Receive:
        return self.queues[worker].get

    def close(self) -> None:
        for queue in self.queues:
            queue.close()


class Vllm:
    module: Any = None

    def __init__(self, workers: int) -> None:
        self.queue = self.module.MessageQueue(workers, workers, max_chunk_bytes=1 << 20)
        self.handle = self.queue.export_handle()

    def start(self) -> None:
        self.queue.wait_until_ready()

    def send(self, object: Any) -> None:
        self.queue.enqueue(object)

    def receive(self, worker: int) -> Receive:
        queue = self.module.MessageQueue.create_from_handle(self.handle, worker)
        queue.wait_until_ready()
        receive: Receive = queue.dequeue
        return receive

    def close(self) -> None:
        del self.queue


def stood_in_for() -> Iterator[types.ModuleType]:
    """What the file imports, as far as it uses it here."""

    def module(name: str, **names: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        made.__dict__.update(names)
        return made

    class Bytes:
        def __init__(self, buffer: Any) -> None:
            self.buffer = buffer

        def fill_(self, value: int) -> None:
            self.buffer[:] = bytes([value]) * len(self.buffer)

    def path(scheme: str) -> Callable[[], str]:
        return lambda: f"{scheme}://{tempfile.gettempdir() if scheme == 'ipc' else ''}/{uuid.uuid4()}"

    nothing = type("Nothing", (), {})
    yield module("torch", frombuffer=lambda buffer, dtype: Bytes(buffer), uint8=None, Tensor=nothing)
    yield module("torch.distributed", ProcessGroup=nothing)
    yield module("vllm")
    yield module("vllm.envs", VLLM_USE_SPINLOOP_EXT=False, VLLM_RINGBUFFER_WARNING_INTERVAL=60)
    yield module("vllm.distributed")
    # As it is there from Python 3.11.1 on.
    yield module("vllm.distributed.utils", StatelessProcessGroup=nothing, sched_yield=os.sched_yield)
    yield module("vllm.logger", init_logger=logging.getLogger)
    yield module("vllm.platforms", current_platform=None)
    yield module("vllm.utils")
    yield module("vllm.utils.cpu_resource_utils", check_cgroup_memory_available=lambda *_: None)
    yield module(
        "vllm.utils.network_utils",
        get_ip=lambda: "127.0.0.1",
        get_open_zmq_inproc_path=path("inproc"),
        get_open_zmq_ipc_path=path("ipc"),
        is_valid_ipv6_address=lambda _: False,
    )


def load_vllm(wheel: str) -> Any:
    for module in stood_in_for():
        sys.modules[module.__name__] = module
    sys.modules["vllm"].__dict__["envs"] = sys.modules["vllm.envs"]
    sys.modules["torch"].__dict__["distributed"] = sys.modules["torch.distributed"]
    with zipfile.ZipFile(wheel) as files, tempfile.NamedTemporaryFile(suffix=".py") as file:
        file.write(files.read(FILE))
        file.flush()
        spec = importlib.util.spec_from_file_location("shm_broadcast", file.name)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["shm_broadcast"] = module
        spec.loader.exec_module(module)
    # It would have the object's own reducer for tensors, of which there are none.
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]
    return module


def used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def work(way: Any, worker: int, results: Any) -> None:
    receive = way.receive(worker)
    latencies: list[int] = []
    began = cpu = 0.0
    while True:
        step = receive()
        now = time.monotonic_ns()
        if step is None:
            break
        latencies.append(now - step["sent"])
        if len(latencies) == WARM_UP:
            began, cpu = time.monotonic(), used()
    results.send((latencies[WARM_UP:], (used() - cpu) / (time.monotonic() - began)))
    results.close()


def burn() -> None:
    while True:
        pass


@contextlib.contextmanager
def load(on: bool) -> Iterator[None]:
    """As many processes that only compute as there are CPUs."""
    hogs = [multiprocessing.get_context("fork").Process(target=burn, daemon=True) for _ in range(len(os.sched_getaffinity(0)) if on else 0)]
    for hog in hogs:
        hog.start()
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.join()


def measure(kind: Any, workers: int, step: float, size: int, seconds: float) -> tuple[list[int], float]:
    """The latencies of all workers, and what one of them used of a CPU."""
    context = multiprocessing.get_context("fork")
    way = kind(workers)
    pipes = [context.Pipe(duplex=False) for _ in range(workers)]
    processes = [context.Process(target=work, args=(way, worker, pipes[worker][1])) for worker in range(workers)]
    for process in processes:
        process.start()
    way.start()
    tokens = numpy.arange(size // 8)
    due = time.monotonic() + step
    for number in range(WARM_UP + max(40, int(seconds / step))):
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic() - step) + step
        way.send({"number": number, "sent": time.monotonic_ns(), "tokens": tokens})
    time.sleep(step)
    way.send(None)
    found = [pipe.recv() for pipe, _ in pipes]
    for process in processes:
        process.join()
    way.close()
    return [latency for latencies, _ in found for latency in latencies], sum(cores for _, cores in found) / workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--vllm", metavar="WHEEL")
    parser.add_argument("--steps", default="1,2,5,10,20,50", help="in milliseconds")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--bytes", default="10000")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--load", action="store_true", help="beside as many busy processes as there are CPUs")
    options = parser.parse_args()
    ways: dict[str, Any] = {"doorbell": Doorbell, "multiprocessing": Queues}
    if options.vllm:
        Vllm.module = load_vllm(options.vllm)
        ways["vllm"] = Vllm
    print(f"{'step, ms':>8} {'workers':>7} {'bytes':>7} {'way':<16} {'p50, µs':>8} {'p99, µs':>8} {'cores':>6}")
    with load(options.load):
        for workers in map(int, options.workers.split(",")):
            for size in map(int, options.bytes.split(",")):
                for step in map(float, options.steps.split(",")):
                    for name, kind in ways.items():
                        latencies, cores = measure(kind, workers, step / 1000, size, options.seconds)
                        p50, p99 = numpy.percentile(latencies, [50, 99]) / 1000
                        print(f"{step:>8g} {workers:>7} {size:>7} {name:<16} {p50:>8.1f} {p99:>8.1f} {cores:>6.3f}", flush=True)


if __name__ == "__main__":
    main()
