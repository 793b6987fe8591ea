"""From the audit on, the hash of each file goes from job to job: the shell of release.yml's steps, run on files."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common import strict_yaml
from mps_build.common.process import Captured, Command, capture
from mps_build.publish.index import attested

ROOT = Path(__file__).parents[3]
JOBS: dict[str, Any] = strict_yaml.unchecked(
    (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
)["jobs"]
AUDITED, ATTESTED = "${{ needs.audit.outputs.sha256sums }}", "${{ needs.attest.outputs.sha256sums }}"
BASE = "https://github.com/o/r/releases/download/wheels-2026.11/"
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
    said = run(step_of("audit", id="gather"), tmp_path)
    assert said.ok, said
    return output(tmp_path)


def test_the_audit_gathers_and_hashes_all_files(audited: str, tmp_path: Path) -> None:
    assert sorted(path.name for path in (tmp_path / "wheels").iterdir()) == sorted(WHEELS)
    assert sorted(line.partition("  ./")[2] for line in audited.splitlines()) == sorted(WHEELS)
    (check,) = checks_of("audit", "${{ steps.gather.outputs.sha256sums }}")
    assert run(JOBS["audit"]["steps"][check], tmp_path, SHA256SUMS=audited).ok


def test_two_artifacts_with_one_name_stop_the_release(artifacts: Path, tmp_path: Path) -> None:
    (artifacts / "wheel-v2.7.0-py3.12" / WHEELS[0]).write_text("another", encoding="utf-8")

    said = run(step_of("audit", id="gather"), tmp_path)

    assert not said.ok
    assert f"::error::two artifacts hold {WHEELS[0]}" in said.stdout
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

    said = run(step, tmp_path, SHA256SUMS=audited)

    assert not said.ok
    assert "::error::these are not the files" in said.stdout


@pytest.mark.parametrize(("job", "source"), [("attest", AUDITED), ("publish", ATTESTED)])
def test_hashes_that_got_lost_stop_the_release(job: str, source: str, audited: str, tmp_path: Path) -> None:
    (at,) = checks_of(job, source)
    assert not run(JOBS[job]["steps"][at], tmp_path, SHA256SUMS="").ok


def test_the_bundles_hashes_join_those_of_the_audit(audited: str, tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text("{}", encoding="utf-8")
    bundle = str(tmp_path / "bundle.json")
    said = run(step_of("attest", id="beside"), tmp_path, BUNDLE=bundle, SHA256SUMS=audited)
    assert said.ok, said
    passed_on = output(tmp_path)

    assert passed_on.startswith(audited)
    (at,) = checks_of("publish", ATTESTED)
    publish = JOBS["publish"]["steps"][at]
    assert run(publish, tmp_path, SHA256SUMS=passed_on).ok
    (tmp_path / "wheels" / f"{WHEELS[0]}.sigstore.json").write_text("[]", encoding="utf-8")
    assert not run(publish, tmp_path, SHA256SUMS=passed_on).ok


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


TAGS = ("wheels-2026.11", "v1", "a_b-c.d", "2026.11.29", "x" * 100)
NO_TAGS = (
    *("", "-x", "--draft", ".x", "x.", "a..b", "a b", "a/b", "a:b", "a~1", "a^", "x.lock", "é", "x" * 101, "*", "a?"),
    *("a\nb", "a\n", "$(touch x)", "`x`", "${HOME}", "a;b", "a@{0}", "a\\b", "a'b", 'a"b'),
)


def checked_inputs(temp: Path, tag: str, recipes: str = "v2.14.1 v2.15.0") -> Captured:
    return run(step_of("plan", id="inputs"), temp, TAG=tag, RECIPES=recipes)


def test_a_tag_is_a_name_before_anything_runs(tmp_path: Path) -> None:
    assert JOBS["plan"]["steps"][0]["id"] == "inputs"
    said = {tag: checked_inputs(tmp_path, tag) for tag in (*TAGS, *NO_TAGS)}

    assert [tag for tag in TAGS if not said[tag].ok] == []
    assert [tag for tag in NO_TAGS if said[tag].ok] == []
    assert all("::error::the tag" in said[tag].stdout for tag in NO_TAGS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "recipes", ["", "--json x", "v2.6.0 --json", "v2.6.0  v2.7.0", "v2.6.0\n--json x", "a;b", "../x"]
)
def test_recipes_are_names_too(recipes: str, tmp_path: Path) -> None:
    assert not checked_inputs(tmp_path, "v1", recipes).ok
    assert checked_inputs(tmp_path, "v1", "v2.6.0").ok


@pytest.fixture
def released(tmp_path: Path) -> dict[str, str]:
    """The wheels and the index that `check` makes of them; return what `publish` is reported."""
    from http_servers import TORCH, wheel

    made = [
        wheel(tmp_path / "wheels", "torch", TORCH, requires=("filelock",)),
        wheel(tmp_path / "wheels", "torchvision", "0.21.0+mps.g7af6987", requires=("torch==2.6.0",)),
    ]
    said = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "TAG": "wheels-2026.11"}
    site = tmp_path / "site"
    assert main("publish_index", [str(tmp_path / "wheels"), "--output", str(site), "--base-url", BASE]) == 0
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  ./{each.name}" for each in made]
    return said | {"SHA256SUMS": "\n".join(sums)}


def compared(temp: Path, released: dict[str, str]) -> Captured:
    script = temp / "scripts"  # the step runs in a checkout
    if not script.exists():
        script.symlink_to(ROOT / "scripts")
    return run(step_of("index", id="compare"), temp, **released)


def judged(temp: Path, released: dict[str, str]) -> int:
    """Return what the script says that the step runs."""
    return attested.main([str(temp / "site"), str(temp / "wheels"), BASE], released["SHA256SUMS"])


def _swap(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


# A file of the index, and what somebody made of it.
BENT: dict[str, tuple[str, Any]] = {
    "another hash": ("simple/torch/index.html", lambda text: _swap(text, "#sha256=", "#sha256=0")),
    "a wheel of the page's own": (
        "simple/torch/index.html",
        lambda text: _swap(text, "<h1>", "<a href=torch-9-py3-none-any.whl>x</a><h1>"),
    ),
    "an address without a scheme": (
        "simple/torch/index.html",
        lambda text: _swap(text, "<h1>", "<A HREF='//evil.example/x/'>x</A><h1>"),
    ),
    "a script": ("index.html", lambda text: _swap(text, "<body>", "<body><script src=//evil.example/x></script>")),
    "no JSON": ("simple/torch/index.json", lambda text: "["),
    "a hash of zeros": ("simple/torch/index.html", lambda text: re.sub(r"#sha256=\w+", f"#sha256={'0' * 64}", text)),
    "no hash": ("simple/torch/index.html", lambda text: re.sub(r"#sha256=\w+", "", text)),
    "another host": ("simple/torch/index.html", lambda text: _swap(text, "https://github.com/o/", "https://evil.example/o/")),
    "another release": ("simple/torch/index.html", lambda text: _swap(text, "wheels-2026.11", "wheels-2020.01")),
    "another wheel more": (
        "simple/torch/index.html",
        lambda text: _swap(text, "<h1>", "<a href='https://evil.example/torch-9-py3-none-any.whl'>x</a><h1>"),
    ),
    "a base": ("simple/torch/index.html", lambda text: _swap(text, "<body>", "<body><base href='https://evil.example/'>")),
    "another hash of the metadata": (
        "simple/torch/index.html",
        lambda text: re.sub(r'(data-core-metadata="sha256=)\w+', rf"\g<1>{'0' * 64}", text),
    ),
    "the hash of another wheel": (
        "simple/torchvision/index.json",
        lambda text: text.replace(re.findall(r'"hashes": {\s+"sha256": "(\w+)', text)[0], "f" * 64),
    ),
    "another address in JSON": ("simple/torch/index.json", lambda text: _swap(text, "com/o/r", "com/o/x")),
    "requirements": (
        "sets/torch-2.6.0-mps.g1eba9b3-cp311/requirements.txt",
        lambda text: re.sub(r"sha256:\w+", f"sha256:{'a' * 64}", text),
    ),
    "a set's page": (
        "sets/torch-2.6.0-mps.g1eba9b3-cp311/simple/torch/index.html",
        lambda text: _swap(text, "https://github.com/", "https://evil.example/"),
    ),
    "the front page": ("index.html", lambda text: _swap(text, 'href="https://github.com/', 'href="https://evil.example/')),
}  # fmt: skip


def test_the_index_of_what_was_attested_is_published(released: dict[str, str], tmp_path: Path) -> None:
    said = compared(tmp_path, released)
    assert said.ok, said
    assert run(step_of("index", id="hashes"), tmp_path).ok
    hashes = output(tmp_path)
    publish = step_of("publish", id="index")
    assert run(publish, tmp_path, SHA256SUMS=hashes).ok
    (tmp_path / "site" / "more.html").write_text("more", encoding="utf-8")
    assert not run(publish, tmp_path, SHA256SUMS=hashes).ok


def test_only_the_index_that_was_compared_is_published() -> None:
    def places(job: str, *words: str) -> list[int]:
        steps = [f"{each.get('id')} {each.get('uses', '')} {each.get('run', '')}" for each in JOBS[job]["steps"]]
        return [next(at for at, each in enumerate(steps) if word in each) for word in words]

    for found in (
        places("index", "diff", "compare ", "hashes ", "upload-pages-artifact@"),
        places("publish", "index ", "gh release create"),
    ):
        assert found == sorted(found)
    assert "index" in JOBS["publish"]["needs"] and JOBS["pages"]["needs"] == "publish"
    assert [job for job in JOBS if "upload-pages-artifact" in str(JOBS[job])] == ["index"]
    assert "nox" not in str(JOBS["index"]["steps"])


@pytest.mark.parametrize("name", BENT)
def test_an_index_that_names_other_files_is_not_published(
    name: str, released: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, bend = BENT[name]
    path = tmp_path / "site" / file
    path.write_text(bend(path.read_text(encoding="utf-8")), encoding="utf-8")

    assert judged(tmp_path, released) == 1
    assert "::error::this is not the index of what was attested" in capsys.readouterr().out


def _of_another(site: Path) -> None:
    one, other = sorted((site / "wheels").glob("*.metadata"))
    one.write_bytes(other.read_bytes())


def _beside(site: Path) -> None:
    (site / "wheels" / "evil.whl.metadata").write_text("x", encoding="utf-8")


def _not_listed(site: Path) -> None:
    for path in [*site.rglob("torchvision/index.*"), site / "index.html"]:
        path.unlink()


@pytest.mark.parametrize("spoil", [_of_another, _beside, _not_listed])
def test_what_lies_in_the_index_is_of_the_wheels(spoil: Any, released: dict[str, str], tmp_path: Path) -> None:
    spoil(tmp_path / "site")
    assert judged(tmp_path, released) == 1


def test_the_step_fails_by_what_the_comparison_says(released: dict[str, str], tmp_path: Path) -> None:
    _not_listed(tmp_path / "site")

    said = compared(tmp_path, released)

    assert not said.ok
    assert "::error::this is not the index of what was attested: torchvision-" in said.stdout


def test_without_hashes_no_index_is_published(released: dict[str, str], tmp_path: Path) -> None:
    assert not compared(tmp_path, released | {"SHA256SUMS": ""}).ok
