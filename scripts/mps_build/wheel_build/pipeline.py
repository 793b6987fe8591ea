"""From a recipe to an audited wheel: the steps in order, each under a receipt. Nothing is decided here."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import CompileError
from mps_build.common.process import Command
from mps_build.common.receipts import Ledger, Receipt, StepResult, digest_of, fingerprint, step_digest
from mps_build.common.watched import kept_awake
from mps_build.common.workspace import Workspace

from .artifacts import BuildEnvironment, SourceTree
from .backend import build_folder
from .build_environment import EnvironmentPart
from .build_request import BuildRequest
from .compiler_cache.launcher import (
    cache_counts,
    cache_gain,
    cache_lines,
    cache_troubles,
    ninja_log_text,
    slowest_steps,
)
from .compiler_cache.store import relayed
from .compiler_environ import comparable
from .configuring import configuring
from .finish import Delivered, Finishing
from .profiles import profile_lines
from .repack import repacked
from .retry import with_retries
from .shown_step import shown_step
from .source import prepare_source as prepare
from .steps.compile_wheel import build_command, compile_wheel


class Pipeline:
    """One build: what it is asked for, where it works, whom it tells."""

    def __init__(
        self, request: BuildRequest, *, workspace: Workspace, console: Console, ledger: Ledger | None = None
    ) -> None:
        self.request: Final = request
        self.workspace: Final = workspace
        self.console: Final = console
        self.ledger: Final = ledger or Ledger(workspace.receipts)
        self.fetch_environ: Final = fetch_environ(os.environ)

    def build(self) -> tuple[Delivered, ...]:
        """Run every step that its receipt does not spare, for each Python in turn."""
        compilers = self.request.compilers
        cache = compilers.cache
        through = relayed(cache.variables, cache.upstream, compilers.launcher, report=self.console.warn)
        with self.workspace.held(), kept_awake(), through as variables:
            # Where the relay listens is known only now; who asked for this build keeps the request as it was.
            request = replace(self.request, compilers=replace(compilers, cache=replace(cache, variables=variables)))
            return Pipeline(request, workspace=self.workspace, console=self.console, ledger=self.ledger)._build_all()

    def _build_all(self) -> tuple[Delivered, ...]:
        with self._step("Source"):
            tree, source = self.prepare_source()
        return tuple(self._build_for(python, tree, source) for python in self.request.pythons)

    def prepare(self, python: str) -> tuple[SourceTree, BuildEnvironment]:
        """Return the patched source and the environment, and build nothing."""
        with self.workspace.held():
            tree, _ = self.prepare_source()
            return tree, self.prepare_environment(python, tree)[0]

    def prepare_source(self) -> tuple[SourceTree, str]:
        """Return the patched tree and the digest of its source."""
        return prepare(
            self.request.source,
            workspace=self.workspace,
            ledger=self.ledger,
            environ=self.fetch_environ,
            reporter=self.console,
            unchanged=self.request.profile == "release",
            offline=self.request.offline,
        )

    def _step(self, title: str) -> AbstractContextManager[None]:
        return shown_step(self.console, self.ledger, title)

    def _build_for(self, python: str, tree: SourceTree, source: str) -> Delivered:
        suffix = f" for Python {python}" if len(self.request.pythons) > 1 else ""
        with self._step(f"Environment{suffix}"):
            environment, prepared = self.prepare_environment(python, tree)
        with self._step(f"Configure{suffix}"):
            configured = self.configure(environment, tree, source=source, environment_digest=prepared.digest)
        with self._step(f"Compile{suffix}"):
            compiled = self._compile(environment, tree, configured, source=source)
        with self._step(f"Audit{suffix}"):
            return Finishing(
                request=self.request,
                workspace=self.workspace,
                ledger=self.ledger,
                reporter=self.console,
                environment=environment,
                tree=tree,
            ).deliver(compiled)

    def prepare_environment(self, python: str, tree: SourceTree) -> tuple[BuildEnvironment, Receipt]:
        """Return the locked venv of a Python ("3.12"), and the whole environment that compilers will see."""
        return EnvironmentPart(
            request=self.request, workspace=self.workspace, ledger=self.ledger, reporter=self.console
        ).prepare(python, tree)

    def configure(
        self, environment: BuildEnvironment, tree: SourceTree, *, source: str, environment_digest: str
    ) -> Receipt:
        """Return the receipt of a configure that passed the gate; inputs that changed start a fresh build folder."""
        request, recipe = self.request, self.request.recipe
        build, develop = self.build_folder(tree), self.request.profile == "develop"
        launcher = request.compilers.launcher
        lines = profile_lines(request.profile, self.workspace.root / "wide_headers", cached=bool(launcher))
        call = configuring(
            recipe.backend,
            python=environment.python,
            source=tree.root,
            build=build,
            environ=environment.environ,
            root=self.workspace.root,
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
            log = self.workspace.logs / f"configure-{environment.python_version}.log"
            facts = call.run(fresh=fresh, log=log, reporter=self.console)
            kept.write_text(shared, encoding="utf-8")
            return StepResult(trees=(build,), facts=facts)

        inputs: dict[str, Any] = {"shared": shared, "previous": environment_digest, "argv": call.command.argv}
        # An edit is ninja's business, which configures again by itself where CMake's own files changed.
        inputs |= {"version": environment.environ.get("PYTORCH_BUILD_VERSION")} if develop else {"source": source}
        key = self.key(environment)
        # The folder is configured for one Python at a time; another's wheel that still holds needs it no more.
        digest = step_digest("configure", version=1, inputs=inputs)
        compiled = self._compile_inputs(digest, environment, tree, source=source)
        unused = self.ledger.holds("compile_wheel", version=1, inputs=compiled, key=key)
        return self.ledger.run("configure", version=1, inputs=inputs, action=run, key=key, unused=unused)

    def _compile(self, environment: BuildEnvironment, tree: SourceTree, configured: Receipt, *, source: str) -> Receipt:
        command = self._build_command(environment, tree)

        def run() -> StepResult:
            output, build = self._compiled_folder(environment), self.build_folder(tree)
            log = self.workspace.logs / f"compile_wheel-{environment.python_version}.log"
            launcher = self.request.compilers.launcher
            before, steps_before = cache_counts(launcher, environment.environ), ninja_log_text(build)
            wheel = self._repacked(environment, tree, output, log) or with_retries(
                lambda command: compile_wheel(command, output=output, log=log, reporter=self.console),
                command,
                build=self.build_folder(tree),
                log=log,
                jobs=self.request.compilers.jobs,
                release=self.request.recipe.release,
                console=self.console,
            )
            gain = cache_gain(before, cache_counts(launcher, environment.environ))
            for trouble in cache_troubles(gain):
                self.console.warn(trouble)
            slowest = slowest_steps(build, before=steps_before)
            return StepResult(files=(wheel,), facts={"cache": gain, "slowest": slowest})

        inputs = self._compile_inputs(configured.digest, environment, tree, source=source)
        return self.ledger.run("compile_wheel", version=1, inputs=inputs, action=run, key=self.key(environment))

    def _repacked(self, environment: BuildEnvironment, tree: SourceTree, output: Path, log: Path) -> Path | None:
        """Return the next wheel of an edited tree; None where everything must be packed, or compiling needs a retry."""
        try:
            return repacked(
                self.request,
                tree=tree,
                environment=environment,
                build=self.build_folder(tree),
                overrides=self.workspace.root / "overrides.cmake",
                output=output,
                log=log,
                reporter=self.console,
            )
        except CompileError:
            return None

    def _compile_inputs(
        self, configured: str, environment: BuildEnvironment, tree: SourceTree, *, source: str
    ) -> dict[str, Any]:
        return {"previous": configured, "argv": self._build_command(environment, tree).argv, "source": source}

    def _build_command(self, environment: BuildEnvironment, tree: SourceTree) -> Command:
        return build_command(
            self.request.recipe.backend,
            python=environment.python,
            source=tree.root,
            build=self.build_folder(tree),
            output=self._compiled_folder(environment),
            environ=environment.environ,
            overrides=self.workspace.root / "overrides.cmake",
        )

    def build_folder(self, tree: SourceTree) -> Path:
        """Return the folder in which CMake and ninja work, which differs by back end and profile."""
        build = self.workspace.build / self.request.profile
        return build_folder(self.request.recipe.backend, source=tree.root, build=build)

    def _compiled_folder(self, environment: BuildEnvironment) -> Path:
        return self.workspace.root / "compiled" / self.key(environment)

    def key(self, environment: BuildEnvironment) -> str:
        """Return the receipts' key of an environment: profile and Python, such as `release-3.12`."""
        return f"{self.request.profile}-{environment.python_version}"
