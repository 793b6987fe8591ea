"""Configured tree + environment -> Editable: built for the first time, importable where it lies, no wheel packed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, CompileError, disk_full
from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.reporter import Reporter
from mps_build.common.wheels.cache import own_folder
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import remove_tree

from ..artifacts import Editable
from ..backend import Backend, config_settings
from ..ninja import ninja_of, run_build, run_logged_or_fail

Wrap = Callable[[Command], Command]
# What it is installed as (PEP 660), without `pip install -e`: that wants the back end in the importing venv too.
_BUILD = (
    "import build, json, sys; build.ProjectBuilder(sys.argv[1]).build('editable', sys.argv[2], json.loads(sys.argv[3]))"
)
# What the project requires at run time. setup.py is asked by `egg_info`, the one question at which PyTorch's does not
# build all of libtorch first.
_REQUIREMENTS = {
    "setuptools": (
        "import json, pathlib, subprocess, sys; from importlib.metadata import PathDistribution as Found\n"
        "subprocess.check_call([sys.executable, 'setup.py', '-q', 'egg_info'], stdout=sys.stderr)\n"
        "print(json.dumps(Found(next(pathlib.Path().glob('*.egg-info'))).requires or []))"
    ),
    "scikit-build-core": (
        "import json; from build.util import project_wheel_metadata as metadata\n"
        "print(json.dumps(metadata('.', isolated=False).get_all('Requires-Dist') or []))"
    ),
}
# scikit-build-core's import hook knows what its own rebuild would install, and where.
_ASK_HOOK = """
import json, sys
for finder in sys.meta_path:
    if type(finder).__name__ == "ScikitBuildRedirectingFinder" and finder.path == sys.argv[1]:
        print(json.dumps([finder.install_dir, finder.install_options]))
