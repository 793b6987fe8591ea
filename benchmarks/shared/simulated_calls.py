"""Run by the simulated interpreter: seconds of calls on `mps` and on the CPU, medians, as JSON on the last line."""

import functools
import json
import statistics
import time
from collections.abc import Callable

import torch


def seconds(call: Callable[[], object], calls: int) -> float:
    """Return the median of nine times of one call, after one that is not counted, until the device is done."""
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        torch.mps.synchronize()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times[1:])


torch.set_num_threads(1)
one = torch.ones(4, 4, device="mps")
said = {"add_s": seconds(lambda: one + one, 200)}
picture = torch.rand(1000, 1000)
other = picture.to("mps")
for name, count in {"fmax": 2, "copysign": 2, "erfinv": 1, "lgamma": 1, "i0": 1}.items():  # Metal kernels of 2.6.0
    made = getattr(torch, name)
    on_mps, on_cpu = (functools.partial(made, *[each] * count) for each in (other, picture))
    said[name] = seconds(on_mps, 1) / seconds(on_cpu, 1)
print(json.dumps(said))
