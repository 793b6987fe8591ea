"""What a bisection is to find: its two ends, how a subject is judged, and where subjects come from."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.files import fault_of
from mps_build.common.interpreters import find_interpreter
from mps_build.common.workspace import expanded

from .versions import parse_version

_PYTHONS = tuple(f"3.{minor}" for minor in range(14, 8, -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRequest:
    """What the user wants to know, and where to look.

    `script`: the sha256 of the script that `predicate` runs, if it is one. `simulated`: official wheels are tested on
    Linux; the macOS that they answer as.
    """

    case: str | None
    predicate: tuple[str, ...] | None
    builder: tuple[str, ...] | None
    recipe: str
    good: str
    bad: str
    index: str | None
    python: str | None
    repository: Path | None
    device: str
    allow_virtual: bool
    seconds: float
    runs: int
    where: str
    operator: str | None = None
    trust: bool = False
    script: str | None = None
    simulated: str | None = None

    @property
    def question(self) -> dict[str, str]:
        """All that an answer depends on: another question has another state."""
        return {
            "ask": f"{self.case or ' '.join(self.predicate or ())}: good {self.good}, bad {self.bad}",
            "device": self.device if self.case else "",
            "index": self.index or "",
            "python": self.python or "",
            "repository": str(self.repository or ""),
            "builder": " ".join(self.builder or ()),
            "runs": str(self.runs),
            "where": self.where if self.predicate else "",
            **({"script": self.script} if self.script else {}),
            **({"simulated": f"macOS {self.simulated}"} if self.simulated else {}),
        }

    @property
    def by_version(self) -> bool:
        """True if the ends are versions, False if they are commits.

        Raises:
            UsageError: one of each, or commits without a repository.
        """
        kinds = {
            end: parse_version(end) is not None and not (self.repository and end.startswith("v"))
            for end in (self.good, self.bad)
        }
        if all(kinds.values()):
            return True
        if any(kinds.values()):
            raise UsageError(
                f"--good {self.good} and --bad {self.bad}: one is a version and the other is not",
                hint="two versions (2.5.0), or with --repo two commits or tags (v2.5.0)",
            )
        if self.repository is None:
            end = next(iter(kinds))
            raise UsageError(
                f"{end!r} is not a version of torch", hint="commits need --repo PATH, a clone that has them"
            )
        return False

    def interpreters(self) -> Iterator[Path]:
        """Yield the interpreters to try, ours first; another is looked for only when it is needed.

        Raises:
            UsageError: `--python` names a file that is not there.
            BuildEnvironmentError: there is no Python of the version that it names.
        """
        environ = fetch_environ(os.environ)
        wanted = self.python
        if wanted is not None and not re.fullmatch(r"3\.\d+t?", wanted):
            path = expanded(wanted).absolute()
            if fault := fault_of(path):
                raise UsageError(f"--python {wanted}: {fault}", hint="--python 3.11, or an interpreter's path")
            yield path
            return
        if wanted is not None:
            yield find_interpreter(wanted, environ=environ)
            return
        yield Path(sys.executable)
        for version in _PYTHONS:
            try:
                yield find_interpreter(version, environ=environ)
            except BuildEnvironmentError:
                continue
