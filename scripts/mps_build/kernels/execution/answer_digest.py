"""What a program was asked and what it left, as digests: equal for two kernels that answer alike."""

from __future__ import annotations

import hashlib

from ..machine.ran import Ran
from ..machine.runner import Runner
from ..program.launch import Addresses, Buffer, Program


def answer_of(program: Program, ran: Ran, device: Runner) -> tuple[str, str]:
    """Return digests of a program's inputs (with its label and sizes), and of its results."""
    asked, got = hashlib.sha256(program.label.encode()), hashlib.sha256()
    for step in program.steps:
        for value in step.arguments.values():
            buffers = value.places.values() if isinstance(value, Addresses) else (value,)
            for buffer in buffers:
                if isinstance(buffer, Buffer) and buffer.data:
                    asked.update(buffer.data)
    for check in program.checks:
        view = check.got
        asked.update(f"{view.shape} {view.dtype.name}".encode())
        got.update(device.canonical(device.take(view, ran.contents[id(view.buffer)]), view))
    return asked.hexdigest()[:20], got.hexdigest()[:20]
