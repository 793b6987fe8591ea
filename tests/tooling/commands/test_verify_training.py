"""The command from its arguments to its exit status and its record, on libraries that play their parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_suites import add_libraries, write_python, write_training_suite
from mps_build.cli import main
from mps_build.common.records.device_record import load_record
from mps_build.verify import preparation
from mps_build.verify.target.diagnosis import HostFacts
from processes import LONGEST_SECONDS, wait_until

SHIPPED = Path(__file__).parents[2] / "training"
TORCH: dict[str, Any] = {"version": "2.13.0", "built": True, "available": True, "name": "Apple M3", "sum": 1000}
VERSIONS = {"torch": "2.13.0", "accelerate": "1.15.0", "transformers": "5.23.0", "scikit-learn": "1.9.1"}
MAC = HostFacts(
    system="Darwin", macos="15.3", chip="Apple M3", virtual=False, rosetta=False, apple_silicon=True, document={}
)
LINUX = HostFacts(system="Linux", document={})

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command; `wrong` says by script what is wrong with it."""
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "home").mkdir()

    def call(
        *arguments: str,
        host: HostFacts | None = MAC,
        wrong: dict[str, Any] | None = None,
        use_cpu: bool = False,
        versions: dict[str, str] = VERSIONS,
        **torch: Any,
    ) -> tuple[int, dict[str, Any]]:
        if host is not None:
            monkeypatch.setattr(preparation, "observe_host", lambda recording: host)
        known = (SHIPPED / "known_issues.yaml").read_text()
        root = write_training_suite(tmp_path / "data", json.dumps(wrong or {}), known_issues=known)
        monkeypatch.setattr("mps_build.verify.training.suite.data_root", lambda: root)
        folder = tmp_path / f"python-{len(list(tmp_path.iterdir()))}"
        python = write_python(folder, json.dumps(TORCH | torch))
        add_libraries(folder / "site", json.dumps({"use_cpu": use_cpu}), versions)
        document = tmp_path / "answer.json"
        fixed = ["--python", str(python), "--record", str(tmp_path / "record"), "--json", str(document)]
        status = main("verify_training", [*fixed, *arguments])
        return status, json.loads(document.read_text())

    return call


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in document["cases"]}


@pytest.mark.slow
def test_on_a_right_mac_every_promise_is_verified_and_recorded(run: Run, tmp_path: Path) -> None:
    files = [str(tmp_path / "out" / name) for name in ("j.xml", "p.html", "s.md")]

    status, document = run("--junit", files[0], "--html", files[1], "--markdown", files[2])

    assert (status, document["verdict"]) == (0, "verified")
    assert document["statement"] == "Training with Accelerate and Transformers. MPS on Apple M3."
    unexpected = {"accelerate-config-default"}  # on a Mac it is known to be wrong
    assert {name for name, outcome in outcomes(document).items() if outcome != "passed"} == unexpected
    assert {"accelerate-vision-device", "accelerate-two-processes", "transformers-trainer-fallback-losses"} <= set(
        outcomes(document)
    )
    reported = document["environment"]["training"]
    assert "PyTorch version" in reported["accelerate_env"]
    assert reported["accelerate_config"]["use_cpu"] is False
    assert document["environment"]["removed"] == {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    assert load_record(tmp_path / "record" / "record.json").verdict == "verified"
    assert all(document["statement"] in Path(name).read_text() for name in files)


def test_the_users_home_is_left_alone_and_ours_is_in_the_record(run: Run, tmp_path: Path) -> None:
    run("--only", "accelerate-command")

    assert list((tmp_path / "home").iterdir()) == []
    assert (tmp_path / "record" / "hf_home" / "accelerate" / "default_config.yaml").is_file()


@pytest.mark.parametrize("side", ["device", "cpu"])
def test_a_failure_of_the_suite_is_not_the_torchs(run: Run, tmp_path: Path, side: str) -> None:
    status, document = run("--only", "accelerate-vision", wrong={"accelerate_vision": {"own_fault": side}})

    assert (status, document["cause"], document["verdict"]) == (20, "own_fault", "not_verified")
    assert "Numpy is not available" in document["error"]
    assert f"accelerate-vision.{side}.log" in document["hint"]
    assert load_record(tmp_path / "record" / "record.json").verdict == "not_verified"


@pytest.mark.slow
def test_a_default_config_that_keeps_mps_off_is_a_known_issue_and_the_launches_use_mps_all_the_same(run: Run) -> None:
    chosen = ("--only", "accelerate-command,accelerate-vision")
    status, document = run(*chosen, use_cpu=True)

    assert (status, document["verdict"]) == (11, "known_issues_only")
    assert [name for name, outcome in outcomes(document).items() if outcome == "known"] == ["accelerate-config-default"]
    assert outcomes(document)["accelerate-vision-device"] == "passed"
    assert run(*chosen, "--accept", "known", use_cpu=True)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "case", "says"),
    [
        ({"accelerate_vision": {"stays": True}}, "accelerate-vision-device", "on cpu, not on mps"),
        ({"accelerate_vision": {"gradient": 0.1}}, "accelerate-vision-gradients", "a.weight"),
        ({"accelerate_paraphrase": {"loss": "nan"}}, "accelerate-paraphrase-losses", "step 3: the loss is nan"),
        ({"accelerate_paraphrase": {"accuracy": 0.94}}, "accelerate-paraphrase-accuracy", "0.940"),
        ({"trainer_paraphrase": {"dies": True}}, "transformers-trainer-runs", "not currently implemented"),
        ({"trainer_paraphrase": {"fallbacks": ["aten::x"]}}, "transformers-trainer-fallback", "aten::x"),
        ({"generate": {"fails": "two"}}, "transformers-generate-two", "off"),
    ],
)
def test_each_wrong_answer_is_a_regression_by_its_name(run: Run, wrong: dict[str, Any], case: str, says: str) -> None:
    workload = "-".join(case.split("-")[:2])

    status, document = run("--only", workload, wrong=wrong)

    assert (status, document["cause"], document["verdict"]) == (10, "regressed", "regressed")
    found = next(row for row in document["cases"] if row["id"] == case)
    assert found["outcome"] == "failed"
    assert says in found["reason"]


