"""One failure as a script of its own: it holds the case and what the case needs, and nothing of the others."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import Case, KnownIssue, Python, Record, Simulated, Torch, write_record
from mps_build.verify import simulated_suites
from mps_build.verify.reports.html import render
from mps_build.verify.reports.reduction import ReductionDevice, find_python, reduce_case
from mps_build.verify.reports.repro import embed, render_issue, render_script, without_other_cases
from mps_build.verify.target.environments import EnvironmentStore

SUITE = Path(__file__).parents[3] / "device"
CASE = Case(
    id="issue-131750",
    layer="regressions",
    issue=("131750",),
    outcome="failed",
    reason='Mismatch: off by 0.01 """ \\',
    largest=0.01,
    bound=0.001,
    file="test_norms.py",
)
RECORD = Record(
    tool="mps-build 0",
    statement="MPS on Apple M1.",
    verdict="regressed",
    exit_code=10,
    partial=False,
    device="mps",
    target={},
    torch=Torch(version="2.13.0", commit="c" * 40),
    started="2026-11-21T19:00:00+00:00",
    seconds=1.0,
    cases=(CASE, Case(id="test_x::collection", layer="x", outcome="crashed", file="test_x.py")),
)


def test_the_script_is_python_and_brings_every_module_that_it_imports() -> None:
    sources = embed(SUITE, "test_norms.py", "issue-131750")

    ast.parse(render_script(RECORD, CASE, sources))
    assert next(iter(sources)) == "test_norms"
    assert {"engine", "engine.states", "engine.compare", "engine.faults"} <= set(sources)
    assert not {name for name in sources if "conftest" in name}


def test_what_the_script_itself_imports_of_the_suite_is_in_it() -> None:
    sources = embed(SUITE, "test_norms.py", "issue-131750")
    script = ast.parse(render_script(RECORD, CASE, sources))

    imported = [node for node in ast.walk(script) if isinstance(node, ast.ImportFrom) and node.level == 0]
    ours = [node for node in imported if (node.module or "").startswith("engine")]
    assert ours
    for node in ours:
        assert node.module and node.module in sources
        defined = {each.name for each in ast.parse(sources[node.module]).body if hasattr(each, "name")}
        assert {each.name for each in node.names} <= defined, node.module


def test_the_sources_in_the_script_are_the_suites(tmp_path: Path) -> None:
    sources = embed(SUITE, "test_norms.py", "issue-131750")
    namespace: dict[str, object] = {"__name__": "script", "__file__": "script.py"}

    exec(compile(render_script(RECORD, CASE, sources), "script.py", "exec"), namespace)

    embedded = namespace["SOURCES"]
    assert isinstance(embedded, dict)
    assert {name: text.strip() for name, text in embedded.items()} == {
        name: text.strip() for name, text in sources.items()
    }


def test_other_cases_are_left_out_and_what_is_used_stays() -> None:
    text = (
        "@cases.case('a')\ndef _a(x):\n    return x\n\n\n"
        "@cases.case('helper')\ndef _used(x):\n    return x\n\n\n"
        "@cases.case('b')\ndef _b(x):\n    return _used(x)\n\n\n"
        "@cases.case(f'{1}')\ndef _computed(x):\n    return x\n"
    )

    left = without_other_cases(text, "b")

    assert "_a(x)" not in left
    assert all(name in left for name in ("def _used", "def _b", "def _computed"))
    ast.parse(left)


def test_the_script_without_torch_says_so_and_shows_help_without_it(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text(render_script(RECORD, CASE, embed(SUITE, "test_norms.py", "issue-131750")))

    helped = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=False)

    assert (
        helped.returncode == 0
        and "--inject" in helped.stdout
        and "--plant" not in helped.stdout
        and "issue-131750: a wrong answer of mps" in helped.stdout
    )


