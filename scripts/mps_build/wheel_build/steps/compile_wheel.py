"""The compile of a build: one `python -m build` for both eras; after an edit, only what changed is packed anew."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mps_build.common.errors import CompileError
from mps_build.common.process import Command
from mps_build.common.receipts import Receipt, StepResult
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

from ..artifacts import BuildContext, BuildEnvironment, SourceTree
from ..backend import Backend, config_settings
from ..compiler_cache.launcher import cache_counts, cache_gain, cache_troubles, ninja_log_text, slowest_steps
from ..failure import with_retries
from ..ninja import ninja_of, run_build
from ..zip_members import carry, compressed, recorded

_STEP = "compile_wheel"
_OF_PYTHON = (".py", ".pyi")


def compile_for_build(
    context: BuildContext, environment: BuildEnvironment, tree: SourceTree, *, source: str, configured: Receipt
) -> Receipt:
    """Return the receipt of the compiled wheel, which lies in `context.compiled_folder`.

    The next wheel of an edited tree is made of the last one where that can be; else everything is packed.
    """
    request, command = context.request, _command(context, environment, tree)

    def run() -> StepResult:
        output, build = context.compiled_folder(environment), context.build_folder(tree)
        log = context.workspace.logs / f"compile_wheel-{environment.python_version}.log"
        launcher = request.compilers.launcher
        before, steps_before = cache_counts(launcher, environment.environ), ninja_log_text(build)
        wheel = _repacked(context, environment, tree, log=log) or with_retries(
            lambda command: compile_wheel(command, output=output, log=log, reporter=context.console),
            command,
            build=build,
            log=log,
            jobs=request.compilers.jobs,
            release=request.recipe.release,
            console=context.console,
        )
        gain = cache_gain(before, cache_counts(launcher, environment.environ))
        for trouble in cache_troubles(gain):
            context.console.warn(trouble)
        slowest = slowest_steps(build, before=steps_before)
        return StepResult(files=(wheel,), facts={"cache": gain, "slowest": slowest})

    inputs = _inputs(context, environment, tree, source=source, configured=configured.digest)
    return context.ledger.run(_STEP, version=1, inputs=inputs, action=run, key=context.key(environment))


def is_compiled(
    context: BuildContext, environment: BuildEnvironment, tree: SourceTree, *, source: str, configured: str
) -> bool:
    """Return whether the wheel of a configure (its digest) is there, so that `compile_for_build` would do nothing."""
    inputs = _inputs(context, environment, tree, source=source, configured=configured)
    return context.ledger.holds(_STEP, version=1, inputs=inputs, key=context.key(environment))


def _inputs(
    context: BuildContext, environment: BuildEnvironment, tree: SourceTree, *, source: str, configured: str
) -> dict[str, Any]:
    return {"previous": configured, "argv": _command(context, environment, tree).argv, "source": source}


def _command(context: BuildContext, environment: BuildEnvironment, tree: SourceTree) -> Command:
    return build_command(
        context.request.recipe.backend,
        python=environment.python,
        source=tree.root,
        build=context.build_folder(tree),
        output=context.compiled_folder(environment),
        environ=environment.environ,
        overrides=context.overrides,
    )


def _repacked(context: BuildContext, environment: BuildEnvironment, tree: SourceTree, *, log: Path) -> Path | None:
    """Return the next wheel of an edited tree, built by what depends on the edit, packed by what changed.

    None where there is no last one, where it would not hold the same members, or where compiling needs a retry.
    """
    request, reporter = context.request, context.console
    backend, output, build = request.recipe.backend, context.compiled_folder(environment), context.build_folder(tree)
    last = sorted(output.glob("*.whl"))
    version = request.version(dirty=bool(tree.dirty))
    if request.profile != "develop" or len(last) != 1 or (version and last[0].name.split("-")[1] != version):
        return None
    commands = make_commands(
        backend,
        python=environment.python,
        source=tree.root,
        build=build,
        environ=environment.environ,
        overrides=context.overrides,
        jobs=request.compilers.jobs,
    )
    try:
        for number, command in enumerate(commands):
            run_build(command, log=log if number == 0 else log.with_suffix(f".{number}.log"), reporter=reporter)
    except CompileError:
        return None
    files = files_of(backend, source=tree.root, build=build, previous=last[0])
    if files is None:
        return None
    wheel, changed = repack_wheel(last[0], files, output=output)
    reporter.line(f"repacked: {len(changed)} of {len(files)} files")
    return wheel


def build_command(
    backend: Backend,
    *,
    python: Path,
    source: Path,
    build: Path,
    output: Path,
    environ: Mapping[str, str],
    overrides: Path,
) -> Command:
    """Return the call that compiles and packs.

    No isolation: the environment is the locked one. The dependency check is skipped because old
    releases list requirements (dataclasses, future) that no supported Python wants.
    """
    argv = [str(python), "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    argv += ["--outdir", str(output)]
    if backend == "setuptools":
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return Command(argv=(*argv, str(source)), cwd=source, environ=whole)
    given = config_settings(python=python, build=build, environ=environ, overrides=overrides)
    argv += [f"-C{name}={value}" for name, value in given.items()]
    return Command(argv=(*argv, str(source)), cwd=source, environ=environ)


def compile_wheel(command: Command, *, output: Path, log: Path, reporter: Reporter) -> Path:
    """Run the build and return the one wheel it made in `output` (emptied before).

    Raises:
        CompileError: the build failed, or made no wheel, or several. `tail` holds the last lines.
    """
    remove_tree(output)
    output.mkdir(parents=True)
    run_build(command, log=log, reporter=reporter)
    wheels = sorted(output.glob("*.whl"))
    if len(wheels) != 1:
        names = ", ".join(wheel.name for wheel in wheels) or "none"
        raise CompileError(f"the build ended without an error, but did not make one wheel: {names}", hint=f"see {log}")
    return wheels[0]


def make_commands(
    backend: Backend, *, python: Path, source: Path, build: Path, environ: Mapping[str, str], overrides: Path, jobs: int
) -> tuple[Command, ...]:
    """Return what brings the edited tree up to date, short of packing it."""
    if backend == "setuptools":
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return (Command(argv=(str(python), "setup.py", "build"), cwd=source, environ=whole),)
    return (
        Command(argv=(ninja_of(build), "-C", str(build), f"-j{jobs}"), cwd=source, environ=environ),
        Command(argv=("cmake", "--install", str(build), "--prefix", str(staging(build))), cwd=source, environ=environ),
    )


def staging(build: Path) -> Path:
    """Return where scikit-build-core's era installs to between two wheels: cmake then copies only what is newer."""
    return build / "mps-build-staging"