@pytest.mark.slow
def test_an_abort_costs_one_case_and_the_others_are_run(run: Run) -> None:
    status, document = run("--only", "transformers-architectures", wrong={"architectures": {"aborts": "two"}})

    assert status == 10
    assert outcomes(document) == {
        "transformers-architectures-one": "passed",
        "transformers-architectures-two": "crashed",
        "transformers-architectures-three": "passed",
    }


@pytest.mark.slow
def test_a_gpu_fault_that_a_run_survives_is_no_pass(run: Run) -> None:
    fault = (
        "Error: command buffer exited with error status.\n\tThe Metal Performance Shaders operations encoded on it may "
        "not have completed.\n\tError: \n\t(null)\n\tInternal Error (0000000e:Internal Error)"
    )

    status, document = run("--only", "accelerate-vision", wrong={"accelerate_vision": {"says": fault}})

    assert status in (10, 17)
    assert outcomes(document)["accelerate-vision-runs"] == "failed"


def test_a_rehearsal_says_so_first_and_the_limit_of_mps_is_not_applicable(run: Run) -> None:
    chosen = "accelerate-vision,accelerate-two-processes"

    status, document = run("--device", "cpu", "--only", chosen, host=LINUX)

    assert (status, document["verdict"]) == (0, "rehearsed")
    assert document["statement"].endswith("A rehearsal on the CPU: it says nothing about MPS.")
    assert outcomes(document)["accelerate-two-processes"] == "skipped"
    assert "accelerate-vision-fallback" not in outcomes(document)


def test_without_mps_nothing_is_verified(run: Run) -> None:
    assert run(host=LINUX)[0] == 3
    assert run(built=False, available=False)[0] == 12
    status, document = run(available=False)
    assert (status, document["verdict"], document["cases"]) == (14, "not_verified", [])


def test_one_library_alone_is_tested_and_said(run: Run) -> None:
    _, document = run("--with", "transformers", "--only", "*-generate")

    assert document["selection"]["with"] == ["transformers"]
    assert document["statement"].startswith("Training with Transformers.")
    assert outcomes(document)
    assert all(name.startswith("transformers-") for name in outcomes(document))


@pytest.mark.slow
def test_a_chosen_part_says_so_and_brings_what_it_is_compared_with(run: Run) -> None:
    _, document = run("--only", "transformers-trainer-fallback")

    assert "A chosen part." in document["statement"]
    assert outcomes(document)["transformers-trainer-losses"] == "passed"
    status, document = run("--only", "accelerate-sound")
    assert (status, "no workload accelerate-sound" in document["message"]) == (2, True)


def test_a_missing_package_is_named_with_the_version_that_fits(run: Run) -> None:
    status, document = run(versions={"torch": "2.13.0", "accelerate": "1.15.0"})

    assert (status, document["cause"]) == (6, "environment")
    assert "has no scikit-learn, transformers (nothing is installed into it)" in document["message"]
    fits = "5.23.0" if sys.version_info >= (3, 11) else "5.20.2"  # versions.yaml
    assert f"-m pip install scikit-learn transformers=={fits}" in document["hint"]
    _, document = run("--with", "accelerate", host=LINUX, versions={"torch": "2.13.0", "accelerate": "1.15.0"})
    assert document["cause"] == "host"


def test_an_installed_transformers_that_is_too_new_for_its_torch_is_refused_with_the_one_that_fits(run: Run) -> None:
    status, document = run(versions={**VERSIONS, "torch": "2.4.1"}, version="2.4.1")

    assert status == 2
    assert "torch 2.4.1 is too old for transformers 5.23.0, which needs torch 2.6" in document["message"]
    assert "transformers 5.14.1 fits" in document["message"]