@pytest.mark.parametrize(
    ("finds", "arguments", "status", "says"),
    [
        ("return None", (), 0, "right: issue-131750"),
        ("raise AssertionError('off')", (), 1, "WRONG: AssertionError: off"),
        ("raise sys.modules['engine.states'].Refused('too old')", (), 2, "not tried: too old"),
        ("return None", ("--device", "absent"), 2, "not tried: torch sees no absent"),
        ("return None", ("--inject", "nowhere.py:fault"), 3, "no such file: nowhere.py"),
        ("return None", ("--inject", "nowhere.py:fault"), 3, "this script failed"),
        ("return None", ("--plant", "nowhere.py:fault"), 3, "note: --plant is now --inject"),
        ("return None", ("--device", "broken"), 3, "RuntimeError: broken"),
    ],
)
def test_the_scripts_status_tells_right_wrong_not_tried_and_failed(
    tmp_path: Path, finds: str, arguments: tuple[str, ...], status: int, says: str
) -> None:
    """The frame and torch only play their parts: what is tested is what the script makes of them."""
    sources = {
        "test_norms": ("class Case:\n    id = 'issue-131750'\n\nclass cases:\n    def listed(full): return [Case]\n"),
        "engine": "",
        "engine.runs": "FaultMaker = object\ndef Bench(device, around): return None\n",
        "engine.faults": (SUITE / "engine" / "faults.py").read_text(),
        "engine.selection": (
            "def prepare_device(name):\n    if name == 'broken': raise RuntimeError(name)\n"
            "    if name == 'absent': raise ValueError('torch sees no absent')\n"
        ),
        "engine.states": f"import sys\nclass Refused(Exception): ...\ndef run_case(case, bench): {finds}\n",
    }
    (tmp_path / "repro.py").write_text(render_script(RECORD, CASE, sources))
    (tmp_path / "torch.py").write_text("__version__ = '2.13.0'\nversion = None\ndef ones(*_, device): return None\n")

    argv = [sys.executable, str(tmp_path / "repro.py"), *arguments]
    reported = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (reported.returncode, says in reported.stdout + reported.stderr) == (status, True), reported.stderr


def test_the_issue_names_versions_what_was_found_and_the_script() -> None:
    text = render_issue(RECORD, CASE, "print()", "repro.py")

    assert text.startswith("# [MPS] issue-131750: off by 0.01")
    assert "largest error 0.01, allowed 0.001" in text
    assert "| torch | 2.13.0 (cccccccccccc) |" in text
    assert "https://github.com/pytorch/pytorch/issues/131750" in text
    assert "rehearsal" not in text
    injected = RECORD.model_copy(update={"selection": {"inject": "f.py:n"}, "statement": "A fault was injected."})
    assert "A fault was injected." in render_issue(injected, CASE, "", "repro.py")


def test_an_issue_of_a_simulated_device_says_so_before_anything_else() -> None:
    link = "https://github.com/pytorch/pytorch/issues/1"
    known = KnownIssue(id="row", kind="limit", link=link, title="no LSTM", outcome="fails", reason="it is so")
    record = RECORD.model_copy(
        update={
            "simulated": Simulated(release="2.6.0", macos="15.2"),
            "statement": "Host code on Linux.",
            "known_issues": (known,),
        }
    )

    text = render_issue(record, CASE.model_copy(update={"known_issue": "row"}), "", "repro.py")

    assert text.index("Host code on Linux.") < text.index("**Expected:**")
    assert f"Known as {link}, a limit of the simulation (no LSTM): it is so." in text


def test_what_is_known_is_not_drawn_as_a_new_failure() -> None:
    record = RECORD.model_copy(update={"cases": (CASE.model_copy(update={"outcome": "known"}),)})

    bars = [page.partition('<div class="bar">')[2].partition("</div>")[0] for page in map(render, (RECORD, record))]

    assert ('class="bad"' in bars[0], 'class="bad"' in bars[1], 'class="known"' in bars[1]) == (True, False, True)


def test_the_command_writes_both_and_refuses_what_is_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_record(RECORD, tmp_path / "record.json")

    assert main("repro", ["record.json", "issue-131750"]) == 0
    assert {path.name for path in tmp_path.glob("repro_*")} == {"repro_issue_131750.py", "repro_issue_131750.md"}
    (tmp_path / "to").mkdir()
    assert main("repro", ["record.json", "issue-131750", "--output", "to/bug.py"]) == 0
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"bug.py", "bug.md"}
    assert main("repro", ["record.json", "issue-13175"]) == 2
    assert main("repro", ["record.json", "test_x::collection"]) == 2
    assert main("repro", ["no.json", "issue-131750"]) == 2