def files_of(backend: Backend, *, source: Path, build: Path, previous: Path) -> Mapping[str, Path] | None:
    """Return the file behind each member of the last wheel; None where the next would have other members."""
    with zipfile.ZipFile(previous) as wheel:
        members = {info.filename for info in wheel.infolist() if not info.is_dir()}
    members = {name for name in members if not name.split("/")[0].endswith((".dist-info", ".data"))}
    if backend == "setuptools":
        trees = sorted(build.glob("lib.*"))
        found = _below(trees[0]) if len(trees) == 1 else {}
        return found if set(found) == members else None
    installed = _below(staging(build))
    packages = {name.split("/")[0] for name in members}
    own = {
        str(path.relative_to(source)): path
        for package in packages
        for path in (source / package).rglob("*")
        if path.suffix in _OF_PYTHON and "__pycache__" not in path.parts
    }
    others = {name: source / name for name in members if (source / name).is_file()}
    found = {**others, **own, **installed}
    return found if set(found) == members else None


def repack_wheel(previous: Path, files: Mapping[str, Path], *, output: Path) -> tuple[Path, tuple[str, ...]]:
    """Write the wheel with these files' contents to `output` and return it, with the names of what changed."""
    output.mkdir(parents=True, exist_ok=True)
    destination, beside = output / previous.name, output / f".{previous.name}.part"
    changed: dict[str, tuple[str, str]] = {}
    with zipfile.ZipFile(previous) as source, zipfile.ZipFile(beside, "w") as target:
        rows = recorded(source)
        for info in source.infolist():
            name = info.filename
            data = files[name].read_bytes() if name in files else None
            row = _row(data) if data is not None else None
            new = zipfile.ZipInfo(name, date_time=info.date_time)
            new.external_attr, new.create_system = info.external_attr, info.create_system
            if name.endswith(".dist-info/RECORD"):
                new.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(new, _record(source.read(info).decode("utf-8"), changed))
            elif row is None or row == rows.get(name):
                carry(target, new, compressed(source, info), like=info)
            else:
                assert data is not None
                changed[name] = row
                # Stored: finish_wheel compresses it, once.
                target.writestr(new, data)
    beside.replace(destination)
    return destination, tuple(sorted(changed))


def _below(folder: Path) -> dict[str, Path]:
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _row(data: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(data))


def _record(text: str, changed: Mapping[str, tuple[str, str]]) -> str:
    """Return a RECORD with other rows for what changed. RECORD comes last in every wheel, as PEP 427 asks."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        writer.writerow([row[0], *changed[row[0]]] if row[0] in changed else row)
    return out.getvalue()
