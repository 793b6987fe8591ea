"""From a recipe to an audited wheel: the steps in order, each under a receipt.

Each step decides by itself whether its receipt spares it. What is decided here: one source serves all Pythons, which
follow each other, and a configure is spared where the wheel that would be compiled of it is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Final

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.process import kept_awake
from mps_build.common.receipts import Ledger, Receipt
from mps_build.common.workspace import Workspace

from .artifacts import BuildContext, BuildEnvironment, SourceTree
from .build_request import BuildRequest
from .compiler_cache.store import relayed
from .steps.compile_wheel import compile_for_build, is_compiled
from .steps.configure import configure_for_build
from .steps.create_environment import prepare_environment
from .steps.finish_wheel import Delivered, Finishing
from .steps.prepare_source import prepare_source


class Pipeline:
    """One build: what is requested, where it works, where it reports."""

    def __init__(
        self, request: BuildRequest, *, workspace: Workspace, console: Console, ledger: Ledger | None = None
    ) -> None:
        self.context: Final = BuildContext(
            request=request, workspace=workspace, console=console, ledger=ledger or Ledger(workspace.receipts)
        )

    def build(self) -> tuple[Delivered, ...]:
        """Run every step that its receipt does not spare, for each Python in turn."""
        context, compilers = self.context, self.context.request.compilers
        cache = compilers.cache
        through = relayed(cache.variables, cache.upstream, compilers.launcher, report=context.console.warn)
        with context.workspace.held(), kept_awake(), through as variables:
            # Where the relay listens is known only now; the caller's request stays as it was.
            request = replace(context.request, compilers=replace(compilers, cache=replace(cache, variables=variables)))
            here = Pipeline(request, workspace=context.workspace, console=context.console, ledger=context.ledger)
            with here.step("Source"):
                tree, source = here.prepare_source()
            return tuple(here._build_for(python, tree, source) for python in request.pythons)

    def _build_for(self, python: str, tree: SourceTree, source: str) -> Delivered:
        suffix = f" for Python {python}" if len(self.context.request.pythons) > 1 else ""
        with self.step(f"Environment{suffix}"):
            environment, prepared = self.prepare_environment(python, tree)
        with self.step(f"Configure{suffix}"):
            configured = self.configure(environment, tree, source=source, prepared=prepared)
        with self.step(f"Compile{suffix}"):
            compiled = compile_for_build(self.context, environment, tree, source=source, configured=configured)
        with self.step(f"Audit{suffix}"):
            return Finishing(context=self.context, environment=environment, tree=tree).deliver(compiled)

    def prepare(self, python: str) -> tuple[SourceTree, BuildEnvironment]:
        """Return the patched source and the environment, and build nothing."""
        with self.context.workspace.held():
            tree, _ = self.prepare_source()
            return tree, self.prepare_environment(python, tree)[0]

    def prepare_source(self) -> tuple[SourceTree, str]:
        """Return the patched tree and the digest of its source."""
        context = self.context
        return prepare_source(
            context.request.source,
            workspace=context.workspace,
            ledger=context.ledger,
            environ=fetch_environ(os.environ),
            reporter=context.console,
            unchanged=context.request.profile == "release",
            offline=context.request.offline,
        )

    def prepare_environment(self, python: str, tree: SourceTree) -> tuple[BuildEnvironment, Receipt]:
        """Return the locked venv of a Python ("3.12"), and the whole environment that compilers will see."""
        return prepare_environment(self.context, python, tree)

    def configure(self, environment: BuildEnvironment, tree: SourceTree, *, source: str, prepared: Receipt) -> Receipt:
        """Return the receipt of a configure that passed the gate."""
        return configure_for_build(
            self.context,
            environment,
            tree,
            source=source,
            prepared=prepared,
            is_unused=lambda digest: is_compiled(self.context, environment, tree, source=source, configured=digest),
        )

    def step(self, title: str) -> AbstractContextManager[None]:
        """Open a heading of this build."""
        return shown_step(self.context.console, self.context.ledger, title)


@contextmanager
def shown_step(console: Console, ledger: Ledger, title: str) -> Iterator[None]:
    """Open a heading; what is done inside and was up to date is said to be."""
    before = len(ledger.receipts)
    with console.step(title):
        yield
        done = ledger.receipts[before:]
        if done and all(receipt.skipped for receipt in done):
            console.line("up to date")
