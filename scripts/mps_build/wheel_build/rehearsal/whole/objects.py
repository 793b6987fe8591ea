"""Everything compiled, what no library here has stood in for, and linked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, capture
from mps_build.common.receipts import StepResult

from ...backend import build_folder
from ...failure import with_retries
from ...ninja import ninja_of, run_build
from ...zig.files import write_if_new
from ..session import Prepared, Rehearsal, Unit, read_units
from .toolchain import WholeToolchain, exported_names, parse_external

_OBJECTIVE = (".mm", ".m")
_MOST_ARGUMENTS = 500
_LIBTORCH = ("c10", "torch_cpu")
CPU_LIBRARY, PYTHON_LIBRARY = "lib/libtorch_cpu.dylib", "lib/libtorch_python.dylib"
# Library -> how its names begin: a C prefix, or a namespace as mangled names spell it.
_LIBRARIES: Mapping[str, str] = {
    "protobuf": r"6google8protobuf",
    "onnx": r"4onnx",
    "cpp-httplib": r"7httplib",
    "fmt": r"3fmt",
    "sleef": r"^_Sleef_",
    "cpuinfo": r"^_cpuinfo_",
    "pthreadpool": r"^_pthreadpool_",
}
_PATTERNS = {library: re.compile(pattern) for library, pattern in _LIBRARIES.items()}
# Left to be looked up when the module is loaded, as on a Mac: the interpreter has them.
_PYTHON = re.compile(r"^__?Py[A-Z_]")


def is_objective(unit: Unit) -> bool:
    """Return whether the unit is Objective-C or Objective-C++, by its suffix."""
    return unit.source.suffix in _OBJECTIVE


def tree_build(ready: Prepared) -> Path:
    """Return the configured build folder."""
    return build_folder(ready.recipe.backend, source=ready.tree.root, build=ready.tree.root / "build")


def compile_whole(rehearsal: Rehearsal, ready: Prepared, *, state: str, bindings: bool) -> tuple[Unit, ...]:
    """Compile libtorch's files, with `bindings` all others of the configured tree too, and return them.

    A file that breaks with a wide header is compiled without it; ninja goes on where an interruption stopped it.

    Args:
        state: of the sources; another one has ninja look again.
    """
    build = tree_build(ready)
    units = whole_units(build, bindings=bindings)
    what = "bindings" if bindings else "libtorch files"
    log = f"compile_{what.split(maxsplit=1)[0]}"
    objects = [unit.object for unit in units]
    with_retries(
        lambda command: rehearsal.compile(ready, objects, what=what, log=log, state=state, jobs=_jobs(command)),
        Command(argv=("ninja",), environ={"MAX_JOBS": str(rehearsal.jobs)}),
        build=build,
        log=rehearsal.log(log),
        jobs=rehearsal.jobs,
        release=ready.recipe.release,
        console=rehearsal.console,
    )
    objective = [unit for unit in units if is_objective(unit)]
    rehearsal.note(
        f"compiled: {what}",
        f"{len(units)} files, {len(objective)} of them Objective-C++, to arm64 Mach-O",
        "syntax, types and names, against declarations of ours; not that a method exists on a given macOS",
        rehearsal.ledger.receipts[-1],
    )
    return units


def whole_units(build: Path, *, bindings: bool) -> tuple[Unit, ...]:
    """Return the tree's files, those of libtorch or all."""
    units = (unit for unit in read_units(build) if "cmake_pch" not in unit.object)
    return tuple(unit for unit in units if bindings or unit.target in _LIBTORCH)


