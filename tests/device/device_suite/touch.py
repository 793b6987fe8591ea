"""Which operators a case dispatches inside its device run: recorded, kept as data, asked by `--op`."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, ContextManager

try:  # torch 1.12 has another interface; there the map is only read, never recorded
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # pragma: no cover
    TorchDispatchMode = None  # type: ignore[assignment,misc]


class TouchRecorder:
    """Records overloads such as `aten.add.Tensor`; `maker` goes around each run."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def maker(self) -> ContextManager[Any]:
        """Return the context manager that records one run."""
        if TorchDispatchMode is None:
            return contextlib.nullcontext()
        recorder = self

        class Recording(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                recorder.seen.add(str(func))
                return func(*args, **(kwargs or {}))

        return Recording()

    def take(self) -> list[str]:
        """Return what was seen since the last call, sorted."""
        taken, self.seen = sorted(self.seen), set()
        return taken


class TouchMap:
    """Case id -> overloads. Stored with the overloads' names once, since most cases share a few."""

    def __init__(self, by_case: dict[str, list[str]]) -> None:
        self.by_case = by_case

    def touches(self, case_id: str, operator: str) -> bool:
        """Say whether the case dispatches `operator`: an overload `aten.add.Tensor`, or all of `aten.add`.

        A drawn case that the map does not know touches what it is named for. Any other that it does not know counts as
        touching: better asked once too often.
        """
        names = self.by_case.get(case_id)
        wanted = operator.replace("::", ".")
        wanted = wanted if "." in wanted else f"aten.{wanted}"
        if names is None:
            own, is_drawn, _ = case_id.partition(":")
            return not is_drawn or own == wanted.split(".")[1]
        return any(name == wanted or name.startswith(wanted + ".") for name in names)

    def save(self, path: Path) -> None:
        """Write the map, one case a line: readable in a diff."""
        names = sorted({name for used in self.by_case.values() for name in used})
        number = {name: index for index, name in enumerate(names)}
        rows = [
            f"{json.dumps(case)}: {json.dumps([number[name] for name in used], separators=(',', ':'))}"
            for case, used in sorted(self.by_case.items())
        ]
        body = ",\n".join(rows)
        path.write_text(f'{{"operators": {json.dumps(names)},\n"cases": {{\n{body}\n}}}}\n', encoding="utf-8")

    @staticmethod
    def load(path: Path) -> TouchMap:
        """Read a map; an absent file is an empty map."""
        if not path.is_file():
            return TouchMap({})
        stored = json.loads(path.read_text(encoding="utf-8"))
        names = stored["operators"]
        return TouchMap({case: [names[index] for index in used] for case, used in stored["cases"].items()})
