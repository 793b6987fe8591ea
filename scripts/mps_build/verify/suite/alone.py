"""A case asked again in a process of its own, without the injected fault: it may die there and costs nothing else."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .child import ChildEnd, run_child
from .suite_request import SuiteRequest, suite_command


@dataclass(frozen=True, slots=True)
class Alone:
    """What came of the case: the outcome that the suite wrote, None where the process died before."""

    outcome: str | None
    end: ChildEnd

    @property
    def died(self) -> bool:
        """Whether the process ended in the case, or had to be ended there."""
        return self.end.running is not None

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with the case."""
        return self.outcome in ("passed", "unexpected_pass")


def ask_alone(
    request: SuiteRequest,
    case_id: str,
    file: Path,
    *,
    device: str,
    known: Path,
    name: str,
    is_stopped: Callable[[], bool],
) -> Alone:
    """Ask one case of a device, without an injected fault and with nothing before it.

    Args:
        name: of the files that the process leaves in the folder of the run; a number is added to it.
    """
    whole = replace(request, op=None, quick=False, shard="", layers=(), cases=0, keys=0, seconds=0.0)
    chosen = replace(whole, device=device, plant=None, only=(glob.escape(case_id),))
    name = f"{name}.{1 + len(list(request.folder.glob(f'{name}.*.outcomes.jsonl')))}"
    outcomes, found = request.folder / f"{name}.outcomes.jsonl", dict[str, str]()

    def on_event(event: Mapping[str, Any]) -> None:
        if event.get("event") == "finished":
            found[str(event.get("id"))] = str(event.get("outcome"))

    end = run_child(
        suite_command(chosen, (file,), known=known, outcomes=outcomes),
        log=request.folder / f"{name}.log",
        outcomes=outcomes,
        limits=request.limits,
        on_event=on_event,
        is_stopped=is_stopped,
    )
    return Alone(found.get(case_id), end)
