# SPDX-License-Identifier: MIT OR Apache-2.0
"""An inference loop of PyTorch that waits for its GPU in several ways: requests a second, latency, and cores burnt; alone, and as one of
eight threads that wait at once.

It needs PyTorch and a GPU; where either is lacking it says so and ends with status 77."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from doorbell import gpu

SECONDS = 1.5
WARM_UP = 50
HEAD = f"{'model':>8}  {'threads':>7}  {'way':<38}{'requests/s':>12}{'p50, us':>10}{'p99, us':>10}{'cores':>8}"


class Ways:
    """How the end of a request is waited for, each with the events that it needs."""

    def __init__(self, torch: Any) -> None:
        spins, sleeps = torch.cuda.Event, lambda: torch.cuda.Event(blocking=True)
        self.all: list[tuple[str, Callable[[], Any], Callable[[], Callable[[Any], object]]]] = [
            ("torch.cuda.synchronize()", spins, lambda: lambda _: torch.cuda.synchronize()),
            ("Event().synchronize()", spins, lambda: lambda event: event.synchronize()),
            ("Event(blocking=True).synchronize()", sleeps, lambda: lambda event: event.synchronize()),
            ("gpu.Waiter().wait(event)", spins, lambda: gpu.Waiter().wait),
        ]


def requests(torch: Any, size: int, event: Any, wait: Callable[[Any], object], start: Any, times: list[float]) -> None:
    """Sends requests one after the other, in a stream of its own, for SECONDS after all threads are ready."""
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
        make = {"device": "cuda", "dtype": torch.float16}
        layers = torch.nn.Sequential(*[torch.nn.Linear(size, size, **make) for _ in range(4)]).eval()
        request = torch.randn(8, size, **make)
        for _ in range(WARM_UP):
            layers(request)
            event.record()
            wait(event)
        start.wait()
        end = time.perf_counter() + SECONDS
        while (before := time.perf_counter()) < end:
            layers(request)
            event.record()
            wait(event)
            times.append(time.perf_counter() - before)


def measure(torch: Any, size: int, threads: int, event: Any, wait: Any) -> tuple[float, float, float, float]:
    """Requests a second, p50 and p99 in microseconds, cores."""
    times: list[list[float]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads + 1)
    workers = [
        threading.Thread(target=requests, args=(torch, size, event(), wait(), start, own)) for own in times
    ]
    for worker in workers:
        worker.start()
    start.wait()
    before, cpu = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.join()
    cores = (time.process_time() - cpu) / (time.perf_counter() - before)
    took = sorted(one for own in times for one in own)
    return len(took) / SECONDS, took[len(took) // 2] * 1e6, took[len(took) * 99 // 100] * 1e6, cores


def main() -> int:
    try:
        import torch
    except ImportError:
        print("PyTorch is not here")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 77
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    print(HEAD)
    for size, threads in ((1024, 1), (8192, 1), (16384, 1), (8192, 8)):
        for name, event, wait in Ways(torch).all:
            rate, middle, slow, cores = measure(torch, size, threads, event, wait)
            print(f"{size:>8}  {threads:>7}  {name:<38}{rate:>12.0f}{middle:>10.1f}{slow:>10.1f}{cores:>8.2f}", flush=True)
    return 0


sys.exit(main())
