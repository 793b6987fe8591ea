"""The index, served over HTTP on this machine and read by real clients."""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from mps_build.cli import main
from mps_build.common.process import Captured, Command, capture
from mps_build.common.wheels.sets import matched_sets
from mps_build.common.wheels.wheel_file import read_wheel, read_wheels
from mps_build.publish.index.retention import retain
from packaging.requirements import Requirement

TORCH = "2.6.0+mps.g1eba9b3"
_TAG = "cp311-cp311-macosx_14_0_arm64"


def wheel(folder: Path, name: str, version: str, *, requires: tuple[str, ...] = (), tag: str = _TAG) -> Path:
    """Write a wheel of one module, as small as a client takes."""
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Requires-Python: >=3.9"]
    headers += [f"Requires-Dist: {each}" for each in requires]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{info}/METADATA", "\n".join(headers) + "\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{info}/sboms/mps-build.cdx.json", '{"bomFormat": "CycloneDX"}')
        archive.writestr(f"{info}/RECORD", "")
    return path


def receipt(path: Path, sha256: str) -> None:
    path.with_name(f"{path.name}.receipt.json").write_text(json.dumps({"wheel": {"sha256": sha256}}), encoding="utf-8")


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    folder = tmp_path / "wheelhouse"
    torch = wheel(folder, "torch", TORCH, requires=("filelock", 'numpy; extra == "opt"'))
    receipt(torch, read_wheel(torch).sha256)
    torch.with_name(f"{torch.name}.sigstore.json").write_text("{}", encoding="utf-8")
    wheel(folder, "torchvision", "0.21.0+mps.g7af6987", requires=("torch==2.6.0", "filelock"))
    wheel(folder, "torchaudio", "2.6.0+mps.gd883142", requires=("torch==2.6.0",))
    return folder


@dataclass
class Server:
    address: str
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    requests: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            wanted = Path(self.translate_path(self.path)) / "index.json"
            if self.headers.get("X-Json") or "/as-json/" not in self.path or not wanted.is_file():
                super().do_GET()
                return
            body = wanted.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    handler = functools.partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield Server(address=f"http://127.0.0.1:{served.server_port}", requests=requests)
        served.shutdown()
        thread.join()


def publish(wheelhouse: Path, *arguments: str) -> dict[str, Any]:
    site, told = wheelhouse.parent / "site", wheelhouse.parent / "told.json"
    assert main("publish_index", [str(wheelhouse), "--output", str(site), "--json", str(told), *arguments]) == 0
    document: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return document


def _environ(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def pip(folder: Path, *arguments: str) -> Captured:
    argv = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "download", "--no-cache-dir")
    platform = ("--platform", "macosx_14_0_arm64", "--python-version", "3.11", "--only-binary", ":all:")
    environ = {name: value for name, value in _environ(folder).items() if not name.endswith("_proxy")}
    command = Command(argv=(*argv, *platform, "-d", str(folder / "got"), *arguments), environ=environ)
    return capture(command, timeout_seconds=120)


def uv(folder: Path, *arguments: str) -> Captured:
    argv = (
        "uv",
        "pip",
        "install",
        "--python",
        sys.executable,
        "--python-platform",
        "aarch64-apple-darwin",
        "--no-cache",
    )
    target = ("--python-version", "3.11", "--target", str(folder / "got"))
    environ = _environ(folder) | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    return capture(Command(argv=(*argv, *target, *arguments), environ=environ), timeout_seconds=120)


needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")


