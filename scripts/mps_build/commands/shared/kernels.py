"""Metal kernels of wheels, as several commands ask for them: read, compared, verified."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...common.console import Console
from ...common.environment import fetch_environ
from ...common.errors import UsageError
from ...common.reporting import Result
from ...common.workspace import cache_folder, expanded
from ...kernels.code.compiler import require_llvm
from ...kernels.execution.selection import Choice
from ...kernels.execution.verify_all import Answers, Request, compare_answers
from ...kernels.judge.references import TORCH
from ...kernels.read.wheel import read_libraries
from ...kernels.report.difference import Difference, compare_kernels

# What computes the references; a wheel for the CPU is fetched once. MPS_BUILD_TORCH_PYTHON names another Python.
REFERENCE = f"torch=={TORCH}"
_FAMILIES = 20


class CompareOptions(Protocol):
    """What `compare --kernels` needs of its options."""

    @property
    def show(self) -> int:
        """How many names to show of each difference."""

    @property
    def answers(self) -> bool:
        """Whether the answers of changed kernels are compared too."""

    @property
    def trust(self) -> bool:
        """Whether kernels run of whose wheel the index gives no hash."""


def require_linux() -> None:
    """Make sure that kernels can be executed here.

    Raises:
        UsageError: this is no Linux.
    """
    if not sys.platform.startswith("linux"):
        raise UsageError(
            "kernels are executed on Linux",
            hint="run it in a container or on a Linux runner; on a Mac, verify_mps asks the GPU",
        )


def torch_version(name: str) -> str | None:
    """Return torch's version, from a wheel's file name; None if it is not torch's.

    >>> torch_version("torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"), torch_version("mlx-0.1-py3-none-any.whl")
    ('2.15.0', None)
    """
    match = re.match(r"torch-([^-]+)-", name)
    return match[1] if match else None


def reference_python(console: Console, *, trust: bool = False) -> Path:
    """Return a Python that has torch for the CPU: $MPS_BUILD_TORCH_PYTHON, or a venv, made once and kept."""
    if given := os.environ.get("MPS_BUILD_TORCH_PYTHON"):
        path = expanded(given).absolute()  # the judge runs in a folder of its own
        if not path.exists():
            raise UsageError(f"MPS_BUILD_TORCH_PYTHON={given} is not an interpreter")
        return path
    from ...verify.target.environments import EnvironmentStore, make_environment
    from ...verify.target.interpreter import describe_interpreter
    from ...verify.target.wheel import fetch_wheel, sha256_of

    cache = cache_folder()
    log = cache / "logs" / "kernels.log"
    store = EnvironmentStore(cache=cache / "verify", environ=environment(), log=log, reporter=console, trust=trust)
    interpreter = describe_interpreter(Path(sys.executable), environ=environment())
    wheel = fetch_wheel(REFERENCE, interpreter, store)
    return make_environment(wheel, sha256_of(wheel), interpreter, store, extras=("numpy",))


def environment() -> dict[str, str]:
    """Return the environment of the processes that compute references."""
    return {**fetch_environ(os.environ), "PYTHONDONTWRITEBYTECODE": "1"}


def compare_kernels_of(paths: Sequence[Path], options: CompareOptions, console: Console) -> Result:
    """Print and return what became of the kernels of the first wheel in the second."""
    require_llvm()
    if options.answers:
        require_linux()
    sides = [read_libraries(path) for path in paths]
    found = compare_kernels(sides[0], sides[1], console)
    answers = None
    if options.answers and found.places:
        python = reference_python(console, trust=options.trust)
        requests = [
            Request(
                libraries=side,
                version=torch_version(path.name),
                python=python,
                environ=environment(),
                cache=cache_folder() / "kernels",
                choice=Choice(names=frozenset(found.places)),
                with_answers=True,
            )
            for side, path in zip(sides, paths, strict=True)
        ]
        answers = compare_answers(requests[0], requests[1], console)
    _print(found, answers, paths, options, console)
    return Result(document=_document(found, answers, paths))


def _document(found: Difference, answers: Answers | None, paths: Sequence[Path]) -> dict[str, object]:
    kernels: dict[str, object] = {key: list(getattr(found, key)) for key in ("same", "changed", "new", "gone")}
    if found.unreadable:
        kernels["unreadable"] = list(found.unreadable)
    if answers is not None:
        kernels["changed_answers"] = list(answers.changed)
        kernels["same_answers"] = list(answers.same)
    return {
        "left": paths[0].name,
        "right": paths[1].name,
        "kernels": kernels,
        "families": [
            {
                "family": each.name,
                "changed": each.changed,
                "new": each.new,
                "gone": each.gone,
                "instructions": [each.before, each.after],
            }
            for each in found.families
        ],
    }


def _print(
    found: Difference, answers: Answers | None, paths: Sequence[Path], options: CompareOptions, console: Console
) -> None:
    console.print(f"left   {paths[0].name}\nright  {paths[1].name}")
    if found.families:
        console.print()
        rows = [
            (
                each.name,
                *(str(number or "") for number in (each.changed, each.new, each.gone)),
                f"{each.before} -> {each.after}" if each.changed else "",
            )
            for each in found.families
        ]
        console.table(("family", "changed", "new", "gone", "instructions"), rows[:_FAMILIES])
        if len(rows) > _FAMILIES:
            console.print(f"and {len(rows) - _FAMILIES} families more; --json FILE lists every kernel")
    lists = [("changed", found.changed), ("new", found.new), ("gone", found.gone), ("unreadable", found.unreadable)]
    if answers is not None:
        lists.append(("changed in its answers", answers.changed))
    for title, names in lists:
        if names:
            console.print()
            console.print(f"{len(names)} {title}", style="bold")
            for name in names[: options.show]:
                console.print(f"  {name}")
            if len(names) > options.show:
                console.print(f"  and {len(names) - options.show} more", style="dim")
    console.print()
    if answers is not None:
        console.print(
            f"of {len(found.changed)} changed kernels {len(answers.same)} answer as before, {len(answers.changed)} "
            f"do not, {len(found.changed) - len(answers.same) - len(answers.changed)} cannot be compared"
        )
    parts = ", ".join(f"{len(names)} {what}" for what, names in [("same", found.same), *lists[:3]])
    console.print(f"kernels: {parts}", style="bold")
