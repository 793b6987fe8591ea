"""The configure of a build, by whichever back end the release has, and the gate that its result must pass."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mps_build.common.errors import GateError
from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import Receipt, StepResult, digest_of, fingerprint, step_digest
from mps_build.common.recipe.model import Gate
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

from ..artifacts import BuildContext, BuildEnvironment, SourceTree
from ..backend import Backend, forwarded
from ..compiler_cache.launcher import cache_lines
from ..compiler_environ import comparable
from ..gate import ConfigureRun, check_gate
from ..profiles import profile_lines as lines_of_profile

FACTS = "mps-build-facts.json"
# What setup.py and FindPython remember of the interpreter; a further Python in one tree must not inherit it.
_PYTHON_ENTRY = re.compile(
    r"^_?(Python3?_|PYTHON|FIND_PACKAGE_MESSAGE_DETAILS_Python|NUMPY_|Numpy|PYBIND11_PYTHON)", re.I
)


def configure_for_build(
    context: BuildContext,
    environment: BuildEnvironment,
    tree: SourceTree,
    *,
    source: str,
    prepared: Receipt,
    is_unused: Callable[[str], bool],
) -> Receipt:
    """Return the receipt of a configure that passed the gate; inputs that changed start a fresh build folder.

    Args:
        source: the digest of the source.
        prepared: the environment's receipt.
        is_unused: given this configure's digest, whether what would be compiled of it is there already. The folder is
            configured for one Python at a time: another's wheel that still holds needs it no more.
    """
    request, recipe = context.request, context.request.recipe
    build, develop = context.build_folder(tree), context.request.profile == "develop"
    launcher = request.compilers.launcher
    lines = lines_of_profile(request.profile, context.workspace.root / "wide_headers", cached=bool(launcher))
    call = configuring(
        recipe.backend,
        python=environment.python,
        source=tree.root,
        build=build,
        environ=environment.environ,
        root=context.workspace.root,
        gate=request.wheel.gate,
        profile_lines=lines + cache_lines(launcher, across=not develop),
    )
    shared = digest_of(
        {
            "source": None if develop else source,
            "environ": comparable(environment.environ, environment.python.parents[1], profile=request.profile),
            "toolchain": dict(environment.toolchain.facts),
            "overrides": fingerprint(call.overrides)["sha256"],
            "tools": {name: environment.tools.get(name) for name in ("cmake", "ninja")},
            "gate": request.wheel.gate.model_dump(),
        }
    )
    kept = build / ".mps-build-shared"
    fresh = not kept.is_file() or kept.read_text(encoding="utf-8") != shared

    def run() -> StepResult:
        log = context.workspace.logs / f"configure-{environment.python_version}.log"
        facts = call.run(fresh=fresh, log=log, reporter=context.console)
        kept.write_text(shared, encoding="utf-8")
        return StepResult(trees=(build,), facts=facts)

    inputs: dict[str, Any] = {"shared": shared, "previous": prepared.digest, "argv": call.command.argv}
    # An edit is ninja's business, which configures again by itself where CMake's own files changed.
    inputs |= {"version": environment.environ.get("PYTORCH_BUILD_VERSION")} if develop else {"source": source}
    unused = is_unused(step_digest("configure", version=1, inputs=inputs))
    key = context.key(environment)
    return context.ledger.run("configure", version=1, inputs=inputs, action=run, key=key, unused=unused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuring:
    """One configure call that is ready to run.

    Attributes:
        overrides: the CMake file that enters it; an input of the receipt.
        gate: what it must come to.
    """

    command: Command
    build: Path
    overrides: Path
    gate: Gate

    def run(self, *, fresh: bool, log: Path, reporter: Reporter) -> dict[str, Any]:
        """Configure, hold the result against the gate, and return the facts for the receipt.

        Args:
            fresh: start from an empty build folder; otherwise only what CMake remembers of the Python is dropped.

        Raises:
            GateError: configure failed, or came to something else than the recipe says.
        """
        if fresh:
            remove_tree(self.build)
        ran = configure(self.command, build=self.build, log=log, reporter=reporter, new_python=not fresh)
        facts = check_gate(ran, self.gate, fresh=fresh)
        return {"configure": asdict(facts), "cmake": dict(ran.facts or {})}


def configuring(
    backend: Backend,
    *,
    python: Path,
    source: Path,
    build: Path,
    environ: Mapping[str, str],
    root: Path,
    gate: Gate,
    profile_lines: str,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Configuring:
    """Write overrides.cmake into `root` and return the call that reads it.

    Args:
        wrap: turns the command into the one that is run: the rehearsal's run inside a Debian root.
    """
    overrides = write_overrides(root / "overrides.cmake", expect_mps=gate.use_mps, profile_lines=profile_lines)
    command = configure_command(
        backend, python=python, source=source, build=build, environ=environ, overrides=overrides
    )
    return Configuring(command=wrap(command), build=build, overrides=overrides, gate=gate)


def write_overrides(destination: Path, *, expect_mps: bool, profile_lines: str = "") -> Path:
    """Write the one CMake file that enters every configure of ours, and return it.

    An equal file is left as it is: ninja looks at its time, and would configure again.
    """
    template = (Path(__file__).parent / "overrides.cmake").read_text(encoding="utf-8")
    expected = f"set(MPS_BUILD_EXPECT_USE_MPS {'ON' if expect_mps else 'OFF'})\n"
    text = expected + profile_lines + template
    if not destination.is_file() or destination.read_text(encoding="utf-8") != text:
        write_whole(destination, text)
    return destination


def configure_command(
    backend: Backend, *, python: Path, source: Path, build: Path, environ: Mapping[str, str], overrides: Path
) -> Command:
    """Return the configure call of an era (releases_and_breakages: the two phases from 2.14 on)."""
    environ = {**environ, "MPS_BUILD_GATE_FOLLOWS": "1"}
    if backend == "setuptools":
        # setup.py forwards CMAKE_* variables as -D.
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return Command(argv=(str(python), "setup.py", "build", "--cmake-only"), cwd=source, environ=whole)
    argv = (
        "cmake",
        "-GNinja",
        "-S",
        str(source),
        "-B",
        str(build),
        # The back end gives the same values: where the two calls differ, everything is compiled again.
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={overrides}",
        f"-DPython_EXECUTABLE={python}",
        *_architecture(environ),
        *(f"-D{name}={value}" for name, value in forwarded(environ).items()),
    )
    return Command(argv=argv, cwd=source, environ=environ)


def _architecture(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what scikit-build-core derives from ARCHFLAGS on a Mac: it does so in its own call, so ours must too."""
    wanted = re.findall(r"-arch (\S+)", environ.get("ARCHFLAGS", "")) if sys.platform == "darwin" else []
    return (f"-DCMAKE_OSX_ARCHITECTURES={';'.join(wanted)}",) if wanted else ()


