"""Assertions on the device."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Known, Program, Step, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, error_buffer


def assert_async(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`assert_async`: a scalar of so many bytes must not be zero."""
    size = int(kernel.name.rpartition("_")[2])
    for data in (bytes(size), bytes(size - 1) + b"\x01", b"\x80" + bytes(size - 1), bytes([255] * size)):
        error = error_buffer()
        values = {"input": input_buffer(data), "msg": input_buffer(b"no\0".ljust(256, b"\0")), "error_buf": error}
        check = Known(got=error, want=pack(DTYPES["uint"], [int(not any(data))]))
        step = Step(kernel=kernel.name, arguments=bound(kernel, values), grid=(1, 1, 1), threadgroup=(1, 1, 1))
        yield Program(label=f"{data.hex()}", steps=[step], checks=[check])