@pytest.mark.slow
def test_pip_takes_the_matched_set_and_nothing_else(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    (set_,) = publish(wheelhouse)["sets"]
    place = f"{server.address}/site/sets/{set_['id']}"

    found = pip(tmp_path, "--no-deps", "--index-url", f"{place}/simple/", "-r", f"{place}/requirements.txt")

    assert found.ok, found.stderr
    assert sorted(path.name for path in (tmp_path / "got").iterdir()) == sorted(set_["wheels"])
    assert len(set_["wheels"]) == 3
    assert any("%2B" in request for request in server.requests)


@pytest.mark.slow
def test_pip_reads_the_json_pages_where_a_server_offers_them(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    publish(wheelhouse)
    (tmp_path / "site").rename(tmp_path / "as-json")

    found = pip(tmp_path, "--no-deps", "--index-url", f"{server.address}/as-json/simple/", "torch")

    assert found.ok, found.stderr
    assert [path.name for path in (tmp_path / "got").iterdir()] == [f"torch-{TORCH}-{_TAG}.whl"]


@pytest.mark.slow
def test_pip_resolves_from_the_metadata_alone(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    wheel(wheelhouse, "filelock", "3.0.0", tag="py3-none-any")
    publish(wheelhouse)
    argv = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-cache-dir")
    options = ("--dry-run", "--ignore-installed", "--target", str(tmp_path / "t"), "--platform", "macosx_14_0_arm64")
    wanted = ("--python-version", "3.11", "--only-binary", ":all:", "--index-url", f"{server.address}/site/simple/")

    found = capture(Command(argv=(*argv, *options, *wanted, "torch"), environ=_environ(tmp_path)), timeout_seconds=120)

    assert found.ok, found.stderr
    assert f"filelock-3.0.0 torch-{TORCH}" in found.stdout
    assert any(request.endswith(".whl.metadata") for request in server.requests)
    assert not any(request.endswith(".whl") for request in server.requests)


@pytest.mark.slow
def test_pip_refuses_a_tampered_wheel(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    publish(wheelhouse)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{_TAG}.whl"
    spoiled = served.read_bytes()
    served.unlink()  # it is a link to the wheelhouse's own file
    served.write_bytes(spoiled.replace(b"__version__", b"__VERSION__"))

    found = pip(tmp_path, "--no-deps", "--index-url", f"{server.address}/site/simple/", "torch")

    assert not found.ok
    assert "DO NOT MATCH THE HASHES" in found.stderr


@pytest.mark.slow
def test_pip_refuses_metadata_that_was_changed(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    publish(wheelhouse)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{_TAG}.whl.metadata"
    served.write_bytes(served.read_bytes() + b"Requires-Dist: evil\n")

    found = pip(tmp_path, "--index-url", f"{server.address}/site/simple/", "torch")

    assert not found.ok


@pytest.mark.slow
def test_another_torch_comes_in_by_an_extra_index_but_never_by_the_set(
    wheelhouse: Path, server: Server, tmp_path: Path
) -> None:
    (set_,) = publish(wheelhouse)["sets"]
    wheel(tmp_path / "others", "torch", "2.13.0")
    assert main("publish_index", [str(tmp_path / "others"), "--output", str(tmp_path / "other")]) == 0
    place, other = f"{server.address}/site/sets/{set_['id']}", f"{server.address}/other/simple/"

    mixed = pip(tmp_path / "a", "--no-deps", "--index-url", f"{place}/simple/", "--extra-index-url", other, "torch")
    alone = pip(tmp_path / "b", "--no-deps", "--index-url", f"{place}/simple/", "torch")
    constraints = ("-c", f"{place}/constraints.txt")
    held = pip(
        tmp_path / "c",
        "--no-deps",
        "--index-url",
        f"{place}/simple/",
        "--extra-index-url",
        other,
        *constraints,
        "torch",
    )

    assert mixed.ok and alone.ok and held.ok, (mixed.stderr, alone.stderr, held.stderr)
    assert [path.name for path in (tmp_path / "a" / "got").iterdir()] == [f"torch-2.13.0-{_TAG}.whl"]
    for folder in ("b", "c"):
        assert [path.name for path in (tmp_path / folder / "got").iterdir()] == [f"torch-{TORCH}-{_TAG}.whl"]


@pytest.mark.slow
@needs_uv
def test_uv_takes_the_matched_set_and_checks_its_hashes(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    (set_,) = publish(wheelhouse)["sets"]
    place = f"{server.address}/site/sets/{set_['id']}"
    wanted = ("--no-deps", "--index-url", f"{place}/simple/", "-r", f"{place}/requirements.txt")

    taken = uv(tmp_path / "sound", "--require-hashes", *wanted)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{_TAG}.whl"
    spoiled = served.read_bytes().replace(b"__version__", b"__VERSION__")
    served.unlink()
    served.write_bytes(spoiled)
    refused = uv(tmp_path / "spoiled", "--require-hashes", *wanted)

    assert taken.ok, taken.stderr
    assert (tmp_path / "sound" / "got" / "torch" / "__init__.py").is_file()
    assert not refused.ok
    assert "ash mismatch" in refused.stderr or "Bad CRC" in refused.stderr


def test_files_beside_the_wheels_are_published(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)

    names = {path.name.split(_TAG)[1] for path in (tmp_path / "site" / "wheels").glob("torch-*")}

    assert names == {
        ".whl",
        ".whl.metadata",
        ".whl.receipt.json",
        ".whl.sigstore.json",
        ".whl.cdx.json",
    }
    set_folder = next((tmp_path / "site" / "sets").iterdir())
    assert (set_folder / "constraints.txt").read_text(encoding="utf-8").splitlines()[0] == f"torch=={TORCH}"
    assert (set_folder / "dependencies.txt").read_text(encoding="utf-8") == "filelock\n"


def test_links_lead_to_a_release_where_the_wheels_lie_there(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse, "--base-url", "https://example.org/releases/download/v1")

    page = (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")

    assert (
        f'href="https://example.org/releases/download/v1/torch-{TORCH.replace("+", "%2B")}-{_TAG}.whl#sha256=' in page
    )
    assert not list((tmp_path / "site" / "wheels").glob("*.whl"))


def test_two_runs_write_the_same_site(wheelhouse: Path, tmp_path: Path) -> None:
    def everything() -> dict[str, bytes]:
        site = tmp_path / "site"
        return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    publish(wheelhouse)
    first = everything()
    publish(wheelhouse)

    assert everything() == first


def test_a_companion_of_two_torches_goes_into_no_set(wheelhouse: Path) -> None:
    wheel(wheelhouse, "torch", "2.6.0+mps.gffffff0")

    sets, notes = matched_sets(read_wheels(wheelhouse))

    assert [len(each.wheels) for each in sets] == [1, 1]
    assert len(notes) == 2
    assert "fits 2 torches" in notes[0]


def test_a_companion_of_another_python_or_torch_goes_into_no_set(wheelhouse: Path) -> None:
    wheel(wheelhouse, "torchvision", "0.22.0", requires=("torch==2.7.1",))
    wheel(wheelhouse, "torchvision", "0.21.0", requires=("torch==2.6.0",), tag="cp312-cp312-macosx_14_0_arm64")

    (set_,), notes = matched_sets(read_wheels(wheelhouse))

    assert [str(each.version) for each in set_.companions] == ["0.21.0+mps.g7af6987", "2.6.0+mps.gd883142"]
    assert all("pins no torch that is here" in note for note in notes)
    assert len(notes) == 2


def test_the_bill_of_other_wheels_is_all_faults_at_once(
    wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receipt(next(wheelhouse.glob("torchaudio-*.whl")), "0" * 64)
    (wheelhouse / f"torch-9.9-{_TAG}.whl").write_bytes(b"PK no zip")
    wheel(wheelhouse, "torch", "1.0").rename(wheelhouse / f"torch-1.1-{_TAG}.whl")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site")]) == 2

    said = capsys.readouterr().err
    assert "3 of the wheels are not sound" in said
    for part in ("not the wheel of its receipt", "is not a zip file", "its METADATA says torch 1.0"):
        assert part in said
    assert not (tmp_path / "site").exists()


def test_a_folder_of_something_else_is_not_replaced(wheelhouse: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine", encoding="utf-8")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "precious")]) == 2
    assert (tmp_path / "precious" / "file").read_text(encoding="utf-8") == "mine"


def _nightlies(folder: Path) -> Path:
    for day in ("20260901", "20260902", "20260903", "20260907", "20261119"):
        wheel(folder, "torch", f"2.16.0.dev{day}+mps.ga{day}")
    wheel(folder, "torch", "2.6.0+mps.g1eba9b3")
    return folder


def test_old_nightlies_thin_out_to_one_a_week_and_releases_stay(tmp_path: Path) -> None:
    wheels = read_wheels(_nightlies(tmp_path / "wheelhouse"))
    today = date(2026, 11, 20)

    found = retain(wheels, today=today, yanked={}, keep=("2.16.0.dev20260903+mps.ga20260903",))

    assert found.yanked == {f"torch-2.16.0.dev20260902+mps.ga20260902-{_TAG}.whl": today}
    assert found.deleted == ()


def test_a_nightly_is_yanked_before_it_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheelhouse = _nightlies(tmp_path / "wheelhouse")
    (wheelhouse / f"torch-2.16.0.dev20260903+mps.ga20260903-{_TAG}.whl").unlink()
    old = wheelhouse / f"torch-2.16.0.dev20260902+mps.ga20260902-{_TAG}.whl"
    receipt(old, read_wheel(old).sha256)

    assert publish(wheelhouse, "--prune", "--dry-run", "--today", "2026-11-20")["yanked"]
    assert not (tmp_path / "site").exists()

    publish(wheelhouse, "--prune", "--today", "2026-11-20")
    page = (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")
    assert 'data-yanked="an old nightly' in page
    assert old.is_file()

    assert publish(wheelhouse, "--prune", "--today", "2026-12-19")["deleted"] == []
    assert publish(wheelhouse, "--prune", "--today", "2026-12-20", "--dry-run")["deleted"] == [old.name]
    assert old.is_file()
    assert publish(wheelhouse, "--prune", "--today", "2026-12-20")["deleted"] == [old.name]
    assert not list(wheelhouse.glob("*dev20260902*"))
    assert old.name not in (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")


def test_a_lost_state_is_no_licence_to_delete(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    (tmp_path / "site" / "index-state.json").write_text("{", encoding="utf-8")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site"), "--prune"]) == 2


@pytest.mark.parametrize(
    "argv", [["--base-url", "ftp://x"], ["--today", "yesterday"], ["--keep", "torch-nothing"], ["--days", "x"]]
)
def test_arguments_that_cannot_be_are_refused(wheelhouse: Path, argv: list[str]) -> None:
    assert main("publish_index", [str(wheelhouse), *argv]) == 2


def _lines(page: str, client: str) -> str:
    found = re.search(
        rf'<h3>{re.escape(client)}</h3>\s*<pre class="command" data-set="[^"]*">(.*?)</pre>', page, re.DOTALL
    )
    assert found, client
    return html.unescape(found[1])


def _site_page(wheelhouse: Path, folder: Path, *more: str) -> str:
    assert main("publish_index", [str(wheelhouse), "--output", str(folder), *more]) == 0
    return (folder / "index.html").read_text(encoding="utf-8")


def test_the_page_has_the_lines_for_uv_and_uv_takes_the_set_by_them(
    wheelhouse: Path, server: Server, tmp_path: Path
) -> None:
    tomllib = pytest.importorskip("tomllib")
    text = _lines(_site_page(wheelhouse, tmp_path / "site"), "uv: pyproject.toml")
    address = f"{server.address}/site/sets/torch-{TORCH.replace('+', '-')}-cp311/"

    document = tomllib.loads(text.replace("{SET}/", address))

    mac = "sys_platform == 'darwin' and platform_machine == 'arm64'"
    assert document["tool"]["uv"]["index"] == [{"name": "mps-build", "url": f"{address}simple/", "explicit": True}]
    assert document["tool"]["uv"]["sources"]["torch"] == [{"index": "mps-build", "marker": mac}]
    assert f"torch=={TORCH}; {mac}" in document["project"]["dependencies"]
    assert len(document["project"]["dependencies"]) == len(document["tool"]["uv"]["sources"]) == 3


@needs_uv
def test_uv_locks_a_project_by_the_lines_of_the_page(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    text = _lines(_site_page(wheelhouse, tmp_path / "site"), "uv: pyproject.toml")
    project = tmp_path / "project"
    project.mkdir()
    head = '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.11,<3.12"\n'
    address = f"{server.address}/site/sets/torch-{TORCH.replace('+', '-')}-cp311/"
    only = "[tool.uv]\nenvironments = [\"sys_platform == 'darwin' and platform_machine == 'arm64'\"]\n"
    body = text.replace("{SET}/", address).replace("[project]\n", head, 1)
    (project / "pyproject.toml").write_text(body + "\n" + only, encoding="utf-8")
    wheel(tmp_path / "other", "filelock", "3.0", tag="py3-none-any")
    find = ("--find-links", str(tmp_path / "other"), "--no-cache", "--quiet")

    locked = capture(Command(argv=("uv", "lock", *find), cwd=project), timeout_seconds=120)

    assert locked.ok, locked.stderr
    assert f'version = "{TORCH}"' in (project / "uv.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("more", [(), ("--base-url", "https://example.org/assets")])
def test_the_page_has_the_lines_for_conda(wheelhouse: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    page = _site_page(wheelhouse, tmp_path / "site", *more)

    document = yaml.safe_load(_lines(page, "conda: environment.yml"))

    assert document["dependencies"][:2] == ["python=3.11", "pip"]
    rows = [
        Requirement(row.replace("{SITE}", "https://here.example.org")) for row in document["dependencies"][2]["pip"]
    ]
    base = "https://example.org/assets/" if more else "https://here.example.org/wheels/"
    torch = next(row for row in rows if row.name == "torch")
    assert torch.url is not None and torch.url.startswith(f"{base}torch-2.6.0%2Bmps.g1eba9b3-")
    assert torch.url.endswith(f"#sha256={read_wheel(next(wheelhouse.glob('torch-*.whl'))).sha256}")
    assert "{SET}/requirements.txt" in _lines(page, "pip")
