"""The program of the closed processes that read bitcode: parsed, checked, translated and compiled, never run.

python -m mps_build.inspection.kernels.code.server SOCKET MEMORY
"""

from __future__ import annotations

import gc
import sys
from dataclasses import asdict

from ..execution import fork_server, sandbox
from ..execution.child import Answer, talk
from ..metadata import parse_metadata
from . import compiler
from .body import body_of, kernel_name
from .compiled import Refused
from .kernel import compile_kernel, narrow_parts
from .text import ModuleText, split_module

_WARM = "define void @rt_entry(ptr %a, ptr %i) {\n  ret void\n}\n"


class Reader:
    """What can be asked of a wheel's bitcode."""

    def text(self, bitcode: bytes) -> Answer:
        """Return a module as LLVM prints it."""
        return {}, (compiler.read_bitcode(bitcode).encode(),)

    def compile(self, bitcode: bytes, planted: str | None) -> Answer:
        """Compile a kernel, or say why there is no code."""
        code = compile_kernel(bitcode, planted=planted)
        head = {"metadata": asdict(code.metadata) if code.metadata else None, "body": code.body}
        if isinstance(code, Refused):
            return {**head, "fault": code.fault, "reason": code.reason[:2000]}, ()
        variables = [asdict(each) for each in code.variables]
        return {**head, "variables": variables, "is_cooperative": code.is_cooperative}, (code.objectcode,)

    def narrow(self, bitcode: bytes, planted: str | None) -> Answer:
        """Return the 32-bit arithmetic that reaches an address."""
        return {"parts": [each[:200] for each in narrow_parts(bitcode, planted)[:1000]]}, ()

    def pair(self, one: bytes | None, other: bytes) -> Answer:
        """Return whether two kernels have the same instructions, and if not how many each has."""
        text = compiler.read_bitcode(other)
        metadata = asdict(parse_metadata(text))
        if one is None:
            return {"metadata": metadata, "is_same": False, "instructions": [_body(text)[0]]}, ()
        before = compiler.read_bitcode(one)
        if _lines(split_module(before)) == _lines(split_module(text)):
            return {"metadata": metadata, "is_same": True, "instructions": []}, ()
        bodies = _body(before), _body(text)
        is_same = bodies[0][1] == bodies[1][1]
        return {"metadata": metadata, "is_same": is_same, "instructions": [each[0] for each in bodies]}, ()


def _body(text: str) -> tuple[int, str]:
    body = body_of(split_module(text), kernel_name(text))
    return body.instructions, body.digest


def _lines(module: ModuleText) -> object:
    return module.types, module.globals, module.definitions


def main() -> None:
    """Compile one function so that LLVM is warm, and serve."""
    path, memory = sys.argv[1:]
    fork_server.isolate()
    compiler.host_target()
    compiler.compile_module(compiler.parse_text(_WARM))
    sandbox.prove()
    gc.collect()
    gc.freeze()
    fork_server.serve(path, lambda connection: talk(connection, Reader(), int(memory)))


if __name__ == "__main__":
    fork_server.run(sys.argv[1], main)
