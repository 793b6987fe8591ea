"""The first run of `build_wheel --editable`: the steps of a build up to configure, then importable in place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, CompileError, UsageError, disk_full
from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, CommandFailed, capture, kept_awake, run_logged
from mps_build.common.receipts import Receipt, StepResult
from mps_build.common.recipe.catalogue import defaults_file, recipe_file
from mps_build.common.recipe.locks import lock_file
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import own_folder
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import cache_folder, remove_tree

from .artifacts import BuildEnvironment, SourceTree
from .backend import Backend, config_settings
from .build_request import BuildRequest
from .failure import with_retries
from .ninja import ninja_of, run_build, run_logged_or_fail
from .options import BuildOptions
from .pipeline import Pipeline
from .rebuild_editable import Editable, Remembered, editable_of, forget, remember

_CHOSEN_XCODE = Path("/var/db/xcode_select_link")
Wrap = Callable[[Command], Command]
# What it is installed as (PEP 660), without `pip install -e`: that wants the back end in the importing venv too.
_BUILD = (
    "import build, json, sys; build.ProjectBuilder(sys.argv[1]).build('editable', sys.argv[2], json.loads(sys.argv[3]))"
)
# What the project requires at run time. Of setup.py's commands `egg_info` is the one for which PyTorch's does not build
# all of libtorch first.
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


@dataclass(frozen=True, slots=True)
class EditableBuild:
    """A build that ends in a tree that is imported in place: the pipeline's steps up to configure, then its own."""

    pipeline: Pipeline

    def make(self, options: BuildOptions) -> tuple[Remembered, str, str]:
        """Return the build, its version, and where it is imported from.

        Raises:
            UsageError: several Pythons, or a build for another system: that cannot be imported here.
        """
        pipeline, context = self.pipeline, self.pipeline.context
        request = context.request
        _refuse(request)
        python = request.pythons[0]
        forget(options)
        with context.workspace.held(), kept_awake():
            with context.console.step("Source"):
                tree, source = pipeline.prepare_source()
            with context.console.step("Environment"):
                environment, prepared = pipeline.prepare_environment(python, tree)
            with context.console.step("Configure"):
                configured = pipeline.configure(environment, tree, source=source, prepared=prepared)
            with context.console.step("Compile"):
                editable = self._build(environment, tree, configured)
            module = request.recipe.wheel.distribution.replace("-", "_")
            version, place = import_it(editable, module, environ=fetch_environ(os.environ))
        found = Remembered(workspace=context.workspace, editable=editable, module=module, recipe=request.recipe.name)
        remember(options, found, watched=watched(options, request))
        return found, version, place

    def _build(self, environment: BuildEnvironment, tree: SourceTree, configured: Receipt) -> Editable:
        """The first build, under a receipt: an interrupted one goes on, ninja knows from where."""
        context, request = self.pipeline.context, self.pipeline.context.request
        key, workspace = context.key(environment), context.workspace
        backend, build = request.recipe.backend, context.build_folder(tree)
        venv = workspace.root / "editable" / key
        first = first_command(
            backend,
            python=environment.python,
            source=tree.root,
            build=build,
            output=workspace.root / "editable" / f"{key}-wheel",
            environ=environment.environ,
            overrides=context.overrides,
        )
        log = workspace.logs / f"editable-{environment.python_version}.log"

        def run() -> StepResult:
            wanted = create_runtime(
                backend,
                interpreter=request.compilers.interpreter(environment.python_version).base,
                destination=venv,
                builder=first,
                numpy=environment.tools.get("numpy"),
                cache=cache_folder(),
                environ=fetch_environ(os.environ),
                log=log,
                reporter=context.console,
                offline=request.offline,
            )
            editable = with_retries(
                lambda command: build_editable(
                    backend,
                    command,
                    build=build,
                    output=workspace.root / "editable" / f"{key}-wheel",
                    venv=venv,
                    jobs=request.compilers.jobs,
                    log=log,
                    reporter=context.console,
                ),
                first,
                build=build,
                log=log,
                jobs=request.compilers.jobs,
                release=request.recipe.release,
                console=context.console,
            )
            return StepResult(trees=(venv,), facts={"requires": list(wanted), "editable": editable.document()})

        inputs = {
            "previous": configured.digest,
            "argv": first.argv,
            "jobs": request.compilers.jobs,
            "source": tree.state,
        }
        receipt = context.ledger.run("editable", version=1, inputs=inputs, action=run, key=key)
        return editable_of(receipt.facts["editable"])


def watched(options: BuildOptions, request: BuildRequest) -> tuple[Path, ...]:
    """Return the files that a later run must find as they were: what they say decides how the tree is built."""
    recipe = recipe_file(options.recipe or request.recipe.name)
    lock = lock_file(request.recipe.lock_name)
    xcode = request.compilers.toolchain.variables.get("DEVELOPER_DIR")
    versions = (Path(xcode).parent / "version.plist", _CHOSEN_XCODE) if xcode else ()
    return (recipe, defaults_file(), lock, *request.source.patches, *versions)


def _refuse(request: BuildRequest) -> None:
    if len(request.pythons) > 1:
        raise UsageError("--editable takes one Python at a time", hint=f"--python {request.pythons[0]}")
    if request.compilers.cross:
        raise UsageError(
            f"--editable: {request.recipe.name} is cross-built here, so the result cannot be imported",
            hint="leave --editable out, or build on a Mac",
        )
    if request.source.origin == "tarball":
        raise UsageError(
            "--editable needs a git tree, to see what changed", hint="give a clone: --source FOLDER --editable"
        )


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
    query = (builder.argv[0], "-c", _REQUIREMENTS[backend])
    answer = capture(wrap(Command(argv=query, cwd=builder.cwd, environ=builder.environ)), timeout_seconds=600)
    if not answer.ok:
        raise BuildEnvironmentError(f"the project gives no metadata:\n{answer.stderr[-800:]}", hint=f"see {log}")
    wanted = [each for each in parse_json(answer.stdout.splitlines()[-1]) if "extra ==" not in each]
    wanted += [f"numpy=={numpy}"] if numpy else []
    python = destination / "bin" / "python"
    options = ("--disable-pip-version-check", "--no-input")
    wheels = cache / "wheels" / "editable"
    with _failures(log):
        run_logged(wrap(Command(argv=(str(interpreter), "-m", "venv", str(destination)), environ=environ)), log=log)
        if wanted and not offline:
            own_folder(cache / "wheels")
            download = (
                *limited_pip(python, beside=destination),
                *options,
                "download",
                "-q",
                "-d",
                str(wheels),
                *wanted,
            )
            run_pip(Command(argv=download, environ=environ), log=log, tell=reporter.line, wrap=wrap)
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
