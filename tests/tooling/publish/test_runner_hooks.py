"""runner/: the hooks and the guard, run for real on a Mac that fake tools play."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fleet_hosts import RUNNER, SCRIPTS, Mac
from mps_build.common.process import Captured
from mps_build.publish.fleet import TRUSTED_EVENTS


def _put_hooks(mac: Mac) -> Path:
    """Put the hooks where install puts them (a test above holds that), without the rest of it."""
    folder = mac.root / "usr/local/libexec/mps-build"
    folder.mkdir(parents=True)
    (mac.root / "opt/mps-build").mkdir(parents=True)
    for script in SCRIPTS:
        shutil.copy(script, folder)
    (folder / "repositories").write_text("owner/wheels\n", encoding="utf-8")
    return folder


def _hook(mac: Mac, **environ: str) -> Captured:
    folder = _put_hooks(mac)
    given = {
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_REPOSITORY": "owner/wheels",
        "GITHUB_REF": "refs/heads/main",
        "MPS_BUILD_WORK": str(mac.root / "opt/mps-build/work"),
    }
    return mac.run(folder / "job-started.sh", **given | environ)


def test_the_hook_lets_the_fleets_own_jobs_in(mac: Mac) -> None:
    assert _hook(mac).ok


@pytest.mark.parametrize(
    "environ",
    [
        {"GITHUB_EVENT_NAME": "pull_request"},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
        {"GITHUB_EVENT_NAME": "issue_comment"},
        {"GITHUB_EVENT_NAME": ""},
        {"GITHUB_REPOSITORY": "stranger/wheels"},
        {"GITHUB_REPOSITORY": "owner/wheels2"},
        {"GITHUB_REPOSITORY": "owner.wheels"},
        {"GITHUB_REPOSITORY": ""},
        {"GITHUB_REF": "refs/pull/7/merge"},
        {"FREE_KB": "1000000"},
    ],
)
def test_the_hook_refuses_on_the_host(mac: Mac, environ: dict[str, str]) -> None:
    found = _hook(mac, **environ)

    assert found.exit == 1
    assert "this Mac refuses the job" in found.stdout


def test_a_hook_without_its_list_refuses_all(mac: Mac) -> None:
    folder = _put_hooks(mac)
    (folder / "repositories").unlink()

    environ = {"GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "owner/wheels", "GITHUB_REF": "refs/heads/main"}
    found = mac.run(folder / "job-started.sh", **environ)

    assert found.exit == 1
    assert "is missing" in found.stdout


def test_the_hook_and_the_workflow_step_trust_the_same_events() -> None:
    events = " | ".join(TRUSTED_EVENTS)

    assert f"  {events}) ;;" in (RUNNER / "hooks" / "job-started.sh").read_text(encoding="utf-8")
    for name in ("build-wheel", "verify-mps"):
        text = (RUNNER.parent / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        assert f"            {events}) ;;" in text


def test_the_hook_after_a_job_empties_the_runners_temporary_folder_only(mac: Mac, tmp_path: Path) -> None:
    script = _put_hooks(mac) / "job-completed.sh"
    temporary, other = tmp_path / "_work" / "_temp", tmp_path / "precious"
    for folder in (temporary, other):
        folder.mkdir(parents=True)
        (folder / "file").touch()

    assert mac.run(script, RUNNER_TEMP=str(temporary), MPS_BUILD_WORK=str(mac.root / "opt/mps-build/work")).ok
    assert mac.run(script, RUNNER_TEMP=str(other)).ok

    assert list(temporary.iterdir()) == []
    assert (other / "file").is_file()


@pytest.mark.parametrize(("kilobytes", "status"), [("39062500", 0), ("39062499", 19), ("", 2), ("0", 19), ("many", 2)])
def test_the_guard_wants_forty_gigabytes(mac: Mac, tmp_path: Path, kilobytes: str, status: int) -> None:
    mac.tool("df", f'echo Header; echo "/dev/disk 9 9 {kilobytes or "-"} 1% /x"')

    assert mac.run("disk-guard.sh", str(tmp_path)).exit == status


def test_the_guard_frees_by_our_own_session_and_nothing_by_itself(mac: Mac, tmp_path: Path) -> None:
    mac.tool("nox", 'echo "nox $* in $MPS_BUILD_WORK" >> "$CALLS"')
    (tmp_path / "file").touch()

    found = mac.run("disk-guard.sh", "--free", str(tmp_path), FREE_KB="1000000")

    assert found.exit == 19
    assert mac.calls.read_text(encoding="utf-8") == f"nox -s clean -- work --older-than 7 in {tmp_path}/work\n"
    assert (tmp_path / "file").is_file()
