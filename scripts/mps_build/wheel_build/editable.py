"""The first run of `build_wheel --editable`: the steps of a build up to configure, then importable in place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.receipts import Receipt, StepResult
from mps_build.common.recipe.catalogue import defaults_file, locks_root, recipe_file
from mps_build.common.watched import kept_awake
from mps_build.common.workspace import cache_folder

from .artifacts import BuildEnvironment, Editable, SourceTree, editable_of
from .build_request import BuildRequest
from .editable_state import Remembered, forget, remember
from .options import BuildOptions
from .pipeline import Pipeline
from .retry import with_retries
from .steps.build_editable import build_editable, create_runtime, first_command, import_it

_CHOSEN_XCODE = Path("/var/db/xcode_select_link")


@dataclass(frozen=True, slots=True)
class EditableBuild:
    """A build that ends in a tree that is imported in place: the pipeline's steps up to configure, then its own."""

    pipeline: Pipeline

    def make(self, options: BuildOptions) -> tuple[Remembered, str, str]:
        """Return the build, its version, and where it is imported from.

        Raises:
            UsageError: several Pythons, or a build for another system: that cannot be imported here.
        """
        pipeline, request = self.pipeline, self.pipeline.request
        _refuse(request)
        python = request.pythons[0]
        forget(options)
        with pipeline.workspace.held(), kept_awake():
            with pipeline.console.step("Source"):
                tree, source = pipeline.prepare_source()
            with pipeline.console.step("Environment"):
                environment, prepared = pipeline.prepare_environment(python, tree)
            with pipeline.console.step("Configure"):
                configured = pipeline.configure(environment, tree, source=source, environment_digest=prepared.digest)
            with pipeline.console.step("Compile"):
                editable = self._build(environment, tree, configured)
            module = request.recipe.wheel.distribution.replace("-", "_")
            version, place = import_it(editable, module, environ=fetch_environ(os.environ))
        found = Remembered(workspace=pipeline.workspace, editable=editable, module=module, recipe=request.recipe.name)
        remember(options, found, watched=watched(options, request))
        return found, version, place

    def _build(self, environment: BuildEnvironment, tree: SourceTree, configured: Receipt) -> Editable:
        """The first build, under a receipt: an interrupted one goes on, ninja knows from where."""
        pipeline, request = self.pipeline, self.pipeline.request
        key, workspace = pipeline.key(environment), pipeline.workspace
        backend, build = request.recipe.backend, pipeline.build_folder(tree)
        venv = workspace.root / "editable" / key
        first = first_command(
            backend,
            python=environment.python,
            source=tree.root,
            build=build,
            output=workspace.root / "editable" / f"{key}-wheel",
            environ=environment.environ,
            overrides=workspace.root / "overrides.cmake",
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
                environ=pipeline.fetch_environ,
                log=log,
                reporter=pipeline.console,
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
                    reporter=pipeline.console,
                ),
                first,
                build=build,
                log=log,
                jobs=request.compilers.jobs,
                release=request.recipe.release,
                console=pipeline.console,
            )
            return StepResult(trees=(venv,), facts={"requires": list(wanted), "editable": editable.document()})

        inputs = {
            "previous": configured.digest,
            "argv": first.argv,
            "jobs": request.compilers.jobs,
            "source": tree.state,
        }
        receipt = pipeline.ledger.run("editable", version=1, inputs=inputs, action=run, key=key)
        return editable_of(receipt.facts["editable"])


def watched(options: BuildOptions, request: BuildRequest) -> tuple[Path, ...]:
    """Return the files that a later run must find as they were: what they say decides how the tree is built."""
    recipe = recipe_file(options.recipe or request.recipe.name)
    lock = locks_root() / request.recipe.lock_name(request.pythons[0])
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
