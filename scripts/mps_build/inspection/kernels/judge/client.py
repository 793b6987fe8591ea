"""Asks the judge: a view, the name of a reference and its inputs; the answer is an error in ulp."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..program import Buffer, Reference, View, dense_strides


class NoAnswer(Exception):
    """The judge could not answer: the reference is at fault, not the kernel."""


class Judge:
    """A connection to a judge's socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = self._connected()

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self._path))
        return connection

    def close(self) -> None:
        """Close the connection; the process of the judge ends with the run."""
        self._socket.close()

    def ask(self, check: Reference, contents: Mapping[int, bytes], known: Sequence[str] = ()) -> dict[str, Any]:
        """Return the judge's answer: max_ulp, bound_ulp, wrong (how many), and the worst element.

        Args:
            known: the known issues that may explain wrong elements: these are counted apart, as `explained`.

        Raises:
            NoAnswer: torch could not compute the reference.
        """
        buffers: list[bytes] = []
        numbers: dict[int, int] = {}

        def view(one: View) -> dict[str, Any]:
            key = id(one.buffer)
            if key not in numbers:
                numbers[key] = len(buffers)
                buffers.append(_bytes_of(one.buffer, contents))
            strides = one.strides if one.strides is not None else dense_strides(one.shape)
            return {
                "buffer": numbers[key],
                "dtype": one.dtype.torch,
                "shape": list(one.shape),
                "strides": list(strides),
                "offset": one.offset,
            }

        question: dict[str, Any] = {
            "name": check.name,
            "got": view(check.got),
            "inputs": {name: view(each) if isinstance(each, View) else each for name, each in check.inputs.items()},
            "ulp": check.ulp,
            "scale": check.scale,
            "known": list(known),
        }
        question["sizes"] = [len(each) for each in buffers]
        text = json.dumps(question).encode()
        self._socket.sendall(b"".join((struct.pack("<I", len(text)), text, *buffers)))
        (size,) = struct.unpack("<I", self._read(4))
        answer: dict[str, Any] = json.loads(self._read(size))
        if "error" in answer:
            raise NoAnswer(f"reference {check.name}: {answer['error']}")
        return answer

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise NoAnswer("the process that computes references has ended")
            data += piece
        return bytes(data)


def _bytes_of(buffer: Buffer, contents: Mapping[int, bytes]) -> bytes:
    """What an input held before the run, and an output after it."""
    if buffer.role in ("input", "inout") and buffer.data:
        return buffer.data if buffer.role == "input" else contents.get(id(buffer), buffer.data)
    return contents.get(id(buffer), buffer.data)
