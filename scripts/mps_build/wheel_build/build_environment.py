"""The environment's part of the pipeline: the locked venv, the toolchain, libomp, and every variable of the build."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.receipts import Ledger, Receipt, StepResult, fingerprint
from mps_build.common.recipe.catalogue import locks_root
from mps_build.common.recipe.model import Libomp
from mps_build.common.workspace import Workspace, cache_folder

from .artifacts import BuildEnvironment, SourceTree
from .build_request import BuildRequest
from .compiler_cache.launcher import cache_settings, checkout_of, launchers
from .compiler_environ import build_environ
from .profiles import profile_settings
from .steps.create_environment import create_environment
from .steps.provide_libomp import provide_libomp
from .zig.seal import check_seal, drop_made, seal
from .zig.toolchain import build_runtime, cross_toolchain, runtime_command


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPart:
    """What makes the environments of one build, each under its receipts."""

    request: BuildRequest
    workspace: Workspace
    ledger: Ledger
    reporter: Console

    def prepare(self, python: str, tree: SourceTree) -> tuple[BuildEnvironment, Receipt]:
        """Return the locked venv, and the whole environment that compilers will see."""
        request, recipe, compilers = self.request, self.request.recipe, self.request.compilers
        lock = locks_root() / recipe.lock_name(python)
        venv = self.workspace.environment(request.profile, python)
        interpreter = compilers.interpreter(python)

        def create() -> StepResult:
            tools = create_environment(
                interpreter=interpreter.base,
                lock=lock,
                destination=venv,
                backend=self.workspace.backend,
                cache=cache_folder(),
                environ=fetch_environ(os.environ),
                log=self.workspace.logs / f"create_environment-{python}.log",
                reporter=self.reporter,
                offline=request.offline,
            )
            return StepResult(trees=(venv,), facts={"tools": tools})

        inputs = {"interpreter": interpreter.identity(), "lock": fingerprint(lock)["sha256"]}
        receipt = self.ledger.run("create_environment", version=1, inputs=inputs, action=create, key=venv.name)
        toolchain = self._cross_toolchain(venv) if compilers.cross else compilers.toolchain
        extra = {
            "PYTHONPATH": str(self.workspace.backend),
            **launchers(compilers.launcher),
            **compilers.cache.variables,
        }
        if request.profile == "release":
            extra |= cache_settings(compilers.launcher, base=checkout_of(tree.root, self.workspace.root))
        extra |= profile_settings(request.profile, recipe)
        if request.bundled_libomp:
            extra["OpenMP_ROOT"] = str(self._libomp(request.bundled_libomp, venv))
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

    def _libomp(self, libomp: Libomp, venv: Path) -> Path:
        folder = self.workspace.root / "libomp"

        def provide() -> StepResult:
            provide_libomp(
                libomp,
                python=venv / "bin" / "python",
                destination=folder,
                cache=cache_folder(),
                environ=fetch_environ(os.environ),
                log=self.workspace.logs / "provide_libomp.log",
                offline=self.request.offline,
                reporter=self.reporter,
            )
            return StepResult(files=(folder / "lib" / "libomp.dylib", folder / "include" / "omp.h"))

        self.ledger.run("provide_libomp", version=1, inputs=libomp.model_dump(), action=provide)
        return folder

    def _cross_toolchain(self, venv: Path) -> Toolchain:
        toolchain = cross_toolchain(
            python=venv / "bin" / "python",
            folder=self.workspace.root / "zig",
            cache=cache_folder() / "zig",
            deployment_target=self.request.recipe.deployment_target,
        )
        command = runtime_command(toolchain, scratch=self.workspace.root / "zig" / "scratch")
        if damaged := check_seal(cache_folder() / "zig"):
            self.reporter.warn(f"zig's cache is damaged ({', '.join(damaged[:3])}): it is built again")
            drop_made(cache_folder() / "zig")
            Path(command.argv[-1]).unlink(missing_ok=True)

        def build() -> StepResult:
            self.reporter.started("zig's runtime (its first use builds it: seconds)")
            build_runtime(command, log=self.workspace.logs / "zig_runtime.log")
            seal(cache_folder() / "zig")
            self.reporter.done()
            return StepResult(files=(Path(command.argv[-1]),))

        inputs = {"argv": command.argv, "toolchain": dict(toolchain.facts)}
        self.ledger.run("build_runtime", version=1, inputs=inputs, action=build)
        return toolchain
