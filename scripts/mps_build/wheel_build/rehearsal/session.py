"""A macOS recipe tried on Linux: the steps of build_wheel that Linux can do, in order, each under a receipt."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import BuildEnvironmentError, CompileError, GateError, reason_of
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import Ledger, Receipt, StepResult, digest_of, fingerprint
from mps_build.common.recipe.locks import lock_of
from mps_build.common.recipe.model import Recipe
from mps_build.common.workspace import Workspace, cache_folder, remove_tree, work_folder

from ..artifacts import SourceTree
from ..backend import build_folder
from ..compiler_environ import build_environ
from ..mm.check import check_tree_files, mm_files, oldest_macos
from ..ninja import compile_objects, ninja_of, object_of, words_of
from ..steps.configure import configuring
from ..steps.create_environment import create_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One thing that was tried, and what came of it."""

    what: str
    result: str
    proves: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rehearsal's commands run, and the Python that is there; `wrap` brings a command in."""

    name: str
    python: str
    interpreter: Path
    wrap: Callable[[Command], Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A patched tree with the environment that its rehearsal sees, and how to run a command there."""

    recipe: Recipe
    tree: SourceTree
    python: Path
    environ: Mapping[str, str]
    tools: Mapping[str, str]
    digest: str
    wrap: Callable[[Command], Command]


def rehearsal_folder() -> Path:
    """Return where rehearsals lie; the roots are shared by all of them."""
    return work_folder() / "rehearsal"


class Rehearsal:
    """One rehearsal: where it works, whom it tells, what it has tried so far."""

    def __init__(self, recipe: Recipe, *, mode: str, jobs: int, console: Console) -> None:
        self.recipe = recipe
        self.jobs = jobs
        self.console = console
        self.workspace = Workspace(root=rehearsal_folder() / f"{recipe.name}-{mode}")
        self.ledger = Ledger(self.workspace.receipts)
        self.tried: list[Tried] = []

    def log(self, name: str) -> Path:
        """Return the path of a step's log; its folder may not exist yet."""
        return self.workspace.logs / f"{name}.log"

    def environment(
        self, recipe: Recipe, tree: SourceTree, source: str, *, place: Place, toolchain: Toolchain
    ) -> Prepared:
        """Return everything that configure and compile need, the locked requirements installed."""
        version = place.python
        venv = self.workspace.environment("rehearsal", version)
        receipt = self._locked(recipe, venv, place) if version in recipe.pythons else self._systems_own(venv, place)
        extra = {"PYTHONPATH": str(self.workspace.backend), "PYTORCH_BUILD_VERSION": recipe.version}
        environ, _ = build_environ(
            recipe,
            inherited=os.environ,
            venv=venv,
            toolchain=toolchain,
            jobs=self.jobs,
            epoch=tree.epoch,
            settings={},
            extra={**extra, "PYTORCH_BUILD_NUMBER": "1"},
        )
        return Prepared(
            recipe=recipe,
            tree=tree,
            python=venv / "bin" / "python",
            environ=environ,
            tools=receipt.facts["tools"],
            digest=digest_of([receipt.digest, source]),
            wrap=place.wrap,
        )

    def _locked(self, recipe: Recipe, venv: Path, place: Place) -> Receipt:
        """Install what the recipe's lock names into a venv."""
        lock = lock_of(recipe, place.python)

        def create() -> StepResult:
            tools = create_environment(
                interpreter=place.interpreter,
                lock=lock,
                destination=venv,
                backend=self.workspace.backend,
                cache=cache_folder(),
                environ=fetch_environ(os.environ),
                log=self.log("create_environment"),
                reporter=self.console,
                wrap=place.wrap,
            )
            return StepResult(trees=(venv,), facts={"tools": tools})

        inputs = {"lock": lock.sha256, "place": place.name}
        receipt = self.ledger.run("create_environment", version=1, inputs=inputs, action=create)
        self.note("lock", f"{lock.name} installed in {place.name}", "its hashes and versions are available", receipt)
        return receipt

    def _systems_own(self, venv: Path, place: Place) -> Receipt:
        """Make a venv over the system's own packages, for a Python that is none of the recipe's: it has no lock."""

        def create() -> StepResult:
            remove_tree(venv)
            argv = (str(place.interpreter), "-m", "venv", "--system-site-packages", "--without-pip", str(venv))
            log = self.log("create_environment")
            try:
                run_logged(place.wrap(Command(argv=argv, environ=fetch_environ(os.environ))), log=log)
            except CommandFailed as failure:
                raise BuildEnvironmentError(f"no venv: {failure}", hint=f"the whole output is in {log}") from failure
            return StepResult(trees=(venv,), facts={"tools": {}})

        receipt = self.ledger.run("create_environment", version=1, inputs={"place": place.name}, action=create)
        result = f"not used: Python {place.python} of {place.name} is none of the recipe's; its own packages are used"
        self.note("lock", result, "nothing about the lock on Linux", receipt)
        return receipt

    def configure(self, ready: Prepared, *, lines: str) -> Receipt:
        """Return the receipt of a configure that passed the gate; other inputs, a fresh build folder."""
        backend, tree = ready.recipe.backend, ready.tree.root
        build = build_folder(backend, source=tree, build=self.workspace.build)
        call = configuring(
            backend,
            python=ready.python,
            source=tree,
            build=build,
            environ=ready.environ,
            root=self.workspace.root,
            gate=ready.recipe.gate,
            profile_lines=lines,
            wrap=ready.wrap,
        )

        def run() -> StepResult:
            return StepResult(
                trees=(build,), facts=call.run(fresh=True, log=self.log("configure"), reporter=self.console)
            )

        inputs = {
            "previous": ready.digest,
            "environ": {name: ready.environ[name] for name in sorted(ready.environ) if name not in _PASSING},
            "overrides": fingerprint(call.overrides)["sha256"],
            "gate": ready.recipe.gate.model_dump(),
        }
        return self.ledger.run("configure", version=1, inputs=inputs, action=run)

    def compile_patched(self, ready: Prepared) -> None:
        """Compile each C++ file that a patch touches; name those that only a Mac can compile."""
        names = self.patched_files()
        files = [ready.tree.root / name for name in names]
        build = build_folder(ready.recipe.backend, source=ready.tree.root, build=self.workspace.build)
        units = read_units(build)
        objective_c = mm_files(names)
        ours = [ready.tree.root / name for name in objective_c]
        found, left = units_of(units, [file for file in files if file.suffix in _SOURCES and file not in ours])
        headers = [file for file in files if file.suffix in _HEADERS]
        if objective_c:
            self._check_mm(ready.tree.root, objective_c)
        if not found and not left and not headers and not objective_c:
            self.note("patched files", f"no C++ among them ({', '.join(names) or 'no patches'})", "nothing more")
            return
        near = [(header, unit) for header in headers if (unit := neighbour(units, header))]
        # A header's neighbour is compiled for what it needs first: generated headers.
        objects = dict.fromkeys(unit.object for unit in (*found, *(unit for _, unit in near)))
        if objects:
            self.compile(ready, list(objects), what="patched files", log="compile_patched")
        for header, unit in near:
            self._read_header(ready, header, unit, build)
        others = [file.name for file in left]
        result = f"{len(found)} C++ files compiled, {len(near)} headers read by the compiler"
        result += f"; not compiled here: {', '.join(others)}" if others else ""
        self.note("patched files", result, "the patches' C++ compiles")

    def _check_mm(self, root: Path, names: tuple[str, ...]) -> None:
        """Check the Objective-C++ that patches touch, with the declarations and rules of check_mm."""
        target = oldest_macos(self.recipe)
        report = check_tree_files(root, names, target=target, folder=work_folder() / "check_mm", reporter=self.console)
        if isinstance(report, str):
            self.note("patched .mm files", f"not checked: {report}", "nothing about their Objective-C++")
            return
        rows = [f"{each.file}:{each.line}: {each.text}" for each in report.diagnostics]
        if rows:
            raise CompileError(
                "the patches' Objective-C++ is wrong:\n" + "\n".join(rows),
                hint="docs/build/check_mm.md; `nox -s check_mm -- FILE --source TREE` checks one file again",
                document={"diagnostics": [each.document() for each in report.diagnostics]},
            )
        result = f"{len(report.files)} checked as check_mm does, nothing wrong"
        self.note("patched .mm files", result, "selectors, types, enums, version guards; not what they compute")

    def _read_header(self, ready: Prepared, header: Path, unit: Unit, build: Path) -> None:
        command = Command(argv=header_argv(unit, header), cwd=build, environ=ready.environ)
        log = self.log(f"compile_header-{header.stem}")
        log.unlink(missing_ok=True)
        try:
            run_logged(ready.wrap(command), log=log)
        except CommandFailed as failure:
            raise CompileError(f"{header.name} does not compile", hint=f"the whole output is in {log}") from failure

    def patched_files(self) -> tuple[str, ...]:
        """Return what the recipe's patches touch, from the receipt."""
        receipts = [receipt for receipt in self.ledger.receipts if receipt.step == "apply_patches"]
        facts = receipts[-1].facts if receipts else {}
        return tuple(facts.get("files") or facts.get("changed") or ())

    def compile(
        self, ready: Prepared, objects: list[str], *, what: str, log: str, state: str | None = None, jobs: int = 0
    ) -> Receipt:
        """Compile the named objects and what they need first; a second time there is nothing to do.

        Args:
            state: of the sources, where an edit must be seen. jobs: compilers at once (0: the rehearsal's).
        """
        build = build_folder(ready.recipe.backend, source=ready.tree.root, build=self.workspace.build)
        argv = (ninja_of(build), "-C", str(build), f"-j{jobs or self.jobs}", "-k", "0", *objects)
        command = ready.wrap(Command(argv=argv, cwd=build, environ=ready.environ))

        def run() -> StepResult:
            compile_objects(command, what=what, log=self.log(log), reporter=self.console)
            return StepResult(files=tuple(build / name for name in objects if (build / name).is_file()))

        configured = next(each for each in reversed(self.ledger.receipts) if each.step == "configure")
        inputs = {"previous": configured.digest, "objects": list(objects), **({"state": state} if state else {})}
        return self.ledger.run(log, version=1, inputs=inputs, action=run)

    def note(self, what: str, result: str, proves: str, receipt: Receipt | None = None) -> None:
        """Keep what was tried for the closing table."""
        seconds = None if receipt is None or receipt.skipped else receipt.seconds
        self.tried.append(Tried(what=what, result=result, proves=proves, seconds=seconds))

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        steps = [{"step": each.step, "skipped": each.skipped, "seconds": each.seconds} for each in self.ledger.receipts]
        return {"recipe": self.recipe.name, "tried": [asdict(each) for each in self.tried], "steps": steps}


_SOURCES = (".cpp", ".cc", ".c", ".mm", ".m")
_HEADERS = (".h", ".hpp", ".cuh")
_PASSING = frozenset(
    {"HOME", "TMPDIR", "USER", "LOGNAME", "TERM", "MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL", "GITHUB_ACTIONS"}
)


# A configured tree's compile commands: which object comes from which source, and a seeded draw of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One translation unit: its source, the object that ninja knows it by, and the compiler's arguments."""

    source: Path
    object: str
    argv: tuple[str, ...]

    @property
    def target(self) -> str:
        """Return the CMake target it belongs to, from `.../CMakeFiles/<target>.dir/...`."""
        return self.object.split("CMakeFiles/", 1)[-1].split(".dir/", 1)[0]


def read_units(build: Path) -> tuple[Unit, ...]:
    """Return every unit of a configured build folder, in the order of their objects.

    Raises:
        GateError: configure left no list of compile commands.
    """
    path = build / "compile_commands.json"
    try:
        entries = read_json(path)
        units = [_unit(entry) for entry in entries]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise GateError(
            f"{path} cannot be read: {reason_of(error)}", hint="configure again in a fresh build folder"
        ) from error
    return tuple(sorted(units, key=lambda unit: unit.object))


def _unit(entry: Mapping[str, str]) -> Unit:
    return Unit(source=Path(entry["file"]), object=object_of(entry), argv=tuple(words_of(entry["command"])))


def neighbour(units: Iterable[Unit], header: Path) -> Unit | None:
    """Return the C++ unit whose flags serve a header best: the nearest; of several, one of torch_cpu."""

    def shared(unit: Unit) -> int:
        return sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(unit.source.parts, header.parts, strict=False))
        )

    usable = [unit for unit in units if unit.source.suffix in (".cpp", ".cc", ".cxx")]
    return max(usable, key=lambda unit: (shared(unit), unit.target == "torch_cpu", unit.object), default=None)


