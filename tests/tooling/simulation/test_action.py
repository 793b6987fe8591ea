"""The action `simulate`: its steps run as GitHub runs them, in a clean folder, with a nox that writes down its calls.

Not tried: GitHub's own machines, its cache, and a `uses:` of another repository.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mps_build.common import strict_yaml
from mps_build.common.process import Command, capture
from mps_build.simulation import kept
from mps_build.simulation.kept import cache_key

ROOT = Path(__file__).parents[3]
_FOLDER = ROOT / "simulate"
_ACTION = strict_yaml.unchecked((_FOLDER / "action.yml").read_text(encoding="utf-8"))
_WORKFLOW = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
# Calls of nox, as words of a shell; a program behind the second `--` is run, as `simulate` does.
_NOX = """#!/bin/bash
printf '%q ' "$@" >>"$CALLS"; echo >>"$CALLS"
echo "pytest: ${PYTEST_ADDOPTS:-}, cache: $MPS_BUILD_CACHE" >>"$CALLS"
case " $* " in *" --cache-key "*) echo mps-build-key; exit ;; esac
while test $# -gt 0 && test "$1" != bash && test "$1" != python; do shift; done
test "$1" != bash || exec "$@"
"""


class _Runner:
    """Runs the steps of a composite action; each `uses:` of the cache answers by what was saved before."""

    def __init__(self, folder: Path, inputs: Mapping[str, str]) -> None:
        self.folder, self.saved, self.uses = folder, dict[str, str](), list[str]()
        declared = {name: each.get("default") for name, each in _ACTION["inputs"].items()}
        assert set(inputs) <= set(declared)
        self.inputs = {**declared, **inputs}
        assert None not in self.inputs.values()
        (folder / "bin").mkdir(parents=True)
        (folder / "work").mkdir()
        for name, text in (("nox", _NOX), ("installer", '#!/bin/bash\ntest -f "$1" && echo "$1" >>"$CALLS"\n')):
            (folder / "bin" / name).write_text(text, encoding="utf-8")
            (folder / "bin" / name).chmod(0o755)

    def run(self) -> int:
        """Run all steps; return the status of the first that fails, or 0."""
        outputs: dict[str, dict[str, str]] = {}
        for step in _ACTION["runs"]["steps"]:
            if "if" in step and not self._holds(step["if"], outputs):
                continue
            given = {name: self._filled(text, outputs) for name, text in step.get("env", {}).items()}
            if "uses" in step:
                assert re.fullmatch(r"actions/cache/(restore|save)@[0-9a-f]{40}", step["uses"])
                known = {name: self._filled(text, outputs) for name, text in step["with"].items()}
                self.uses.append(step["uses"].partition("@")[0])
                if step["uses"].startswith("actions/cache/save"):
                    self.saved[known["key"]] = known["path"]
                else:
                    outputs[step["id"]] = {"cache-hit": "true" if known["key"] in self.saved else ""}
                continue
            written = self.folder / "output"
            written.write_text("", encoding="utf-8")
            environ = {
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.defpath}",
                "CALLS": str(self.folder / "calls"),
                "GITHUB_ACTION_PATH": str(_FOLDER),
                "GITHUB_OUTPUT": str(written),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                "RUNNER_TEMP": str(self.folder / "temp"),
                "MPS_BUILD_PYTHON": str(self.folder / "bin/installer"),
                **given,
            }
            assert step["shell"] == "bash"
            argv = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
            done = capture(Command(argv=argv, environ=environ, cwd=self.folder / "work"))
            if not done.ok:
                return done.exit or 1
            if "id" in step:
                lines = written.read_text(encoding="utf-8").splitlines()
                outputs[step["id"]] = dict(line.split("=", 1) for line in lines)
        return 0

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text(encoding="utf-8").splitlines()

    def _filled(self, text: str, outputs: Mapping[str, Mapping[str, str]]) -> str:
        def value(found: re.Match[str]) -> str:
            kind, name, *rest = found[1].split(".")
            return self.inputs[name] if kind == "inputs" else outputs[name][rest[1]]

        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, text)

    def _holds(self, text: str, outputs: Mapping[str, Mapping[str, str]]) -> bool:
        found = re.fullmatch(r"steps\.(\w+)\.outputs\.([\w-]+) != '(\w+)'", text)
        assert found
        return outputs[found[1]].get(found[2], "") != found[3]


def test_the_first_run_builds_and_keeps_and_the_second_only_runs(tmp_path: Path) -> None:
    runner = _Runner(
        tmp_path, {"torch": "2.15.0", "run": 'echo "it is $TORCH" >ran.txt\nfalse | true\ntouch never.txt'}
    )

    assert runner.run() == 1  # as the script's: bash stops at what fails, within a pipe too
    first = runner.calls()
    assert first[0].endswith(".github/actions/nox/install.py")
    noxfile = f"-f {shlex.quote(str(_FOLDER))}/../noxfile.py -s simulate --"
    calls = [line for line in first if line.startswith("-f")]
    assert calls[0] == f"{noxfile} torch==2.15.0 --cache-key "
    assert calls[1].startswith(f"{noxfile} torch==2.15.0 -- python -c ")
    assert calls[2].startswith(f"{noxfile} torch==2.15.0 --macos 15.2 -- bash -eo pipefail -c ")
    assert runner.saved == {"mps-build-key": str(tmp_path / "temp/mps-build-simulate")}
    assert "pytest:  -p mps_build.pytest_plugin --mps-compare, cache: " in first[-1]
    assert (tmp_path / "work/ran.txt").read_text(encoding="utf-8") == "it is 2.15.0\n"
    assert not (tmp_path / "work/never.txt").exists()

    assert runner.run() == 1
    assert runner.uses == ["actions/cache/restore", "actions/cache/save", "actions/cache/restore"]
    assert len([line for line in runner.calls()[len(first) :] if line.startswith("-f")]) == 2


def test_inputs_are_data_and_are_handed_on(tmp_path: Path) -> None:
    given = {
        "torch": "v2.6.0",
        "macos": "14.4",
        "with": "accelerate>=1\nodd; touch hit",
        "compare": "false",
        "run": "true",
    }
    runner = _Runner(tmp_path, given)

    assert runner.run() == 0
    last = [line for line in runner.calls() if line.startswith("-f")][-1]
    words = shlex.split(last)
    assert words[5:11] == ["v2.6.0", "--with", "accelerate>=1", "--with", "odd; touch hit", "--macos"]
    assert words[11:] == ["14.4", "--", "bash", "-eo", "pipefail", "-c", "true"]
    assert runner.calls()[-1].startswith("pytest: , cache:")
    assert not (tmp_path / "work/hit").exists()


def test_what_is_written_of_the_action_uses_what_it_has() -> None:
    """The workflow to copy: ten lines, with inputs that there are."""
    found = _WORKFLOW.search((ROOT / "docs/verify/simulated.md").read_text(encoding="utf-8"))
    assert found and len(found[1].splitlines()) == 10
    job: dict[str, Any] = strict_yaml.unchecked(found[1])["jobs"]
    (step,) = [each for each in next(iter(job.values()))["steps"] if "mps-build/simulate@" in each.get("uses", "")]
    required = {name for name, each in _ACTION["inputs"].items() if each.get("required")}
    assert required <= set(step["with"]) <= set(_ACTION["inputs"])


def test_the_key_is_of_the_target_the_packages_and_what_makes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = {cache_key("torch==2.15.0"), cache_key("v2.6.0"), cache_key("v2.6.0", packages=["a"])}
    assert len(keys) == 3
    assert cache_key("v2.6.0", packages=["b", "a"]) == cache_key("v2.6.0", packages=["a", "b"])
    assert all(re.fullmatch(r"mps-build-[a-z]+-\w+-[a-z0-9.-]+-[0-9a-f]{16}", key) for key in keys)
    assert all((kept._PACKAGE / part).is_dir() for part in kept._MADE_BY)
    for name in ("simulation/a.py", "kernels/b.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")
    monkeypatch.setattr(kept, "_PACKAGE", tmp_path)
    before = cache_key("v2.6.0")
    (tmp_path / "kernels/b.c").write_text("2", encoding="utf-8")
    assert cache_key("v2.6.0") != before
