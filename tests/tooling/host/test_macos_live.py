"""A live host is queried by running its tools: here a folder of small scripts that answer as a Mac's do."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from macs import specimens
from mps_build.cli import main
from mps_build.common.errors import HostError
from mps_build.common.process import Command, capture
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.host.host import Host, observe, xcode_toolchain
from mps_build.host.probes import table
from mps_build.host.probes.probers import LiveProber, RecordedProber, RecordingProber, recorded
from mps_build.host.probes.table import LEAKS, METAL_PROOF, Probe
from mps_build.host.requirements.inspect import blockers, inspect
from mps_build.host.requirements.xcode import choose_xcode
from mps_build.wheel_build.planning import check_host
from processes import LONGEST_SECONDS

OLD, NEW = "/Applications/Xcode_15.2.app", "/Applications/Xcode 26.5.app"
CHOSEN = "/Library/Developer/CommandLineTools"

# Like the real ones: each answers by DEVELOPER_DIR, else by what xcode-select chose.
XCODEBUILD = f"""
case "${{DEVELOPER_DIR-}}" in
  "{OLD}/Contents/Developer") printf 'Xcode 15.2\\nBuild version 15C500b\\n' ;;
  "{NEW}/Contents/Developer") printf 'Xcode 26.5\\nBuild version 17F42\\n' ;;
  *) echo "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory" \\
          "'{CHOSEN}' is a command line tools instance" >&2; exit 1 ;;
esac
"""
XCRUN = f"""
case "$*" in
  *--show-sdk-version*) case "${{DEVELOPER_DIR-}}" in "{NEW}"*) echo 26.5 ;; *) echo 14.2 ;; esac ;;
  *metal*-std=metal4.0*|*metal*-std=metal3.1*)
    case "${{DEVELOPER_DIR-}}$*" in
      "{NEW}"*) : > "${{@: -1}}" ;;
      "{OLD}"*metal3.1*) : > "${{@: -1}}" ;;
      "{OLD}"*) echo "error: invalid value 'metal4.0' in '-std=metal4.0'" >&2; exit 1 ;;
      *) echo 'xcrun: error: unable to find utility "metal", not a developer tool or in PATH' >&2; exit 72 ;;
    esac ;;
  *) echo 'xcrun: error: unable to find utility "metal", not a developer tool or in PATH' >&2; exit 72 ;;
esac
"""


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools that answer as those of an M3 Max with two Xcodes, neither of them chosen."""
    row = next(row for row in specimens("hosts") if row["id"].startswith("m3max"))
    answers = {probe["argv"][0]: probe for probe in row["probes"] if probe["argv"][0] not in ("python3", "sh", "df")}
    scripts = {name: f"printf %s {shlex.quote(probe['stdout'])}\n" for name, probe in answers.items()}
    scripts |= {"system_profiler": _by_type(row["probes"]), "xcodebuild": XCODEBUILD, "xcrun": XCRUN}
    scripts |= {"xcode-select": f"echo {CHOSEN}\n", "mdfind": f"printf '%s\\n' '{OLD}' '{NEW}'\n", "pmset": "true\n"}
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/bash\n{script}")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    return tools


def _by_type(probes: list[dict[str, object]]) -> str:
    texts = {str(probe["argv"]): str(probe["stdout"]) for probe in probes}
    hardware = texts["['system_profiler', 'SPHardwareDataType']"]
    displays = texts["['system_profiler', 'SPDisplaysDataType']"]
    return f"case $1 in SPH*) printf %s {shlex.quote(hardware)} ;; *) printf %s {shlex.quote(displays)} ;; esac\n"


def test_a_live_mac_is_understood_and_its_best_xcode_is_found_without_switching(mac: Path) -> None:
    host = observe(LiveProber())
    recipe = find_recipe("v2.15.0")

    assert (host.macos, host.chip, host.memory_gb, host.gpu_cores) == ("15.3", "Apple M3 Max", 64, 40)
    assert {xcode.version: xcode.metal_standards for xcode in host.xcodes} == {
        "15.2": ("3.1",),
        "26.5": ("3.1", "4.0"),
    }
    chosen = choose_xcode(host, recipe)
    assert chosen is not None and chosen.developer_dir == f"{NEW}/Contents/Developer"
    assert "xcode_clt_only" not in blockers(inspect(host, recipe))
    assert not (mac.parent / "probe.metal").exists()