def header_argv(unit: Unit, header: Path) -> tuple[str, ...]:
    """Return the arguments that read a header first of all, with a unit's flags.

    A precompiled header is left out: it may hold the very header, which would then be skipped.
    """
    kept: list[str] = []
    words = list(unit.argv)
    while words:
        word = words.pop(0)
        if word == "-o":
            words.pop(0)
        elif word == "-Xclang" and words[:1] in (["-include-pch"], ["-include"]):
            del words[:3]
        elif word == "-c" or word == str(unit.source):
            continue
        else:
            kept.append(word)
    # Included, not read as the main file, where `#pragma once` would not hold against a circle of includes.
    # To an object, since zig makes one whatever -fsyntax-only says.
    return (*kept, "-c", "-o", ".mps-build-header.o", "-include", str(header), "-x", "c++", os.devnull)


def draw(units: Iterable[Unit], *, targets: Sequence[str], count: int, seed: int) -> tuple[Unit, ...]:
    """Return `count` C++ units of the targets, the same for the same tree and seed; all of them if there are fewer."""
    pool = [unit for unit in units if unit.target in targets and unit.source.suffix in (".cpp", ".cc", ".cxx")]
    return tuple(random.Random(seed).sample(pool, min(count, len(pool))))


def units_of(units: Iterable[Unit], files: Iterable[Path]) -> tuple[tuple[Unit, ...], tuple[Path, ...]]:
    """Return the units of the given sources, and the sources that no unit compiles."""
    by_source: dict[Path, list[Unit]] = {}
    for unit in units:
        by_source.setdefault(unit.source, []).append(unit)
    found, missing = [], []
    for file in files:
        found += by_source.get(file, [])
        if file not in by_source:
            missing.append(file)
    return tuple(found), tuple(missing)


def macho_kind(path: Path) -> str | None:
    """Return what an arm64 Mach-O file is (`object`, `dylib`), or None for any other file."""
    with path.open("rb") as file:
        head = file.read(16)
    if len(head) < 16:
        return None
    magic, processor, _, kind = struct.unpack("<4I", head)
    is_arm64 = magic == 0xFEEDFACF and processor == 0x0100000C
    return {1: "object", 6: "dylib"}.get(kind) if is_arm64 else None