@pytest.mark.parametrize(
    ("simulated", "is_made"),
    [
        (Simulated(release="2.15.0", macos="15.2", official=True), True),
        (Simulated(release="2.6.0", macos="14.4"), True),
        (Simulated(release="2.6.0", macos="14.4", source="/tree/of/somebody"), False),
        (Simulated(release="2.6.0", macos="14.4", torch="built"), False),  # it would be compiled for half an hour
        (Simulated(release="2.6.0+rehearsal.linux", macos="15.2", official=True), False),
        (Simulated(release="2.15.0; touch owned", macos="15.2", official=True), False),
        (Simulated(release="2.15.0", macos="15 $(touch owned)", official=True), False),
    ],
)
def test_a_case_of_a_simulated_device_is_reduced_there_unless_the_record_names_somebodys_code(
    simulated: Simulated,
    is_made: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The hint under a simulated run named this command, which found no Python with torch."""
    made: list[Simulated] = []
    reducer = tmp_path / "python"
    reducer.write_text(f'#!/bin/sh\necho "$DEVICE" >> {tmp_path}/device\nexit 1\n')
    reducer.chmod(0o755)

    @contextmanager
    def python(given: Simulated, store: EnvironmentStore) -> Iterator[SimpleNamespace]:
        made.append(given)
        found = SimpleNamespace(executable=reducer), SimpleNamespace(variables={"DEVICE": "simulated"})
        yield SimpleNamespace(interpreter=found[0], environ=found[1])

    monkeypatch.setattr(simulated_suites, "simulated_python", python)
    monkeypatch.chdir(tmp_path)
    write_record(RECORD.model_copy(update={"simulated": simulated}), tmp_path / "record.json")

    assert main("repro", ["record.json", "issue-131750"]) == 0
    assert made == ([simulated] if is_made else [])
    assert not is_made or (tmp_path / "device").read_text(encoding="utf-8") == "simulated\n"
    release = "torch==2.15.0" if simulated.official else "v2.6.0"
    command = f"nox -s simulate -- {release} --macos {simulated.macos} -- " if is_made else ""
    assert f"next: {command}python repro_issue_131750.py" in " ".join(capsys.readouterr().out.split())


def test_a_file_that_the_suite_no_longer_has_is_named() -> None:
    with pytest.raises(UsageError, match=r"test_gone\.py: the record names a file"):
        embed(SUITE, "test_gone.py", "x")


@pytest.mark.parametrize(
    "file", ["../../../pyproject.toml", "/etc/passwd", "../device/test_norms.py", "engine/states.py"]
)
def test_a_record_names_a_file_of_the_suite_or_nothing(file: str) -> None:
    with pytest.raises(UsageError, match="does not have"):
        embed(SUITE, file, CASE.id)


def test_a_link_in_the_suite_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="does not have"):
        embed(tmp_path, "test_x.py", CASE.id)


def test_a_records_texts_are_harmless_in_script_and_issue() -> None:
    evil = "\ud800 a\0b \x1b[2J \u202e ``` ```` </details> @all | x\n# y '''\"\"\"\\"
    case = CASE.model_copy(update={"reason": evil, "issue": (evil,)})
    record = RECORD.model_copy(update={"statement": evil, "torch": Torch(version=evil), "tool": evil, "device": "cpu"})

    script = render_script(record, case, embed(SUITE, "test_norms.py", CASE.id))
    issue = render_issue(record, case, script, "repro.py")

    ast.parse(script)
    for text in (script, issue):
        text.encode()
        assert not [each for each in "\0\x1b\u202e" if each in text]
    fences = [line for line in issue.splitlines() if line.startswith("`````")]
    assert len(fences) == 4
    outside, is_inside = [], False
    for line in issue.splitlines():
        is_inside ^= line in fences
        outside += [] if is_inside or line in (*fences, "</details>") else [line]
    assert not [word for word in ("</details>", "@all", "```") if word in "\n".join(outside)]


def test_a_python_that_a_record_names_is_run_only_if_this_tool_made_it(tmp_path: Path) -> None:
    ours = tmp_path / "verify" / "environments" / "a" / "bin" / "python"
    ours.parent.mkdir(parents=True)
    foreign = tmp_path / "python"
    for file in (ours, foreign):
        file.write_text("")

    def of(executable: str) -> Path | None:
        record = RECORD.model_copy(update={"python": Python(executable=executable)})
        return find_python(record, None, tmp_path, {})

    assert of(str(ours)) == ours
    assert of(str(foreign)) is None
    assert of(f"{tmp_path}/verify/environments/../../python") is None
    assert find_python(RECORD, foreign, tmp_path, {}) == foreign
    assert find_python(RECORD, None, tmp_path, {"MPS_BUILD_TORCH_PYTHON": str(foreign)}) == foreign
    with pytest.raises(UsageError, match="no such file"):
        find_python(RECORD, tmp_path / "none", tmp_path, {})


def test_a_python_that_is_named_from_where_the_user_stands_is_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reducer runs in a folder of its own: a relative `--python` was not there."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    monkeypatch.chdir(tmp_path)

    for given in ("venv", "venv/bin/python"):
        assert find_python(RECORD, Path(given), tmp_path, {}) == python
    assert find_python(RECORD, None, tmp_path, {"MPS_BUILD_TORCH_PYTHON": "venv/bin/python"}) == python


def test_a_reducer_that_gives_no_answer_leaves_the_long_script(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ImportError: libtorch' >&2\nexit 1\n")
    broken.chmod(0o755)

    found = reduce_case(SUITE, RECORD, CASE, ReductionDevice(python=broken), "words")

    assert found.script is None and "ImportError: libtorch" in found.refused
    assert reduce_case(SUITE, RECORD, CASE, ReductionDevice(python=None), "words").refused
