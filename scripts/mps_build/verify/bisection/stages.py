"""The story of a bisection in order: which subjects there are, how one is made ready, and which stage comes next."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.environment import fetch_environ
from ...common.errors import UsageError
from ...common.reporting import Reporter
from ...common.wheels.pip_call import index_arguments
from ...common.workspace import remove_tree
from ..target.diagnosis import host_obstacle, observe_host
from . import report
from .answers import CaseJudge, Predicate
from .commits import MPS_PATHS, Builder, History, own_builder
from .request import BisectionRequest
from .runner import Answer, Bisection, Prepared
from .search import Standing
from .state import Stage, State
from .versions import Index, KernelsOf, Venvs, between, parse_version

if TYPE_CHECKING:
    from .official import OfficialReleases  # needs what only a simulation needs

StepOf = Callable[[str], AbstractContextManager[None]]


@dataclass(slots=True, kw_only=True)
class Stages:
    """Both stages of one question; as a Runner, it knows for each subject how to make it ready and how to ask it.

    `releases`: official wheels on Linux are tested, no venvs and no commits.
    """

    request: BisectionRequest
    state: State
    folder: Path
    reporter: Reporter
    venvs: Venvs | None = None
    history: History | None = None
    kernels: KernelsOf | None = None
    releases: OfficialReleases | None = None
    interpreter: Path = field(default_factory=lambda: Path(sys.executable))

    def run(self, bisection: Bisection, step: StepOf) -> tuple[report.Finding, ...]:
        """Return what each stage found.

        Raises:
            UsageError: the ends cannot be tested, do not differ, or are none.
        """
        if self.request.repository is not None:
            self.history = History(
                repository=self.request.repository,
                tree=self.folder / "tree",
                log=self.folder / "git.log",
                environ=fetch_environ(os.environ),
            )
        findings = []
        if self.request.by_version:
            with step("List the versions"):
                stage = self._versions()
            source = self.releases or self.venvs
            if self.request.operator is not None and source is not None:
                fetch = source.fetch
                self.kernels = KernelsOf(operator=self.request.operator, fetch=fetch, reporter=self.reporter)
                bisection = replace(bisection, changed=self.kernels.changed)
            findings.append(self._stage(stage, bisection, step, ends=True))
            commits = self._commits_behind(findings[0].standing)
            if commits is None:
                return tuple(findings)
            findings.append(self._stage(commits, bisection, step, ends=False))
        else:
            findings.append(self._stage(self._commits_given(), bisection, step, ends=True))
        return tuple(findings)

    def _stage(self, stage: Stage, bisection: Bisection, step: StepOf, *, ends: bool) -> report.Finding:
        if self.state.stage(stage.kind) is None:
            self.state.stages.append(stage)
            bisection.save(self.state)
        if ends:
            with step("Test both ends"):
                bisection.verify_ends(stage.span())
        with step(f"Search {len(stage.candidates)} {stage.kind}"):
            standing = bisection.search(stage.span())
            if self.kernels is not None and stage.kind == "versions":
                stage.note = self.kernels.note(standing.last_old, standing.first_new)
            if not ends:
                stage.note = bisection.confirm(stage.span(), standing) or stage.note
        return report.finding(
            stage,
            standing,
            address=report.address_of(self.history.remote()) if self.history else "",
            title=self.history.subject if self.history and stage.kind == "commits" else lambda subject: "",
            state=self.state,
        )

    # What there is to ask.

    def _versions(self) -> Stage:
        target = self.releases.target if self.releases else ()
        index = Index(arguments=(*index_arguments(self.request.index), *target), environ=fetch_environ(os.environ))
        good, bad = parse_version(self.request.good), parse_version(self.request.bad)
        assert good is not None and bad is not None
        if good == bad:
            raise UsageError(f"the ends do not differ: both are {good}", hint="--good and --bad name two versions")
        old, new = sorted((good, bad))
        nightlies = self.request.index is not None or bool(good.dev or bad.dev)
        python_of: dict[str, Path | None] = {}
        kept = self.state.stage("versions")
        for short, python in self._pythons():
            versions = index.versions(short, nightlies=nightlies)
            by_public = {version.public: version for version in reversed(versions)}
            chosen = {end.public: end for end in (old, new) if end.public in by_public}
            for version in between(versions, old, new):
                chosen[version.public] = version
            for public in chosen:
                python_of.setdefault(public, python)
            if {old.public, new.public} <= python_of.keys():
                break
        for end in (old, new):
            if end.public not in python_of and kept is None:
                raise UsageError(
                    f"{end}: pip has no such torch for {'macOS' if self.releases else 'a Python of this machine'}",
                    hint="`pip index versions torch` lists them; --index names another index, --python another Python",
                )
        if self.releases is None:
            self.venvs = Venvs(
                folder=self.folder,
                index=index,
                python_of={public: python for public, python in python_of.items() if python is not None},
                reporter=self.reporter,
                wants_cuda=self.request.device == "cuda",
                trust=self.request.trust,
            )
        if kept is not None:
            return kept
        names = sorted(python_of, key=lambda public: parse_version(public) or old)
        inner = [name for name in names if name not in (old.public, new.public)]
        releases = [name for name in inner if "dev" not in name]
        # Releases first: they stay for ever and come from a public index; nightlies only in between.
        favoured = releases if len(releases) < len(inner) else []
        return Stage(
            kind="versions",
            old=old.public,
            new=new.public,
            candidates=inner,
            favoured=favoured,
            seek="bad" if good < bad else "good",
        )

    def _pythons(self) -> Iterator[tuple[str, Path | None]]:
        """Yield the Pythons to list versions for (`3.11`), with the interpreter where it is one of this machine."""
        if self.releases is not None:
            yield from ((short, None) for short in self.releases.pythons)
            return
        for python in self.request.interpreters():
            yield _short(python), python

    def _commits_behind(self, found: Standing) -> Stage | None:
        """Return the stage of commits between the two versions found; None without a repository or their commits."""
        if (kept := self.state.stage("commits")) is not None:
            return kept
        if self.history is None:
            return None
        probes = self.state.probes
        old, new = (probes[name].commit if name in probes else None for name in (found.last_old, found.first_new))
        if old is None or new is None:
            self.reporter.line(
                f"{found.last_old} or {found.first_new} does not state its commit: commits cannot be searched"
            )
            return None
        return self._commits(self.history.resolve(old), self.history.resolve(new), self.state.stages[0].seek)

    def _commits_given(self) -> Stage:
        if (kept := self.state.stage("commits")) is not None:
            return kept
        assert self.history is not None
        good, bad = self.history.resolve(self.request.good), self.history.resolve(self.request.bad)
        self.state.good, self.state.bad = good, bad
        if good == bad:
            raise UsageError(f"the ends do not differ: both are {good}", hint="--good and --bad name two commits")
        if self.history.is_ancestor(bad, good):
            return self._commits(bad, good, "good")
        return self._commits(good, bad, "bad")

    def _commits(self, old: str, new: str, seek: str) -> Stage:
        assert self.history is not None
        commits = self.history.between(old, new, MPS_PATHS)
        return Stage(
            kind="commits",
            old=old,
            new=new,
            candidates=list(commits.between),
            favoured=list(commits.favoured),
            seek="good" if seek == "good" else "bad",
            note=commits.note,
        )

    # The Runner protocol.

    def prepare(self, subject: str) -> Prepared:
        """Return a subject made ready: its tree built or its wheel installed.

        Raises:
            CannotTest: it does not build or install.
            MpsBuildError: this machine can test no subject at all.
        """
        if self.releases is not None:
            return self.releases.prepare(subject)
        # Before any torch is installed: a case of MPS runs on a Mac alone.
        if self.request.case is not None and (obstacle := host_obstacle(observe_host(None), self.request.device, None)):
            raise obstacle
        if parse_version(subject) is not None and self.venvs is not None:
            return self.venvs.prepare(subject)
        assert self.history is not None
        tree = self.history.check_out(subject)
        if self.request.predicate is not None and self.request.builder is None:
            return Prepared(subject=subject, tree=tree, commit=subject)
        log = self.folder / "build.log"
        if self.request.builder:
            builder = Builder(argv=self.request.builder, result=None, log=log, environ=dict(os.environ))
        else:
            builder = own_builder(self.request.recipe, tree, subject, result=self.folder / "built.json", log=log)
        made = builder.build(tree, subject)
        if made.suffix != ".whl":
            return Prepared(subject=subject, tree=tree, commit=subject, python=made)
        venvs = self.venvs or Venvs(
            folder=self.folder,
            index=Index(arguments=(), environ=fetch_environ(os.environ)),
            python_of={},
            reporter=self.reporter,
            trust=self.request.trust,
        )
        interpreter = next(self.request.interpreters())
        installed = venvs.install(made, subject=subject, interpreter=interpreter)
        return Prepared(subject=subject, tree=tree, commit=subject, python=installed.python)

    def ask(self, prepared: Prepared) -> Answer:
        """Return good, bad or skip for a subject, by the user's command or by the case."""
        if self.releases is not None:
            return self.releases.ask(prepared)
        if self.request.predicate is not None:
            log = self.folder / "predicate.log"
            return Predicate(
                argv=self.request.predicate, seconds=self.request.seconds, log=log, environ=os.environ
            ).ask(prepared)
        assert prepared.python is not None
        return CaseJudge(
            case=self.request.case or "",
            device=self.request.device,
            allow_virtual=self.request.allow_virtual,
            seconds=self.request.seconds,
            folder=self.folder,
        ).ask(prepared)

    def release(self, prepared: Prepared) -> None:
        """Remove a venv whose verdict stands: each is as large as torch."""
        remove_tree(self.folder / "venvs" / prepared.subject)


def _short(python: Path) -> str:
    from ..target.interpreter import describe_interpreter

    return describe_interpreter(python, environ=fetch_environ(os.environ)).short