def configure(command: Command, *, build: Path, log: Path, reporter: Reporter, new_python: bool) -> ConfigureRun:
    """Run one configure and return what it left.

    Args:
        new_python: the tree was configured for another Python: what CMake remembers of it is dropped,
            and nothing else, so that libtorch is not built again.

    Raises:
        GateError: configure itself failed (the message holds its last lines), or never read overrides.cmake.
    """
    cache = build / "CMakeCache.txt"
    if new_python and cache.is_file():
        cache.write_text(without_python(cache.read_text(encoding="utf-8")), encoding="utf-8")
        (build / "build.ninja").unlink(missing_ok=True)
    (build / FACTS).unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    reporter.started("Configure", unit="lines")
    count = 0

    def watch(line: str) -> None:
        nonlocal count
        count += 1
        reporter.advanced(count, note=line.strip()[:60])

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-15:])
        error = GateError(f"configure failed ({failure}):\n{text}", hint=f"the whole output is in {log}")
        raise error from failure
    reporter.done()
    ran = read_run(build, log)
    if ran.facts is None:
        # Without overrides.cmake nothing would stop a build that the back end configures again with MPS off.
        raise GateError(
            f"configure ended without {FACTS}: it did not read our overrides.cmake, or did not run CMake at all",
            hint=f"CMAKE_PROJECT_TOP_LEVEL_INCLUDES takes CMake 3.24 or newer; the whole output is in {log}",
        )
    return ran


def read_run(build: Path, log: Path) -> ConfigureRun:
    """Return what a configure left behind."""
    facts = build / FACTS
    cache = build / "CMakeCache.txt"
    return ConfigureRun(
        log_text=log.read_text(encoding="utf-8", errors="replace"),
        cache_text=cache.read_text(encoding="utf-8", errors="replace") if cache.is_file() else "",
        facts=read_json(facts) if facts.is_file() else None,
        build=build,
    )


def without_python(cache_text: str) -> str:
    """Return a CMakeCache without the entries that name an interpreter, and without their comments.

    >>> without_python("//of A\\nA:BOOL=ON\\n//of P\\nPython_EXECUTABLE:FILEPATH=/x\\n_Python_H:INTERNAL=1\\n")
    '//of A\\nA:BOOL=ON\\n'
    """
    kept: list[str] = []
    for line in cache_text.split("\n"):
        if not _PYTHON_ENTRY.match(line):
            kept.append(line)
            continue
        while kept and kept[-1].startswith("//"):  # CMake refuses a comment without its entry
            kept.pop()
    return "\n".join(kept)
