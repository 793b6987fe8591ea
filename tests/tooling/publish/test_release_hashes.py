"""From the audit on, the hash of each file goes from job to job: the shell of release.yml's steps, run on files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from mps_build.common import strict_yaml
from mps_build.common.process import Captured, Command, capture

ROOT = Path(__file__).parents[3]
JOBS: dict[str, Any] = strict_yaml.unchecked(
    (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
)["jobs"]
AUDITED, ATTESTED = "${{ needs.audit.outputs.sha256sums }}", "${{ needs.attest.outputs.sha256sums }}"
WHEELS = ("torch-2.6.0.whl", "torch-2.6.0.whl.receipt.json", "torch-2.7.0.whl", "torch-2.7.0.whl.receipt.json")

pytestmark = pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum here; the jobs run on Linux")


def run(step: dict[str, Any], temp: Path, **environ: str) -> Captured:
    """Run a step as GitHub does on Linux (bash -e), with what its `env` takes from elsewhere given by hand."""
    assert set(step.get("env", {})) <= environ.keys()
    given = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(temp), "GITHUB_OUTPUT": str(temp / "output"), **environ}
    return capture(Command(argv=("bash", "-e", "-c", step["run"]), cwd=temp, environ=given), timeout_seconds=30)


def step_of(job: str, **key: str) -> dict[str, Any]:
    (name, value), *_ = key.items()
    (found,) = [each for each in JOBS[job]["steps"] if each.get(name) == value]
    return dict(found)


def checks_of(job: str, source: str) -> list[int]:
    """Return the places of the steps that compare with the hashes from another job."""
    steps = enumerate(JOBS[job]["steps"])
    return [at for at, each in steps if each.get("env") == {"SHA256SUMS": source} and "diff" in each.get("run", "")]


def output(temp: Path) -> str:
    """Return the one output of several lines that a step wrote, as GitHub reads it."""
    first, *lines = (temp / "output").read_text(encoding="utf-8").splitlines()
    (temp / "output").unlink()
    name, _, end = first.partition("<<")
    assert name == "sha256sums"
    assert lines.index(end) == len(lines) - 1
    return "\n".join(lines[:-1])


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    for at, folder in enumerate(("wheel-v2.6.0-py3.12", "wheel-v2.7.0-py3.12")):
        (tmp_path / "artifacts" / folder).mkdir(parents=True)
        for name in WHEELS[2 * at : 2 * at + 2]:
            (tmp_path / "artifacts" / folder / name).write_text(name, encoding="utf-8")
    return tmp_path / "artifacts"


@pytest.fixture
def audited(artifacts: Path, tmp_path: Path) -> str:
    """The hashes that the audit hands on; the files lie in wheels/, as the next job downloads them."""
    told = run(step_of("audit", id="gather"), tmp_path)
    assert told.ok, told
    return output(tmp_path)


def test_the_audit_gathers_and_hashes_all_files(audited: str, tmp_path: Path) -> None:
    assert sorted(path.name for path in (tmp_path / "wheels").iterdir()) == sorted(WHEELS)
    assert sorted(line.partition("  ./")[2] for line in audited.splitlines()) == sorted(WHEELS)
    (check,) = checks_of("audit", "${{ steps.gather.outputs.sha256sums }}")
    assert run(JOBS["audit"]["steps"][check], tmp_path, SHA256SUMS=audited).ok


def test_two_artifacts_with_one_name_stop_the_release(artifacts: Path, tmp_path: Path) -> None:
    (artifacts / "wheel-v2.7.0-py3.12" / WHEELS[0]).write_text("another", encoding="utf-8")

    told = run(step_of("audit", id="gather"), tmp_path)

    assert not told.ok
    assert f"::error::two artifacts hold {WHEELS[0]}" in told.stdout
    assert not (tmp_path / "output").exists()


def test_no_artifact_at_all_stops_the_release(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    assert not run(step_of("audit", id="gather"), tmp_path).ok


def _changed(wheels: Path) -> None:
    (wheels / WHEELS[0]).write_text("changed", encoding="utf-8")


def _more(wheels: Path) -> None:
    (wheels / "torch-9.whl").write_text("more", encoding="utf-8")


def _hidden(wheels: Path) -> None:
    (wheels / ".more").write_text("more", encoding="utf-8")


def _deeper(wheels: Path) -> None:
    (wheels / "deeper").mkdir()
    (wheels / "deeper" / "torch-9.whl").write_text("more", encoding="utf-8")


def _fewer(wheels: Path) -> None:
    (wheels / WHEELS[1]).unlink()


def _renamed(wheels: Path) -> None:
    (wheels / WHEELS[0]).rename(wheels / "torch-2.6.1.whl")


@pytest.mark.parametrize("spoil", [_changed, _more, _hidden, _deeper, _fewer, _renamed])
@pytest.mark.parametrize(("job", "source"), [("attest", AUDITED), ("check", ATTESTED), ("publish", ATTESTED)])
def test_what_was_not_audited_is_neither_attested_nor_published(
    job: str, source: str, spoil: Any, audited: str, tmp_path: Path
) -> None:
    (at,) = checks_of(job, source)
    step = JOBS[job]["steps"][at]
    assert run(step, tmp_path, SHA256SUMS=audited).ok
    spoil(tmp_path / "wheels")

    told = run(step, tmp_path, SHA256SUMS=audited)

    assert not told.ok
    assert "::error::these are not the files" in told.stdout


@pytest.mark.parametrize(("job", "source"), [("attest", AUDITED), ("publish", ATTESTED)])
def test_hashes_that_got_lost_stop_the_release(job: str, source: str, audited: str, tmp_path: Path) -> None:
    (at,) = checks_of(job, source)
    assert not run(JOBS[job]["steps"][at], tmp_path, SHA256SUMS="").ok


def test_the_bundles_hashes_join_those_of_the_audit(audited: str, tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text("{}", encoding="utf-8")
    bundle = str(tmp_path / "bundle.json")
    told = run(step_of("attest", id="beside"), tmp_path, BUNDLE=bundle, SHA256SUMS=audited)
    assert told.ok, told
    attested = output(tmp_path)

    assert attested.startswith(audited)
    (at,) = checks_of("publish", ATTESTED)
    publish = JOBS["publish"]["steps"][at]
    assert run(publish, tmp_path, SHA256SUMS=attested).ok
    (tmp_path / "wheels" / f"{WHEELS[0]}.sigstore.json").write_text("[]", encoding="utf-8")
    assert not run(publish, tmp_path, SHA256SUMS=attested).ok


def test_the_check_stands_before_what_it_guards() -> None:
    def place(job: str, words: str) -> int:
        steps = JOBS[job]["steps"]
        return next(at for at, each in enumerate(steps) if words in f"{each.get('uses', '')} {each.get('run', '')}")

    assert place("attest", "download-artifact@") < checks_of("attest", AUDITED)[0] < place("attest", "attest-build-")
    assert checks_of("publish", ATTESTED)[0] < place("publish", "gh release create")
    assert place("audit", "sha256sums<<") < place("audit", "actions/nox")
    assert JOBS["audit"]["outputs"] == {"sha256sums": "${{ steps.gather.outputs.sha256sums }}"}
    assert JOBS["attest"]["outputs"] == {"sha256sums": "${{ steps.beside.outputs.sha256sums }}"}
    assert {"attest", "check"} <= set(JOBS["publish"]["needs"])
    gathered = step_of("audit", id="gather")
    downloads = [each for each in JOBS["audit"]["steps"] if "download-artifact@" in each.get("uses", "")]
    assert [each["with"].get("merge-multiple") for each in downloads] == [None]
    assert downloads[0]["with"]["path"].endswith("/artifacts") and "/artifacts/" in gathered["run"]
