# SPDX-License-Identifier: MIT OR Apache-2.0
"""An inference loop of PyTorch that waits for its GPU in three ways: requests a second, latency, and cores burnt.

It needs PyTorch and a GPU; where either is lacking it says so and ends with status 77."""

import sys
import time
from collections.abc import Callable
from typing import Any

from doorbell import gpu

SECONDS = 3.0
WARM_UP = 50


def loop(torch: Any, size: int, wait: Callable[[Any], object]) -> tuple[float, float, float, float]:
    """Requests a second, p50 and p99 in microseconds, cores."""
    layers = torch.nn.Sequential(*[torch.nn.Linear(size, size) for _ in range(4)]).half().cuda().eval()
    request = torch.randn(8, size, device="cuda", dtype=torch.float16)
    event = torch.cuda.Event()
    times: list[float] = []
    with torch.no_grad():
        for turn in range(10**9):
            if turn == WARM_UP:
                start, cpu = time.perf_counter(), time.process_time()
            before = time.perf_counter()
            layers(request)
            event.record()
            wait(event)
            after = time.perf_counter()
            if turn >= WARM_UP:
                times.append(after - before)
                if after - start > SECONDS:
                    break
    cores = (time.process_time() - cpu) / (time.perf_counter() - start)
    times.sort()
    return len(times) / SECONDS, times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6, cores


def main() -> int:
    try:
        import torch
    except ImportError:
        print("PyTorch is not here")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 77
    print(torch.cuda.get_device_name())
    waiter = gpu.Waiter()
    ways: list[tuple[str, Callable[[Any], object]]] = [
        ("event.synchronize()", lambda event: event.synchronize()),
        ("torch.cuda.synchronize()", lambda event: torch.cuda.synchronize()),
        ("doorbell.gpu.Waiter", waiter.wait),
    ]
    print(f"{'model':>8}  {'way':<26}{'requests/s':>12}{'p50, us':>10}{'p99, us':>10}{'cores':>8}")
    for size in (1024, 8192):
        for name, wait in ways:
            rate, middle, slow, cores = loop(torch, size, wait)
            print(f"{size:>8}  {name:<26}{rate:>12.0f}{middle:>10.1f}{slow:>10.1f}{cores:>8.2f}")
    return 0


sys.exit(main())