"""
PTH = "mps-build-editable.pth"


def first_command(
    backend: Backend,
    *,
    python: Path,
    source: Path,
    build: Path,
    output: Path,
    environ: Mapping[str, str],
    overrides: Path,
) -> Command:
    """Return the first build: in place with setup.py (as its `develop` did), an editable wheel from 2.14 on."""
    if backend == "setuptools":
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return Command(argv=(str(python), "setup.py", "build_ext", "--inplace"), cwd=source, environ=whole)
    settings = config_settings(python=python, build=build, environ=environ, overrides=overrides)
    argv = (str(python), "-c", _BUILD, str(source), str(output), json.dumps(settings))
    return Command(argv=argv, cwd=source, environ=environ)


def build_editable(
    backend: Backend,
    first: Command,
    *,
    build: Path,
    output: Path,
    venv: Path,
    jobs: int,
    log: Path,
    reporter: Reporter,
    wrap: Wrap = lambda command: command,
) -> Editable:
    """Build the tree for the first time, make it importable from `venv`, and return how it is made anew.

    Args:
        first: from `first_command`.
        output: where the editable wheel goes; emptied.
        wrap: turns each command into the one that is run: the rehearsal's run inside a root.

    Raises:
        CompileError: the build failed, or it cannot be imported from there.
    """
    assert first.cwd is not None
    root = first.cwd
    remove_tree(output)
    output.mkdir(parents=True)
    run_build(wrap(first), log=log, reporter=reporter)
    ninja = (ninja_of(build), "-C", str(build), f"-j{jobs}")
    python = venv / "bin" / "python"
    if backend == "setuptools":
        (_site_packages(python, wrap) / PTH).write_bytes(os.fsencode(f"{root}\n"))
        remake = wrap(Command(argv=(*ninja, "install"), cwd=root, environ=first.environ))
        # setuptools compares times in whole seconds: an edit in the second of its last build would not be seen.
        again = wrap(Command(argv=(*first.argv, "--force"), cwd=root, environ=first.environ))
        return Editable(root=root, build=build, python=python, remake=remake, install=None, extensions=again)
    wheel = next(iter(output.glob("*.whl")), None)
    if wheel is None:
        raise CompileError("the build ended without an error, but made no editable wheel", hint=f"see {log}")
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q", "--no-deps")
    run_logged_or_fail(
        wrap(Command(argv=(*pip, "--force-reinstall", str(wheel)), cwd=output, environ=first.environ)), log
    )
    answer = capture(
        wrap(Command(argv=(str(python), "-I", "-c", _ASK_HOOK, str(build)), cwd=output, environ=first.environ))
    )
    if not answer.stdout.strip():
        raise CompileError(f"{wheel.name} installs no import hook: {answer.stderr.strip()}", hint=f"see {log}")
    place, options = parse_json(answer.stdout.splitlines()[-1])
    argv = ("cmake", "--install", str(build), "--prefix", place, *options)
    return Editable(
        root=root,
        build=build,
        python=python,
        remake=wrap(Command(argv=ninja, cwd=root, environ=first.environ)),
        install=wrap(Command(argv=argv, cwd=root, environ=first.environ)),
        extensions=None,
    )


def create_runtime(
    backend: Backend,
    *,
    interpreter: Path,
    destination: Path,
    builder: Command,
    numpy: str | None,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    reporter: Reporter,
    offline: bool = False,
    wrap: Wrap = lambda command: command,
) -> tuple[str, ...]:
    """Make the venv that imports the tree, with what the project requires at run time; return those requirements.

    Args:
        builder: a command of the build environment, whose Python and variables tell the project's metadata.
        numpy: the version that the bindings are built against; torch itself requires none.

    Raises:
        BuildEnvironmentError: a requirement is not to be had.
    """
    reporter.started("Create the environment that imports it")
    remove_tree(destination)
    asking = (builder.argv[0], "-c", _REQUIREMENTS[backend])
    asked = capture(wrap(Command(argv=asking, cwd=builder.cwd, environ=builder.environ)), timeout_seconds=600)
    if not asked.ok:
        raise BuildEnvironmentError(f"the project gives no metadata:\n{asked.stderr[-800:]}", hint=f"see {log}")
    wanted = [each for each in parse_json(asked.stdout.splitlines()[-1]) if "extra ==" not in each]
    wanted += [f"numpy=={numpy}"] if numpy else []
    python = destination / "bin" / "python"
    options = ("--disable-pip-version-check", "--no-input")
    wheels = cache / "wheels" / "editable"
    with _failures(log):
        run_logged(wrap(Command(argv=(str(interpreter), "-m", "venv", str(destination)), environ=environ)), log=log)
        if wanted and not offline:
            own_folder(cache / "wheels")
            asking = (*limited_pip(python, beside=destination), *options, "download", "-q", "-d", str(wheels), *wanted)
            run_pip(Command(argv=asking, environ=environ), log=log, tell=reporter.line, wrap=wrap)
        if wanted:
            pip = (str(python), "-m", "pip", *options, "install", "-q", "--no-index", "--find-links", str(wheels))
            run_logged(wrap(Command(argv=(*pip, *wanted), environ=environ)), log=log)
    reporter.done()
    return tuple(wanted)


def import_it(
    editable: Editable, module: str, *, environ: Mapping[str, str], wrap: Wrap = lambda command: command
) -> tuple[str, str]:
    """Return the version of what is imported, and from where.

    Raises:
        CompileError: it cannot be imported, or another copy of it is.
    """
    script = f"import {module} as it; print(it.__version__); print(it.__file__)"
    command = Command(argv=(str(editable.python), "-I", "-c", script), cwd=editable.build, environ=environ)
    answer = capture(wrap(command), timeout_seconds=300)
    lines = answer.stdout.split("\n")
    if not answer.ok or len(lines) < 2:
        text = "\n".join(answer.stderr.splitlines()[-6:])
        raise CompileError(f"{module} was built, but cannot be imported:\n{text}", hint=f"try it: {command}")
    version, place = lines[0], lines[1]
    if not Path(place).resolve().is_relative_to(editable.root.resolve()):
        raise CompileError(f"{module} was imported from {place}, not from {editable.root}", hint=f"try it: {command}")
    return version, place


def _site_packages(python: Path, wrap: Wrap) -> Path:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(capture(wrap(Command(argv=(str(python), "-I", "-c", ask), environ={}))).stdout.strip())


@contextmanager
def _failures(log: Path) -> Iterator[None]:
    try:
        yield
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        if full := disk_full("\n".join(failure.tail), during="while the environment is made"):
            raise full from failure
        hint = "is the network there? offline, run once without --offline" if "No matching" in text else None
        raise BuildEnvironmentError(f"{failure}:\n{text}", hint=hint or f"the whole output is in {log}") from failure