def make_fakes(rehearsal: Rehearsal, ready: Prepared, whole: WholeToolchain, *, bindings: bool) -> Wanted:
    """Write archives of what libtorch's objects, or all, want and no library here has; return it, by library.

    Raises:
        CompileError: a name is wanted that belongs to no library known here.
    """
    build = tree_build(ready)
    objects = [unit.object for unit in whole_units(build, bindings=bindings)]
    archives = [str(path.relative_to(build)) for path in sorted(build.glob("lib/*.a"))]
    others = [str(path) for path in (whole.runtime, *sorted(rehearsal.workspace.root.glob("libomp/lib/*.dylib")))]
    undefined, had = _external(ready, whole, objects)
    had |= _external(ready, whole, [*archives, *others])[1]
    for stub in sorted(whole.sdk.sdk.rglob("*.tbd")):
        had |= exported_names(stub.read_text(encoding="utf-8"))
    wanted = wanted_names(undefined, had=had | _LINKERS_OWN)
    if wanted.unknown:
        raise CompileError(
            f"{len(wanted.unknown)} names are wanted that neither the release nor macOS as the official wheel uses it "
            f"has: {', '.join(wanted.unknown[:8])}",
            hint="a name of macOS that no official wheel imports goes into the declarations (wheel_build/objc); "
            "one of another library into wheel_build/rehearsal/whole/objects.py",
            document={"unknown": list(wanted.unknown)},
        )
    for library, names in wanted.libraries.items():
        _write_archive(rehearsal, ready, whole, library, names)
    listed = ", ".join(f"{library} {len(names)}" for library, names in wanted.libraries.items())
    rehearsal.note(
        "fakes",
        f"names of libraries that Debian's tree takes from the system: {listed or 'none'}",
        "the wheel links; a call of one of them would trap",
    )
    return wanted


def link_whole(rehearsal: Rehearsal, ready: Prepared, *targets: str) -> None:
    """Link these targets, or all that the tree builds.

    Raises:
        CompileError: a link failed; the message holds the linker's own words.
    """
    build, log = tree_build(ready), rehearsal.log("link")
    command = Command(
        argv=(ninja_of(build), "-C", str(build), f"-j{rehearsal.jobs}", *targets), cwd=build, environ=ready.environ
    )
    try:
        run_build(ready.wrap(command), log=log, reporter=rehearsal.console, title="Link")
    except CompileError as error:
        text = log.read_text(encoding="utf-8", errors="replace")
        said = [line for line in text.splitlines() if "ld64.lld: error" in line]
        if said:
            raise CompileError("\n".join([str(error), *said[:8]]), hint=error.hint) from error
        raise


def _write_archive(
    rehearsal: Rehearsal, ready: Prepared, whole: WholeToolchain, library: str, names: Sequence[str]
) -> None:
    """Write one library's archive, unless it is there with these names: its time is what ninja looks at."""
    folder, tools = whole.sdk.stubs, whole.sdk.tools
    # Not the stub's own names: its objects are outputs of a step, which would be run again, and everything linked anew.
    archive, source = folder / "lib" / f"lib{library}.a", folder / f"{library}-wanted.s"
    demangled = _lines(ready, (_beside(whole, "llvm-cxxfilt"),), [name.removeprefix("_") for name in names])
    text = fake_source(names, demangled)

    def make() -> StepResult:
        write_if_new(source, text)
        compiled = source.with_suffix(".o")
        archive.unlink(missing_ok=True)
        for argv in (
            (str(tools / "cc"), "-c", "-o", str(compiled), str(source)),
            (str(tools / "ar"), "rcs", str(archive), str(compiled)),
        ):
            done = capture(ready.wrap(Command(argv=argv, cwd=folder, environ=ready.environ)), timeout_seconds=120)
            if not done.ok:
                raise CompileError(f"the fake of {library}: {done.stderr.strip() or done.exit}")
        return StepResult(files=(archive,))

    rehearsal.ledger.run("fake", version=1, inputs={"text": text}, action=make, key=library)