def test_a_recording_of_a_live_mac_replays_to_the_same_host(mac: Path, tmp_path: Path) -> None:
    file, live, replayed = tmp_path / "mac.json", tmp_path / "live.json", tmp_path / "replayed.json"
    code = main("doctor", ["v2.15.0", "--record", str(file), "--json", str(live)])

    assert main("doctor", ["v2.15.0", "--host", str(file), "--json", str(replayed)]) == code
    first, second = json.loads(live.read_text()), json.loads(replayed.read_text())
    here = ("build_python", "build_python_missing", "build_python_passed_over")  # this machine's, in no recording
    for key in ("host", "findings", "blockers", "warnings"):
        live_only = [each for each in first[key] if (each["id"] if isinstance(each, dict) else each) in here]
        assert second[key] == (first[key] if key == "host" else [each for each in first[key] if each not in live_only])
    assert any(finding["id"].startswith("build_python") for finding in first["findings"])
    assert "Darwin mac.local 24.3.0" in file.read_text()
    assert "mbp16" not in file.read_text()


def _run(script: str, environ: Mapping[str, str]) -> str:
    done = subprocess.run(["sh", "-c", script], env=dict(environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    return done.stdout


def test_the_metal_proof_leaves_nothing_behind_and_says_what_compiled(mac: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    environ = {"PATH": f"{mac}:/usr/bin:/bin", "TMPDIR": str(folder), "DEVELOPER_DIR": f"{NEW}/Contents/Developer"}

    assert _run(METAL_PROOF, environ) == "mps-build compiled metal3.1\nmps-build compiled metal4.0\n"
    assert list(folder.iterdir()) == []


def test_variables_are_listed_by_name_and_never_by_value() -> None:
    environ = {
        "PATH": "/usr/bin:/bin",
        "CPATH": "/secret",
        "DISTUTILS_DEBUG": "secret",
        "TOKEN": "se;cret",
        "OTHER": "secret",
    }
    listed = _run(LEAKS, environ)

    assert "secret" not in listed and "se;cret" not in listed
    assert set(listed.split("\n")) >= {
        "set: CPATH",
        "set: DISTUTILS_DEBUG",
        "semicolon: TOKEN",
        "variables: all listed",
    }
    assert "OTHER" not in listed


def test_probes_run_side_by_side_and_a_slow_one_is_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each of two waits for the other: one after the other they would never end."""
    monkeypatch.setattr(LiveProber, "least_again", 0.5)
    monkeypatch.setattr(LiveProber, "patience", 2.0)

    def probe(name: str, *argv: str, seconds: float = LONGEST_SECONDS) -> Probe:
        return Probe(name=name, argv=argv, why="a test", seconds=seconds)

    def meets(own: str, other: str) -> Probe:
        text = f"cd '{tmp_path}'; : > {own}; until [ -e {other} ]; do sleep 0.05; done; echo {own}"
        return probe(own, "sh", "-c", text)

    prober = LiveProber()
    prober.ask([meets("one", "two"), meets("two", "one"), probe("stuck", "sleep", "3600", seconds=0.3)])

    answers = {answer.argv[0]: answer for answer, _ in prober.answers()}
    assert {answer.stdout for answer, _ in prober.answers()} == {"one\n", "two\n", ""}
    assert answers["sleep"].timed_out
    assert answers["sleep"].exit is None


def _slow(mac: Path, tool: str, *, naps: int, where: str) -> None:
    """Let a tool of the chosen Xcode sleep on its first `naps` calls whose words match."""
    script = (mac / tool).read_text(encoding="utf-8").removeprefix("#!/bin/bash\n")
    count = mac.parent / f"{tool}.naps"
    nap = (
        f'[ -n "${{DEVELOPER_DIR-}}" ] || case "$*" in {where}) n=$(cat {count} 2>/dev/null || echo 0); '
        f"if [ $n -lt {naps} ]; then echo $((n+1)) > {count}; echo half; sleep 20; fi ;; esac\n"
    )
    (mac / tool).write_text(f"#!/bin/bash\n{nap}{script}", encoding="utf-8")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of a test: a second in a probe's place of five to twelve, and two the second time."""
    quick = tuple(replace(probe, seconds=1.0) for probe in table.PROBES)
    monkeypatch.setattr(table, "PROBES", quick)
    of_another = table._under
    monkeypatch.setattr(table, "_under", lambda *words, seconds: of_another(*words, seconds=1.0))
    monkeypatch.setattr(LiveProber, "patience", 2.0)
    monkeypatch.setattr(LiveProber, "least_again", 3.0)


@pytest.fixture
def chosen_xcode(mac: Path) -> Path:
    """The same Mac with its newer Xcode chosen."""
    directory = f"{NEW}/Contents/Developer"
    (mac / "xcode-select").write_text(f"#!/bin/bash\necho '{directory}'\n", encoding="utf-8")
    for tool in ("xcodebuild", "xcrun"):
        text = (mac / tool).read_text(encoding="utf-8").removeprefix("#!/bin/bash\n")
        chosen = f': "${{DEVELOPER_DIR:={directory}}}"\n'
        version = "Apple metal version 32023.830 (metalfe-32023.830.2)"
        metal = (
            f"case \"$*\" in *metal\\ --version) echo '{version}'; exit ;;"
            f" *show-sdk-path) echo '{directory}/Platforms/MacOSX.platform/Developer/SDKs/MacOSX26.5.sdk'; exit ;;"
            f" *show-sdk-build-version) echo 25F70; exit ;;"
            f" '-f metal') echo '{directory}/Toolchains/XcodeDefault.xctoolchain/usr/bin/metal'; exit ;; esac\n"
        )
        (mac / tool).write_text(f"#!/bin/bash\n{chosen}{metal}{text}", encoding="utf-8")
    return mac


@pytest.mark.usefixtures("impatient")
def test_a_slow_first_start_changes_no_fact_of_the_build(chosen_xcode: Path) -> None:
    usual = xcode_toolchain(observe(LiveProber())).facts
    _slow(chosen_xcode, "xcrun", naps=1, where="*metal\\ --version*")
    _slow(chosen_xcode, "xcodebuild", naps=1, where="-version")

    cold = observe(LiveProber())

    assert usual == {"xcode": "26.5 17F42", "sdk": "26.5", "metal": "32023.830"}
    assert xcode_toolchain(cold).facts == usual


@pytest.mark.slow  # waits for each of its answers
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("where", ["*std=metal3.1*", "*metal\\ --version*", "*show-sdk-version*"])
def test_a_tool_that_never_answers_stops_the_build_with_the_cause(
    chosen_xcode: Path, where: str, tmp_path: Path
) -> None:
    recipe = find_recipe("v2.15.0")
    before = blockers(inspect(observe(LiveProber()), recipe))
    _slow(chosen_xcode, "xcrun", naps=99, where=where)

    prober = RecordingProber()
    with pytest.raises(HostError) as stopped:
        check_host(recipe, prober)

    assert set(stopped.value.document["blockers"]) - set(before) == {"probe_timed_out"}
    assert "no answer within 3 seconds" in str(stopped.value)
    document, _ = recorded(prober)
    file = tmp_path / "slow.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert set(blockers(inspect(observe(RecordedProber(file)), recipe))) - set(before) == {"probe_timed_out"}


@pytest.mark.slow  # waits for each of its answers
@pytest.mark.usefixtures("impatient")
def test_another_xcode_that_never_answers_stops_nothing_that_the_chosen_one_can_build(chosen_xcode: Path) -> None:
    text = (chosen_xcode / "xcodebuild").read_text(encoding="utf-8")
    nap = f'[ "${{DEVELOPER_DIR-}}" != "{OLD}/Contents/Developer" ] || sleep 20\n'
    (chosen_xcode / "xcodebuild").write_text(text.replace("\n", f"\n{nap}", 1), encoding="utf-8")

    findings = inspect(observe(LiveProber()), find_recipe("v2.15.0"))

    assert "probe_timed_out" not in blockers(findings)
    assert [f.level for f in findings if f.id == "probe_timed_out"] == ["not_recorded"]


def test_half_an_answer_is_none() -> None:
    answer = capture(Command(argv=("sh", "-c", "echo Xcode 9.9; sleep 20")), timeout_seconds=0.5)

    assert (answer.stdout, answer.stderr) == ("", "no answer within 0.5 seconds")
    assert (answer.exit, answer.timed_out, answer.ok) == (None, True, False)


def test_each_probe_is_queried_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    probe = Probe(name="once", argv=("sh", "-c", f"echo x >> {shlex.quote(str(count))}"), why="a test")
    prober = RecordingProber()
    prober.ask([probe])
    prober.ask([probe])

    assert count.read_text() == "x\n"


def test_a_program_that_is_not_there_is_an_answer_that_replays() -> None:
    prober = LiveProber()
    prober.ask([Probe(name="none", argv=("no-such-program-at-all",), why="a test")])
    ((answer, _),) = prober.answers()

    assert (answer.exit, answer.stderr) == (127, "no-such-program-at-all: command not found\n")


def test_this_machine_can_be_looked_at() -> None:
    host: Host = observe(LiveProber())

    assert host.system == platform.system()
