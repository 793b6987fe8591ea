"""From a torch to how many times as fast as the CPU its device is: the run, its doubts, its record."""

from .benchmark import Benchmark
from .measuring import BenchmarkRequest

__all__ = ["Benchmark", "BenchmarkRequest"]
