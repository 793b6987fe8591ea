"""Every command, grouped by its task, as the modules of this package state them.

A command is a module beside this folder, or of dev/ if only maintainers need it: its name, the first line of its
docstring, and its `TASK`. They are read from its text, so that an overview imports no command. README, docs and
`mps-build help` follow this order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_TITLES = {
    "build": "build a wheel",
    "verify": "verify a torch on a device",
    "inspection": "inspect a wheel without running it",
    "host": "understand a host or a failure",
    "publish": "publish wheels",
    "without_a_mac": "without a Mac, on Linux",
    "repository": "for this repository's maintainers",
}
_SUMMARY = re.compile(r'"""(.+)\.(?:"""|\n)')
_TASK = re.compile(r'^TASK = \("(\w+)", (\d+)\)$', re.MULTILINE)


def _read_tasks(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return task -> command -> summary, of the modules in a folder; no task without a command."""
    found: dict[str, list[tuple[int, str, str]]] = {task: [] for task in _TITLES}
    for path in (*folder.glob("[!_]*.py"), *(folder / "dev").glob("[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        summary, task = _SUMMARY.match(text), _TASK.search(text)
        assert summary and task, f"{path}: a command begins with its summary and a full stop, and states its TASK"
        found[task[1]].append((int(task[2]), path.stem, summary[1][0].lower() + summary[1][1:]))
    return MappingProxyType(
        {
            _TITLES[task]: MappingProxyType({name: text for _, name, text in sorted(rows)})
            for task, rows in found.items()
            if rows
        }
    )


TASKS: Mapping[str, Mapping[str, str]] = _read_tasks(Path(__file__).parents[1])
COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: summary for commands in TASKS.values() for name, summary in commands.items()}
)
# What only the repository's maintainers need: no session of its own in a clone, and absent from an installed tool.
MAINTAINERS = frozenset(TASKS.get(_TITLES["repository"], ()))


def command_line(command: str, arguments: str = "") -> str:
    """Return how a command is started in a clone, with arguments as they stand on a command line.

    >>> command_line("doctor", "v2.6.0"), command_line("doctor"), command_line("lock", "v2.6.0")
    ('nox -s doctor -- v2.6.0', 'nox -s doctor', 'nox -s dev -- lock v2.6.0')
    """
    start, between = (f"nox -s dev -- {command}", " ") if command in MAINTAINERS else (f"nox -s {command}", " -- ")
    return start + (between + arguments if arguments else "")