def test_1_12_is_refused_before_the_machine_is_looked_at(run: Run) -> None:
    status, document = run(versions={**VERSIONS, "torch": "1.12.1"}, version="1.12.1")
    assert (status, "82707" in document["message"]) == (2, True)


def test_versions_are_not_chosen_for_an_environment_that_is_not_ours(run: Run) -> None:
    status, document = run("--transformers", "5.23.0")

    assert (status, "nothing is installed into" in document["message"]) == (2, True)


def test_a_wheel_for_another_platform_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    wheel = tmp_path / "torch-2.13.0-cp312-cp312-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch/__init__.py", "")

    status = main("verify_training", [str(wheel), "--device", "cpu", "--json", str(tmp_path / "answer.json")])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert (status, "is for win_amd64" in document["message"]) == (2, True)


@pytest.mark.parametrize(
    ("files", "says"),
    [(None, "no such folder"), ((), "holds no config.json"), (("config.json",), "holds no weights")],
)
def test_real_weights_that_are_none_are_refused(
    run: Run, tmp_path: Path, files: tuple[str, ...] | None, says: str
) -> None:
    folder = tmp_path / "model"
    if files is not None:
        folder.mkdir()
        for name in files:
            (folder / name).write_text("{}")

    status, document = run("--real-weights", str(folder))

    assert (status, says in document["message"]) == (2, True)


def test_real_weights_are_one_case_more(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).write_text("{}")

    status, document = run("--real-weights", str(tmp_path / "model"), "--only", "transformers-real-weights")

    assert (status, outcomes(document)) == (0, {"transformers-real-weights": "passed"})


@pytest.mark.slow
def test_a_fault_that_is_caught_ends_the_run_there(run: Run, tmp_path: Path) -> None:
    fault = tmp_path / "fault.py"
    fault.write_text("def wrong(): ...\n")

    chosen = ("--inject", f"{fault}:wrong", "--only", "accelerate-vision")

    status, document = run(*chosen, wrong={"accelerate_vision": {"stays": True}})

    assert (status, document["fault"]) == (10, "caught")
    assert list(outcomes(document))[-1] == "accelerate-vision-device"
    status, document = run(*chosen)
    assert (status, document["fault"], document["verdict"]) == (0, "missed", "rehearsed")


@pytest.mark.slow
def test_a_workload_that_fails_before_the_faults_first_hit_is_no_catch(run: Run, tmp_path: Path) -> None:
    fault = tmp_path / "fault.py"
    fault.write_text("def wrong(): ...\n")
    chosen = ("--inject", f"{fault}:wrong", "--only", "accelerate-vision,transformers-architectures")
    own = {"accelerate_vision": {"stays": True, "hits": 0}, "architectures": {"fails": "-one", "hits": 0}}

    status, document = run(*chosen, wrong=own)

    # What fails by itself beside a fault that is never met is said, and is no verdict.
    assert (status, document["fault"]) == (2, "not_exercised")
    assert "accelerate-vision-device" in document["message"]
    found = outcomes(document)
    assert (found["accelerate-vision-device"], found["transformers-architectures-three"]) == ("failed", "passed")


@pytest.mark.slow
def test_an_interrupted_run_keeps_a_labelled_partial_record(run: Run, tmp_path: Path) -> None:
    run("--only", "accelerate-vision")  # it writes the files
    folder = next(path for path in tmp_path.iterdir() if path.name.startswith("python-"))
    (tmp_path / "data" / "tests" / "training" / "state.json").write_text('{"accelerate_paraphrase": {"sleeps": true}}')
    scripts = Path(__file__).parents[3] / "scripts"
    code = (
        "import sys; from pathlib import Path; from mps_build.cli import main\n"
        "from mps_build.verify.training import suite\n"
        f"suite.data_root = lambda: Path({str(tmp_path / 'data')!r})\n"
        "sys.exit(main('verify_training', sys.argv[1:]))"
    )
    record = tmp_path / "interrupted"
    argv = [sys.executable, "-c", code, "--python", str(folder / "python"), "--device", "cpu", "--record", str(record)]
    argv += ["--only", "accelerate-vision,accelerate-paraphrase"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(scripts), *sys.path])}
    with subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        asleep = record / "exchange" / "accelerate-paraphrase" / "asleep"
        wait_until(lambda: asleep.exists() or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONGEST_SECONDS) == 143

    kept = load_record(record / "record.json")
    assert (kept.partial, kept.verdict, kept.cause) == (True, "not_verified", "interrupted")
    assert "accelerate-vision-accuracy" in {case.id for case in kept.cases}
    assert not any(case.id.startswith("accelerate-paraphrase") for case in kept.cases)


def test_the_shipped_table_of_known_issues_names_cases_that_there_are() -> None:
    from mps_build.common.known_issues import load_issues

    for row in load_issues(SHIPPED / "known_issues.yaml"):
        assert set(row.cases or ()) <= {"accelerate-config-default"}, row.id
