"""Whose output a text is, and what it says: one entry point to all the readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from mps_build.common.cmake_summary import parse_configure

from .ccache import parse_ccache
from .ninja import parse_ninja, parse_ninja_log
from .packing import parse_codesign_verify, parse_listdeps, parse_pip_wheel
from .sccache import parse_sccache

# What a reader may meet in a text that only looks like its own. It is asked beside the main question: never its end.
_NOT_ITS_OWN = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError)


def read_tool_output(text: str, argv: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the facts in a tool's output; None: not understood.

    Args:
        argv: the command, if known; without it the text itself must tell whose it is.
    """
    program = PurePosixPath(argv[0]).name if argv else ""
    for name, reader in _READERS:
        if program and name != program:
            continue
        try:
            facts = reader(text)
        except _NOT_ITS_OWN:
            continue
        if facts is not None:
            return facts
    return None


def configure_facts(text: str) -> dict[str, Any] | None:
    """Return what PyTorch's configure came out with, by the names of README-logs."""
    facts = parse_configure(text)
    if facts.use_mps is None and facts.sdk_version is None and not facts.missing:
        return None
    named: dict[str, Any] = {"USE_MPS": facts.use_mps, "CAN_COMPILE_METAL": facts.can_compile_metal}
    named |= {"sdk": facts.sdk_version, "reason": facts.reason_id, "compiler_id": facts.compiler_id}
    named |= {"ccache": facts.ccache}
    stopped = "Configuring incomplete, errors occurred" in text
    return named | ({"configured": facts.generated} if facts.generated or stopped else {})


def _facts(parse: Callable[[str], Any]) -> Callable[[str], dict[str, Any] | None]:
    def read(text: str) -> dict[str, Any] | None:
        value = parse(text)
        return None if value is None else dict(value.facts())

    return read


# In the order in which a text without its command is tried: the surest forms first.
_READERS: tuple[tuple[str, Callable[[str], dict[str, Any] | None]], ...] = (
    (".ninja_log", _facts(parse_ninja_log)),
    ("sccache", _facts(parse_sccache)),
    ("ccache", _facts(parse_ccache)),
    ("cmake", configure_facts),
    ("codesign", _facts(parse_codesign_verify)),
    ("pip", _facts(parse_pip_wheel)),
    ("ninja", _facts(parse_ninja)),
    ("delocate-listdeps", _facts(parse_listdeps)),
)
