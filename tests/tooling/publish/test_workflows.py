"""The workflows: every name in them leads somewhere, and what keeps strangers' code off the Macs is in place."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common import strict_yaml
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.common.recipe.forms import matrix
from repository import CI_OUTPUTS, MATRIX_KEYS, faults

ROOT = Path(__file__).parents[3]
WORKFLOWS = ROOT / ".github" / "workflows"
_EVENTS = """contains(fromJSON('["push","release","schedule","workflow_dispatch"]'), github.event_name)"""


def jobs() -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for path in sorted(WORKFLOWS.glob("*.yml")):
        for name, job in strict_yaml.unchecked(path.read_text(encoding="utf-8"))["jobs"].items():
            found.append((path.name, name, job))
    return found


def on_macs() -> list[tuple[str, str, dict[str, Any]]]:
    return [each for each in jobs() if "runs-on" in each[2] and not each[2]["runs-on"].startswith("ubuntu")]


def test_every_name_leads_somewhere() -> None:
    assert sorted(path.stem for path in WORKFLOWS.glob("*.yml")) == [
        "build-wheel",
        "check-mm",
        "checks",
        "nightly",
        "release",
        "releases",
        "verify-kernels",
        "verify-mps",
    ]
    assert faults(ROOT) == []


_MISTAKES = [
    ("release.yml", "needs: [plan, build]", "needs: [plan, biuld]", "needs biuld, which is not a job"),
    ("release.yml", "recipe: ${{ matrix.recipe }}", "recipe: ${{ matrix.recpie }}", "matrix.recpie is not there"),
    ("verify-mps.yml", "fromJSON(matrix.runner)", "fromJSON(matrix.labels)", "matrix.labels is not there"),
    ("build-wheel.yml", "RECIPE: ${{ inputs.recipe }}", "RECIPE: ${{ inputs.recip }}", "inputs.recip is not declared"),
    (
        "nightly.yml",
        "ref: ${{ needs.upstream.outputs.commit }}",
        "ref: ${{ needs.upstream.outputs.sha }}",
        "outputs.sha",
    ),
    ("nightly.yml", "needs: [upstream, build, verify]", "needs: [build, verify]", "needs.upstream is used"),
    ("nightly.yml", "needs.build.outputs.artifact", "needs.build.outputs.artefact", "outputs.artefact is not there"),
    ("build-wheel.yml", "steps.outputs.outputs.sha256", "steps.outputs.outputs.digest", "outputs.digest is not there"),
    (
        "build-wheel.yml",
        "steps.inputs.outputs.artifact",
        "steps.input.outputs.artifact",
        "steps.input.outputs.artifact",
    ),
    ("build-wheel.yml", "jobs.plan.outputs.artifact", "jobs.build.outputs.artifact", "output artifact"),
    ("checks.yml", "$/.github/actions/nox", "$/.github/actions/nocks", "actions/nocks, which is not there"),
    (
        "nightly.yml",
        "uses: $/.github/workflows/verify-mps.yml",
        "uses: $/.github/workflows/verify.yml",
        "which is not there",
    ),
    ("verify-mps.yml", 'nox -s verify_mps -- "$', 'nox -s verify-mps -- "$', "nox has no session verify-mps"),
    ("checks.yml", "dev -- workflows]", "dev -- workflow]", "nox has no session dev -- workflow"),
    ("checks.yml", "--tier slow", "--tier slwo", "nox has no session tests -- --tier slwo"),
    ("nightly.yml", "      accept: known\n", "      acept: known\n", "takes no input acept"),
    ("nightly.yml", "      testers: ${{ vars.MPS_BUILD_TESTERS }}\n", "", "needs the input testers"),
    ("build-wheel.yml", "arguments+=(--shared-cache)", "arguments+=(--share-cache)", "has no option --share-cache"),
    ("nightly.yml", "nox -s dev -- ci issues", "nox -s dev -- ci issue", "ci knows no issue"),
    (
        "release.yml",
        "needs.audit.outputs.sha256sums",
        "needs.audit.outputs.sha256sum",
        "needs.audit.outputs.sha256sum is not there",
    ),
    ("release.yml", "steps.gather.outputs.sha256sums", "steps.gather.outputs.sums", "steps.gather.outputs.sums is not"),
    ("release.yml", "steps.attest.outputs.bundle-path", "steps.attest.outputs.bundle", "outputs.bundle is not there"),
]


@pytest.mark.parametrize(("file", "right", "wrong", "said"), _MISTAKES, ids=[each[3] for each in _MISTAKES])
def test_an_injected_mistake_is_caught(tmp_path: Path, file: str, right: str, wrong: str, said: str) -> None:
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copy(ROOT / "noxfile.py", tmp_path / "noxfile.py")
    path = tmp_path / ".github" / "workflows" / file
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")

    found = faults(tmp_path)

    assert any(said in fault for fault in found), found


_DOCUMENTED = re.search(
    r"```yaml\n(.*?)```", (ROOT / "docs" / "fleet" / "runner.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("", "", ""),
        ("needs: build", "needs: biuld", "needs biuld, which is not a job"),
        ("needs.build.outputs.artifact", "needs.build.outputs.artefact", "outputs.artefact is not there"),
        (", testers:", ", tester:", "takes no input tester"),
        ("verify-mps.yml", "verify.yml", "which is not there"),
    ],
)
def test_the_workflow_to_copy_is_ten_lines_and_checked_like_ours(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert _DOCUMENTED is not None
    text = _DOCUMENTED[1]
    assert len(text.splitlines()) == 10
    assert right in text
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copy(ROOT / "noxfile.py", tmp_path / "noxfile.py")
    here = re.sub(r"OWNER/mps-build/(\S+)@COMMIT", r"$/\1", text.replace(right, wrong, 1))
    (tmp_path / ".github" / "workflows" / "copied.yml").write_text(here, encoding="utf-8")

    found = faults(tmp_path)

    assert any(said in fault for fault in found) if said else found == [], found


def test_the_matrices_have_the_keys_that_the_resolver_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    assert main("ci", ["inputs", "--testers", '[["self-hosted","macos-15"]]']) == 0
    reported = dict(line.split("=", 1) for line in (tmp_path / "output").read_text(encoding="utf-8").splitlines())

    assert reported.keys() == CI_OUTPUTS["inputs"]
    assert json.loads(reported["matrix"])["include"][0].keys() == MATRIX_KEYS["ci inputs"]
    made = matrix([all_recipes()[0]], per_recipe=False, only_default=True)
    assert made["include"][0].keys() == MATRIX_KEYS["matrix"]


def test_macs_are_found_among_the_jobs() -> None:
    assert [(file, name) for file, name, _ in on_macs()] == [("build-wheel.yml", "build"), ("verify-mps.yml", "verify")]


@pytest.mark.parametrize(("file", "name", "job"), on_macs(), ids=lambda value: value if isinstance(value, str) else "")
def test_no_stranger_gets_a_mac(file: str, name: str, job: dict[str, Any]) -> None:
    condition = " ".join(job["if"].split())

    assert condition == f"{_EVENTS} && vars.MPS_BUILD_REPOSITORY == github.repository"
    assert job["permissions"] == {"contents": "read"}
    assert 'case "$GITHUB_EVENT_NAME" in' in job["steps"][0]["run"]
    assert "secrets" not in json.dumps(job)
    assert any(step.get("run") == "nox -s dev -- ci trust" for step in job["steps"])


@pytest.mark.parametrize(("file", "name", "job"), on_macs(), ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_kept_is_kept_after_a_time_out_too(file: str, name: str, job: dict[str, Any]) -> None:
    inner = [step["timeout-minutes"] for step in job["steps"] if "timeout-minutes" in step]
    kept = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "") and step.get("if") == "always()"]

    assert inner and max(inner) <= job["timeout-minutes"] - 30
    assert kept


def test_pull_requests_reach_hosted_linux_only() -> None:
    for path in WORKFLOWS.glob("*.yml"):
        document = strict_yaml.unchecked(path.read_text(encoding="utf-8"))
        triggers = document[True]
        assert "pull_request_target" not in triggers
        if "pull_request" in triggers:
            for job in document["jobs"].values():
                assert job["runs-on"] == "ubuntu-24.04"
                assert job["permissions"] == {"contents": "read"}


def test_nothing_is_granted_that_a_job_does_not_name() -> None:
    for path in WORKFLOWS.glob("*.yml"):
        assert strict_yaml.unchecked(path.read_text(encoding="utf-8"))["permissions"] == {}
    for file, name, job in jobs():
        assert "permissions" in job, f"{file}: {name}"
        if "write" in json.dumps(job["permissions"]):
            assert job["runs-on"] == "ubuntu-24.04", f"{file}: {name}"


def test_every_action_is_pinned_by_commit_with_its_version_beside() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github").rglob("*.yml")]
    uses = [line.strip() for text in texts for line in text.splitlines() if re.match(r"\s*(- )?uses: [^.$\s]", line)]

    assert len(uses) > 10
    for line in uses:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_no_expression_stands_in_a_script() -> None:
    for file, name, job in jobs():
        for step in job.get("steps", []):
            assert "${{" not in step.get("run", ""), f"{file}: {name}"
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, f"{file}: {name}"


def test_a_release_uses_no_shared_cache_and_signs_on_no_mac() -> None:
    release = strict_yaml.unchecked((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]

    assert release["build"]["with"]["cache"] == "none"
    signing = [name for name, job in release.items() if "id-token" in job["permissions"]]
    assert signing == ["attest", "pages"]
    assert all(release[name]["runs-on"] == "ubuntu-24.04" for name in signing)


def test_what_is_signed_has_passed_through_no_job_that_installs_packages() -> None:
    release = strict_yaml.unchecked((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    taken = [step["with"] for step in release["attest"]["steps"] if "download-artifact" in step.get("uses", "")]
    of_this_file = {
        step["with"]["name"]
        for job in release.values()
        for step in job.get("steps", [])
        if "upload-artifact@" in step.get("uses", "")
    }

    assert [each["pattern"] for each in taken] == ["wheel-*"]
    assert not [name for name in of_this_file if name.startswith("wheel-")]


def test_the_commands_of_a_workflow_are_sessions_and_little_else() -> None:
    for file, name, job in jobs():
        for step in job.get("steps", []):
            if "run" in step:
                lines = [line for line in step["run"].splitlines() if line.strip()]
                assert len(lines) <= 7, f"{file}: {name}: a session's work stands in the workflow"


def test_the_lists_that_are_no_pages_are_made_by_commands_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    steps = strict_yaml.unchecked((WORKFLOWS / "checks.yml").read_text(encoding="utf-8"))["jobs"]["lists"]["steps"]
    made = re.findall(r'nox -s (\w+) -- (.+) > "\$RUNNER_TEMP/lists/([\w$-]+)\.txt"', steps[-2]["run"])

    assert [name for _, _, name in made] == ["causes", "known-issues-$release"]
    for command, arguments, _ in made:
        assert main(command, arguments.replace('"$release"', "v2.6.0").split()) == 0
        assert len(capsys.readouterr().out.splitlines()) > 50
    assert "upload-artifact@" in steps[-1]["uses"]
    assert steps[-1]["with"] | {"retention-days": 0} == {
        "name": "lists",
        "path": "${{ runner.temp }}/lists/",
        "if-no-files-found": "error",
        "retention-days": 0,
    }


def test_nobody_who_starts_a_workflow_chooses_the_code_that_a_mac_runs() -> None:
    for path in WORKFLOWS.glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert "tool-repository" not in text
        for job in strict_yaml.unchecked(text)["jobs"].values():
            for step in job.get("steps", []):
                if "actions/checkout" in step.get("uses", ""):
                    given = f"{step['with'].get('repository', '')} {step['with'].get('ref', '')}"
                    assert "inputs." not in given, path.name


def test_a_job_that_may_sign_or_write_runs_no_package_of_anybody() -> None:
    """GitHub's own actions, pinned, and `cp` and `gh`: no checkout, no session, no pip."""
    release = strict_yaml.unchecked((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    seen = 0
    for name, job in release.items():
        if "write" not in json.dumps(job["permissions"]):
            continue
        seen += 1
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(each.startswith("actions/") and "checkout" not in each for each in uses), name
        lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
        assert not [line for line in lines if re.search(r"\b(nox|pip|uvx?|npm|curl|python3?)\b", line)], name
    assert seen == 3


def test_what_installs_nox_holds_every_file_to_its_hash() -> None:
    action = ROOT / ".github" / "actions" / "nox"
    assert "--require-hashes" in (action / "install.py").read_text(encoding="utf-8")
    text = (action / "requirements.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"(?m)^([\w.-]+)==[\w.]+", text)
    assert "nox" in pinned
    assert all("--hash=sha256:" in block for block in re.split(r"(?m)^(?=[\w.-]+==)", text)[1:])


def test_what_is_ours_is_taken_from_the_workflows_own_commit() -> None:
    # `./` is what a job has checked out, which may be another repository; zizmor: self-repository.
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github").rglob("*.yml")}
    assert any("uses: $/" in text for text in texts.values())
    assert [name for name, text in texts.items() if "uses: ./" in text] == []


def test_nothing_is_ignored_of_what_the_auditor_finds() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github").rglob("*") if path.is_file()]
    assert not [text for text in texts if "zizmor: ignore" in text]
    assert not (ROOT / ".github" / "zizmor.yml").exists()
    assert "--no-ignores" in (ROOT / "noxfile.py").read_text(encoding="utf-8")