def _external(ready: Prepared, whole: WholeToolchain, files: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return what files want of others and what they define; each is read once."""
    argv = (_beside(whole, "llvm-nm"), "--extern-only", "--format=posix")
    return parse_external(_lines(ready, argv, files))


def _lines(ready: Prepared, argv: tuple[str, ...], files: Sequence[str]) -> list[str]:
    """Return what a program of LLVM's prints of its arguments, given to it in parts."""
    found: list[str] = []
    for begin in range(0, len(files), _MOST_ARGUMENTS):
        part = (*argv, *files[begin : begin + _MOST_ARGUMENTS])
        build = tree_build(ready)
        answer = capture(ready.wrap(Command(argv=part, cwd=build, environ=ready.environ)), timeout_seconds=600)
        if not answer.ok:
            raise CompileError(f"{Path(argv[0]).name} failed: {answer.stderr.strip()[:500] or answer.exit}")
        found += answer.stdout.splitlines()
    return found


def _beside(whole: WholeToolchain, name: str) -> str:
    return str(whole.llvm / name)


def _jobs(command: Command) -> int:
    return int((command.environ or {})["MAX_JOBS"])


_LINKERS_OWN = frozenset({"___dso_handle", "dyld_stub_binder", "__mh_execute_header", "__mh_dylib_header"})


# Libraries that Debian's tree takes from the system and no Mac's copy is at hand for: which names are wanted of them.
#
# What PyTorch's objects want and nobody has goes into a fake that traps when it is called: the wheel links, and
# the report names what is not real in it. A name that belongs to no library known here stops the rehearsal.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the objects want and nobody has: names of each library, and names that belong to none known here."""

    libraries: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...]


def wanted_names(undefined: Iterable[str], *, had: Iterable[str]) -> Wanted:
    """Return which names are missing, by library.

    Args:
        undefined: what objects refer to.
        had: what objects, system libraries and libraries that are built here define.

    >>> wanted_names(["_malloc", "_Sleef_expd2_u10", "_PyErr_Clear", "_what"], had=["_malloc"])
    Wanted(libraries={'sleef': ('_Sleef_expd2_u10',)}, unknown=('_what',))
    """
    found: dict[str, list[str]] = defaultdict(list)
    unknown = []
    for name in sorted(set(undefined) - set(had)):
        library = library_of(name)
        if library:
            found[library].append(name)
        elif not _PYTHON.match(name):
            unknown.append(name)
    return Wanted(libraries={library: tuple(names) for library, names in sorted(found.items())}, unknown=tuple(unknown))


def library_of(name: str) -> str | None:
    """Return the library that a symbol is of: the first whose namespace or prefix stands in it.

    >>> library_of("__ZN4onnx7checker11check_modelERKN6google8protobuf7MessageE")
    'onnx'
    >>> library_of("__ZTVN6google8protobuf7MessageE")
    'protobuf'
    """
    places = {library: match.start() for library, pattern in _PATTERNS.items() if (match := pattern.search(name))}
    return min(places, key=lambda library: places[library], default=None)


# Called when the first kernel is chosen, as by torch.randn. No is an answer that PyTorch knows: it then counts cores
# by the system's own call.
_ANSWER_NO = frozenset({"_cpuinfo_initialize"})


def fake_source(names: Sequence[str], demangled: Sequence[str]) -> str:
    """Return assembler text (arm64, Mach-O) that defines the names: functions trap, data is 64 zero bytes.

    A library that may say that it knows nothing of this machine, cpuinfo, says so.

    Args:
        demangled: each name as a person reads it, in the same order; a function has its parameters there.

    >>> print(fake_source(["_f"], ["f()"]))
    .section __TEXT,__text,regular,pure_instructions
    .globl _f
    .p2align 2
    _f:
      brk #0x1
    <BLANKLINE>
    """
    functions = [name for name, text in zip(names, demangled, strict=True) if _is_function(name, text)]
    data = [name for name in names if name not in set(functions)]
    lines = [".section __TEXT,__text,regular,pure_instructions"] if functions else []
    for name in functions:
        code = ["  mov w0, #0", "  ret"] if name in _ANSWER_NO else ["  brk #0x1"]
        lines += [f".globl {_quoted(name)}", ".p2align 2", f"{_quoted(name)}:", *code]
    lines += [".section __DATA,__data"] if data else []
    for name in data:
        lines += [f".globl {_quoted(name)}", ".p2align 3", f"{_quoted(name)}:", "  .space 64"]
    return "\n".join([*lines, ""])


def _is_function(name: str, demangled: str) -> bool:
    return not name.startswith("__Z") or "(" in demangled


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.$]+", name) else f'"{name}"'
