"""Run in a wheel's own Python, a line of JSON for each bug: wrong, right, absent, unclear.

A process starts in seconds here, so one tries all of them; what is not right there is tried in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # LLVM's OpenMP starts no threads in a process that was forked

import torch

import networks  # noqa: F401  (its bugs register themselves)
from cases import BUGS, Bug

# What a release says itself of an operator that it does not have, or not for mps or that dtype.
ABSENT = re.compile(
    r"not current(?:ly)? (?:implemented|supported)|not implemented|not supported|only supported|has no attribute|"
    r"does(?:n't| not) support|unsupported|works only|Undefined type|convert (?:a MPS Tensor|BFloat|Complex)",
    re.IGNORECASE,
)
SECONDS = 120


def equal(ours: Any, theirs: Any) -> bool:
    """Say whether two answers are the same, to the rounding of their dtype."""
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if not isinstance(ours, torch.Tensor):
        return bool(ours == theirs)
    ours, theirs = ours.detach().cpu(), theirs.detach().cpu()
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    if not (ours.is_floating_point() or ours.is_complex()):
        return torch.equal(ours, theirs)
    bound = 1e-2 if ours.dtype in (torch.float16, torch.bfloat16) else 1e-4
    wide = torch.complex128 if ours.is_complex() else torch.float64
    return torch.allclose(ours.resolve_conj().to(wide), theirs.resolve_conj().to(wide), bound, bound, equal_nan=True)


def answer(bug: Bug) -> tuple[str, str]:
    """Return what mps says of a bug, beside the CPU."""
    try:
        wanted = bug.act("cpu")
    except Exception as error:
        return "absent", f"the CPU: {type(error).__name__}: {error}"
    try:
        got = bug.act("mps")
        same = equal(got, wanted)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, NotImplementedError) or ABSENT.search(said):
            return "absent", said
        return ("unclear" if "software Metal" in said or "simulation" in said else "wrong"), said
    if got == "not implemented":
        return "absent", got
    return ("right" if same else "wrong"), "" if same else f"{got} instead of {wanted}"


def ask(bugs: list[Bug]) -> dict[int, tuple[str, str]]:
    """Return the answers of several bugs, of one process; a bug that ends it is followed by a new one."""
    found: dict[int, tuple[str, str]] = {}
    while left := [bug for bug in bugs if bug.number not in found]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            for bug in left:
                signal.alarm(SECONDS)
                word, said = answer(bug)
                os.write(writing, json.dumps([bug.number, word, " ".join(said.split())[:300]]).encode()[:4000] + b"\n")
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            for number, word, said in map(json.loads, pipe):
                found[number] = word, said
        status = os.waitpid(child, 0)[1]
        # Whose fault a crash is, nobody says here.
        if ended := next((bug for bug in left if bug.number not in found), None):
            found[ended.number] = "unclear", f"ended by signal {status & 127}"
    return found


if __name__ == "__main__":
    chosen = [int(number) for number in sys.argv[1:]] or list(BUGS)
    print(json.dumps({"torch": torch.__version__, "git": getattr(torch.version, "git_version", None)}), flush=True)
    together = ask([BUGS[number] for number in chosen])
    for number in chosen:
        # What another bug has left behind is not this one's.
        alone = {} if together[number][0] in ("right", "absent") else ask([BUGS[number]])
        word, said = {**together, **alone}[number]
        print(json.dumps({"bug": number, "word": word, "said": said}), flush=True)
