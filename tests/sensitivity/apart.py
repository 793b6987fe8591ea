"""Work that may crash the CPU's libraries, in processes of its own, several at once."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from typing import Any, Iterator

_CHUNKS = 64  # of all keys


def apart(act: Any, given: dict[str, tuple[Any, ...]], *, jobs: int) -> Iterator[tuple[str, Any]]:
    """Yield (key, what an act answers to its arguments), several at once; None where the CPU crashed at this key.

    A process does some keys after each other, since each fills pools of values first.
    """
    keys = list(given)
    chunks = [keys[start::_CHUNKS] for start in range(_CHUNKS)]
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(_chunk, act, given, chunk) for chunk in chunks if chunk]):
            yield from future.result()


def _chunk(act: Any, given: dict[str, tuple[Any, ...]], keys: list[str]) -> list[tuple[str, Any]]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as process:
        try:
            return process.submit(_each, act, given, keys).result()
        except BrokenExecutor:
            if len(keys) == 1:
                return [(keys[0], None)]
    return [found for key in keys for found in _chunk(act, given, [key])]


def _each(act: Any, given: dict[str, tuple[Any, ...]], keys: list[str]) -> list[tuple[str, Any]]:
    return [(key, act(*given[key])) for key in keys]
