"""The first run of `build_wheel --editable`: the steps of a build up to configure, then importable in place."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.interpreters import find_interpreter
from mps_build.common.process import kept_awake
from mps_build.common.receipts import Made, Receipt
from mps_build.common.recipe.catalogue import locks_root, recipes_root
from mps_build.common.workspace import cache_folder

from .artifacts import BuildEnvironment, Editable, SourceTree, editable_of
from .editable_state import Remembered, forget, remember
from .pipeline import Pipeline
from .plan import BuildRequest
from .retry import with_second_tries
from .steps.build_editable import build_editable, create_runtime, first_command, import_it

_CHOSEN_XCODE = Path("/var/db/xcode_select_link")


class EditableBuild(Pipeline):
    """A build that ends in a tree that is imported where it lies."""

    def make(self, arguments: argparse.Namespace) -> tuple[Remembered, str, str]:
        """Return the build, its version, and where it is imported from.

        Raises:
            UsageError: several Pythons, or a build for another system: that cannot be imported here.
        """
        request = self.request
        _refuse(request)
        python = request.pythons[0]
        forget(arguments)
        with self.workspace.held(), kept_awake():
            with self.console.step("Source"):
                tree, source = self._prepare_source()
            with self.console.step("Environment"):
                environment, prepared = self.prepare_environment(python, tree)
            with self.console.step("Configure"):
                configured = self.configure(environment, tree, source=source, environment_digest=prepared.digest)
            with self.console.step("Compile"):
                editable = self._build(environment, tree, configured)
            module = request.recipe.wheel.distribution.replace("-", "_")
            version, place = import_it(editable, module, environ=fetch_environ(os.environ))
        found = Remembered(workspace=self.workspace, editable=editable, module=module, recipe=request.recipe.name)
        remember(arguments, found, watched=watched(request, lock=locks_root() / request.recipe.lock_name(python)))
        return found, version, place

    def _build(self, environment: BuildEnvironment, tree: SourceTree, configured: Receipt) -> Editable:
        """The first build, under a receipt: an interrupted one goes on, ninja knows from where."""
        request, key = self.request, self._key(environment)
        backend, build = request.recipe.backend, self._build_folder(tree)
        venv = self.workspace.root / "editable" / key
        first = first_command(
            backend,
            python=environment.python,
            source=tree.root,
            build=build,
            output=self.workspace.root / "editable" / f"{key}-wheel",
            environ=environment.environ,
            overrides=self.workspace.root / "overrides.cmake",
        )
        log = self.workspace.logs / f"editable-{environment.python_version}.log"

        def run() -> Made:
            wanted = create_runtime(
                backend,
                interpreter=find_interpreter(environment.python_version, environ=self.fetch_environ),
                destination=venv,
                builder=first,
                numpy=environment.tools.get("numpy"),
                cache=cache_folder(),
                environ=self.fetch_environ,
                log=log,
                reporter=self.console,
                offline=request.offline,
            )
            editable = with_second_tries(
                lambda command: build_editable(
                    backend,
                    command,
                    build=build,
                    output=self.workspace.root / "editable" / f"{key}-wheel",
                    venv=venv,
                    jobs=request.jobs,
                    log=log,
                    reporter=self.console,
                ),
                first,
                build=build,
                log=log,
                jobs=request.jobs,
                release=request.recipe.release,
                console=self.console,
            )
            return Made(trees=(venv,), facts={"requires": list(wanted), "editable": editable.document()})

        inputs = {"previous": configured.digest, "argv": first.argv, "jobs": request.jobs, "source": tree.state}
        receipt = self.ledger.run("editable", version=1, inputs=inputs, action=run, key=key)
        return editable_of(receipt.facts["editable"])


def watched(request: BuildRequest, *, lock: Path) -> tuple[Path, ...]:
    """Return the files that a later run must find as they were: what they say decides how the tree is built."""
    xcode = request.toolchain.variables.get("DEVELOPER_DIR")
    named = recipes_root() / f"{request.recipe.name}.yaml"
    versions = (Path(xcode).parent / "version.plist", _CHOSEN_XCODE) if xcode else ()
    return (named, lock, *request.patches, *versions)


def _refuse(request: BuildRequest) -> None:
    if len(request.pythons) > 1:
        raise UsageError("--editable is for one Python at a time", hint=f"--python {request.pythons[0]}")
    if request.cross:
        raise UsageError(
            f"--editable: {request.recipe.name} is cross-built here, so what it makes cannot be imported here",
            hint="leave --editable out, or build on a Mac",
        )
    if request.origin == "tarball":
        raise UsageError(
            "--editable wants a tree whose changes git can tell", hint="give a clone: --source FOLDER --editable"
        )
