"""The program of the closed processes that read bitcode: parsed, checked, translated and compiled, never run.

python -m mps_build.kernels.code.server SOCKET MEMORY
"""

from __future__ import annotations

import gc
import sys

from ..execution import fork_server, sandbox
from ..execution.child import Answer, talk
from ..read.metadata import parse_metadata
from . import compiler
from .body import body_of, kernel_name
from .compiled import Refused
from .kernel import addressing_of, compile_kernel
from .model import Rejected
from .rewrite import Untranslated
from .text import ModuleText, split_module

_WARM = "define void @rt_entry(ptr %a, ptr %i) {\n  ret void\n}\n"


class Reader:
    """What can be requested of a wheel's bitcode."""

    def text(self, bitcode: bytes) -> Answer:
        """Return a module as LLVM prints it."""
        return {}, (compiler.read_bitcode(bitcode).encode(),)

    def compile(
        self, bitcode: bytes, injected: str | None, simulated: bool, machine: compiler.Processor | None
    ) -> Answer:
        """Compile a kernel, or say why there is no code."""
        level, passes = (2, "O1") if simulated else (0, None)
        code = compile_kernel(
            bitcode, injected=injected, level=level, passes=passes, simulated=simulated, machine=machine
        )
        head = {"metadata": code.metadata, "body": code.body}
        if isinstance(code, Refused):
            return {**head, "fault": code.fault, "reason": code.reason[:2000]}, ()
        return {**head, "variables": code.variables, "is_cooperative": code.is_cooperative}, (code.objectcode,)

    def addressing(self, bitcode: bytes, injected: str | None) -> Answer:
        """Return how a kernel makes its addresses; no metadata where it holds what no kernel has."""
        try:
            found = addressing_of(bitcode, injected)
        except (Rejected, Untranslated):
            return {"metadata": None, "body": "", "narrow": [], "digest": ""}, ()
        narrow = [each[:200] for each in found.narrow[:1000]]
        return {"metadata": found.metadata, "body": found.body, "narrow": narrow, "digest": found.digest}, ()

    def pair(self, one: bytes | None, other: bytes) -> Answer:
        """Return whether two kernels have the same instructions, and if not how many each has."""
        text = compiler.read_bitcode(other)
        module = split_module(text)
        if one is None:
            body = body_of(module, kernel_name(text))
            return {"metadata": parse_metadata(text), "is_same": False, "instructions": [body.instructions]}, ()
        before = compiler.read_bitcode(one)
        module_before = split_module(before)
        if _lines(module_before) == _lines(module):
            return {"metadata": None, "is_same": True, "instructions": []}, ()
        bodies = body_of(module_before, kernel_name(before)), body_of(module, kernel_name(text))
        if bodies[0].digest == bodies[1].digest:
            return {"metadata": None, "is_same": True, "instructions": []}, ()
        instructions = [each.instructions for each in bodies]
        return {"metadata": parse_metadata(text), "is_same": False, "instructions": instructions}, ()


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
