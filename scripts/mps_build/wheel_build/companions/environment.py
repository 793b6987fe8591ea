"""The environments of a companion build: the recipe's locked one with torch in it, and a bare one to try the wheels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, CompileError, disk_full
from mps_build.common.interpreters import find_python
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger, Receipt, StepResult
from mps_build.common.recipe.locks import lock_of
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import own_folder
from mps_build.common.wheels.naming import is_same_version
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.wheels.wheel_file import read_wheel
from mps_build.common.workspace import Workspace, cache_folder, remove_tree

from ..artifacts import Wheel
from ..failure import explained
from ..steps.create_environment import create_environment, installed_versions
from .plan import CompanionPlan

_SMOKE = Path(__file__).with_name("smoke.py")
# What companions' setup.py needs and a lock of torch's may lack (2.14's has no setuptools); never newer than what
# torchvision up to 0.25 imports: https://github.com/pytorch/vision/issues/9380
_BUILD_NEEDS = {"setuptools": "setuptools<82", "wheel": "wheel", "build": "build", "ninja": "ninja"}
_CMAKE = {"cmake": "cmake>=3.24,<4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionEnvironment:
    """Where the venvs of one companion build lie, and how they are filled."""

    plan: CompanionPlan
    workspace: Workspace
    ledger: Ledger
    reporter: Reporter
    environ: Mapping[str, str]
    torch_sha256: str

    @property
    def venv(self) -> Path:
        """The virtual environment of the companions for this Python; it may not exist yet."""
        return self.workspace.environment("companions", self.plan.torch.python)

    @property
    def python(self) -> Path:
        """The interpreter of that environment."""
        return self.venv / "bin" / "python"

    def prepare(self) -> Receipt:
        """Return the receipt of the recipe's locked environment with torch installed in it; `tools` are its versions.

        torch's own requirements are in no lock: they are taken as pip resolves them, and named in the receipt.

        Raises:
            BuildEnvironmentError: something is not to be had, or torch cannot be imported there.
        """
        plan, lock = self.plan, lock_of(self.plan.recipe, self.plan.torch.python)
        interpreter = self._interpreter()

        def create() -> StepResult:
            tools = create_environment(
                interpreter=interpreter,
                lock=lock,
                destination=self.venv,
                backend=self.workspace.backend,
                cache=cache_folder(),
                environ=self.environ,
                log=self._log("environment"),
                reporter=self.reporter,
                offline=plan.offline,
                wrap=plan.wrap,
            )
            missing = [text for name, text in {**_BUILD_NEEDS, **_CMAKE}.items() if name not in tools]
            self.reporter.started(f"Install {plan.torch.path.name}")
            pins = [f"{name}=={version}" for name, version in tools.items() if name != "pip"]
            self._install(self.python, wheels=(plan.torch.path,), wanted=missing, pins=pins)
            if plan.complete:
                plan.complete(self._site_packages())
            self._ask_torch()
            self.reporter.done()
            return StepResult(trees=(self.venv,), facts={"tools": self._listed(self.python)})

        inputs = {
            "interpreter": plan.python.identity() if plan.python else str(interpreter),
            "lock": lock.sha256,
            "torch": self.torch_sha256,
            "needs": {**_BUILD_NEEDS, **_CMAKE},
            "completed_from": plan.completed_from,
        }
        return self.ledger.run("environment", version=1, inputs=inputs, action=create, key=plan.torch.python)

    def try_out(self, wheels: Mapping[str, Wheel], *, expect_mps_kernels: bool) -> Mapping[str, Any]:
        """Install torch and the companions together in a venv of their own, compute, and return what came of it.

        Raises:
            BuildEnvironmentError: pip cannot install them together.
            CompileError: they do not load, or answer wrong.
        """
        plan, result = self.plan, self.workspace.root / f"smoke-{self.plan.torch.python}.json"
        venv = self.workspace.environment("smoke", plan.torch.python)
        python = venv / "bin" / "python"
        flags = ("--expect-mps-kernels",) if expect_mps_kernels else ()
        command = Command(
            argv=(str(python), "-I", str(_SMOKE), str(result), *flags, *wheels),
            cwd=self.workspace.root,
            environ=self.environ,
        )

        def run() -> StepResult:
            self.reporter.started("Install torch and its companions together")
            remove_tree(venv)
            result.unlink(missing_ok=True)
            self._run(str(self._interpreter()), "-m", "venv", str(venv), log="smoke")
            # Compiled against numpy 1 up to 2.2: https://github.com/pytorch/pytorch/issues/107302
            old = plan.recipe.release is not None and plan.recipe.release < Version("2.3")
            paths = (plan.torch.path, *(wheel.path for wheel in wheels.values()))
            self._install(python, wheels=paths, wanted=["numpy<2" if old else "numpy"], pins=[], log="smoke")
            self._run(str(python), "-m", "pip", "check", log="smoke")
            self.reporter.started("Compute with them")
            log = self._log("smoke-run")
            log.unlink(missing_ok=True)
            try:
                run_logged(plan.wrap(command), log=log, timeout_seconds=900)
            except CommandFailed as failure:
                error = CompileError("the companions were built, but do not work", hint=f"the whole output is in {log}")
                raise explained(error, log, release=plan.recipe.release) from failure
            self.reporter.done()
            return StepResult(files=(result,), facts=read_json(result))

        inputs = {
            "torch": self.torch_sha256,
            "wheels": {name: wheel.sha256 for name, wheel in wheels.items()},
            "script": _SMOKE.read_text(encoding="utf-8"),
            "flags": list(flags),
        }
        return self.ledger.run("smoke", version=1, inputs=inputs, action=run, key=plan.torch.python).facts

    def _interpreter(self) -> Path:
        found = self.plan.python
        return self.plan.interpreter or (found or find_python(self.plan.torch.python, environ=self.environ)).base

    def _install(
        self, python: Path, *, wheels: Sequence[Path], wanted: list[str], pins: list[str], log: str = "environment"
    ) -> None:
        """Install wheels with all they need; what comes from an index is kept in the cache for the next time."""
        own = {wheel.name.split("-", 1)[0].lower() for wheel in wheels}
        needs = [
            str(requirement)
            for wheel in wheels
            for requirement in read_wheel(wheel).requirements
            if requirement.name.lower() not in own and "extra" not in str(requirement.marker or "")
        ]
        pinned = self.workspace.root / f"pins-{log}.txt"
        pinned.parent.mkdir(parents=True, exist_ok=True)
        pinned.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
        options = ("--disable-pip-version-check", "--no-input")
        pip = (str(python), "-m", "pip", *options)
        folder = own_folder(own_folder(cache_folder() / "wheels") / f"companions-py{self.plan.torch.python}")
        wanted = list(dict.fromkeys([*wanted, *needs]))
        if wanted and not self.plan.offline:
            limited = (*limited_pip(python, beside=python.parents[1]), *options)
            argv = (*limited, "download", "-q", "-c", str(pinned), "-d", str(folder), *wanted)
            with self._failures(argv, log):
                command = Command(argv=argv, environ=self.environ)
                run_pip(command, log=self._log(log), tell=self.reporter.line, wrap=self.plan.wrap)
        local = (*pip, "install", "-q", "--no-index", "--find-links", str(folder), "-c", str(pinned))
        self._run(*local, *map(str, wheels), *wanted, log=log)

    def _run(self, *argv: str, log: str) -> None:
        with self._failures(argv, log):
            run_logged(self.plan.wrap(Command(argv=argv, environ=self.environ)), log=self._log(log))

    @contextmanager
    def _failures(self, argv: Sequence[str], log: str) -> Iterator[None]:
        try:
            yield
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-6:])
            if full := disk_full("\n".join(failure.tail), during="while pip installs"):
                raise full from failure
            offline = "run once without --offline; " if self.plan.offline else ""
            raise BuildEnvironmentError(
                f"{' '.join(argv[1:5])} ...: exit {failure.exit_code}:\n{text}",
                hint=f"{offline}the whole output is in {self._log(log)}",
            ) from failure

    def _ask_torch(self) -> None:
        """Import torch once, so that a torch that does not load is reported as such, and not as a compiler's error."""
        argv = (str(self.python), "-I", "-c", "import torch; print(torch.__version__)")
        answer = capture(self.plan.wrap(Command(argv=argv, environ=self.environ)), timeout_seconds=300)
        said = answer.stdout.strip()
        if not answer.ok:
            lines = "\n".join(answer.stderr.strip().splitlines()[-4:])
            raise BuildEnvironmentError(
                f"{self.plan.torch.path.name} is installed, but cannot be imported:\n{lines}",
                hint=f"nox -s triage names known causes; nox -s audit_wheel -- '{self.plan.torch.path}' looks inside",
            )
        if not is_same_version(said, self.plan.torch.version):
            raise BuildEnvironmentError(
                f"{self.plan.torch.path.name} reports version {said or 'nothing'} when it is imported",
                hint="the wheel's name and torch/version.py must agree: build or fetch it again",
            )

    def _site_packages(self) -> Path:
        return next(iter((self.venv / "lib").glob("python*/site-packages")))

    def _listed(self, python: Path) -> dict[str, str]:
        argv = (str(python), "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze")
        return installed_versions(self.plan.wrap(Command(argv=argv, environ=self.environ)))

    def _log(self, name: str) -> Path:
        return self.workspace.logs / f"{name}-{self.plan.torch.python}.log"
