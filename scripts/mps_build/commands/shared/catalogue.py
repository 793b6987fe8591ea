"""Every command, grouped by the five tasks, as the modules of this package state them.

A command is a module beside this folder: its name, the first line of its docstring, and its `TASK`. They are read from
its text, so that an overview imports no command. README, docs and `mps-build help` follow this order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_TITLES = {
    "build": "build a wheel",
    "inspection": "inspect a wheel without running it on a Mac",
    "verify": "verify a torch on a device",
    "host": "understand a host or a failure",
    "publish": "run a fleet and publish",
    "repository": "keep this repository",
}
_SUMMARY = re.compile(r'"""(.+)\.(?:"""|\n)')
_TASK = re.compile(r'^TASK = \("(\w+)", (\d+)\)$', re.MULTILINE)


def _read_tasks(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return task -> command -> summary, of the modules in a folder."""
    found: dict[str, list[tuple[int, str, str]]] = {task: [] for task in _TITLES}
    for path in folder.glob("[!_]*.py"):
        text = path.read_text(encoding="utf-8")
        summary, task = _SUMMARY.match(text), _TASK.search(text)
        assert summary and task, f"{path}: a command begins with its summary and a full stop, and states its TASK"
        found[task[1]].append((int(task[2]), path.stem, summary[1][0].lower() + summary[1][1:]))
    return MappingProxyType(
        {
            _TITLES[task]: MappingProxyType({name: text for _, name, text in sorted(rows)})
            for task, rows in found.items()
        }
    )


TASKS: Mapping[str, Mapping[str, str]] = _read_tasks(Path(__file__).parents[1])
COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: summary for commands in TASKS.values() for name, summary in commands.items()}
)
