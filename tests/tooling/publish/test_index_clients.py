"""The index, served over HTTP on this machine and read by real clients."""

from __future__ import annotations

import functools
import html
import http.server
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_servers import TAG, TORCH, Server, client_environ, needs_uv, pip, publish, uv, wheel
from mps_build.cli import main
from mps_build.common import strict_yaml
from mps_build.common.process import Command, capture
from mps_build.common.wheels.wheel_file import read_wheel
from packaging.requirements import Requirement


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
    assert [path.name for path in (tmp_path / "got").iterdir()] == [f"torch-{TORCH}-{TAG}.whl"]


@pytest.mark.slow
def test_pip_resolves_from_the_metadata_alone(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    wheel(wheelhouse, "filelock", "3.0.0", tag="py3-none-any")
    publish(wheelhouse)
    argv = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-cache-dir")
    options = ("--dry-run", "--ignore-installed", "--target", str(tmp_path / "t"), "--platform", "macosx_14_0_arm64")
    wanted = ("--python-version", "3.11", "--only-binary", ":all:", "--index-url", f"{server.address}/site/simple/")

    found = capture(
        Command(argv=(*argv, *options, *wanted, "torch"), environ=client_environ(tmp_path)), timeout_seconds=120
    )

    assert found.ok, found.stderr
    assert f"filelock-3.0.0 torch-{TORCH}" in found.stdout
    assert any(request.endswith(".whl.metadata") for request in server.requests)
    assert not any(request.endswith(".whl") for request in server.requests)


@pytest.mark.slow
def test_pip_refuses_a_tampered_wheel(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    publish(wheelhouse)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{TAG}.whl"
    spoiled = served.read_bytes()
    served.unlink()  # it is a link to the wheelhouse's own file
    served.write_bytes(spoiled.replace(b"__version__", b"__VERSION__"))

    found = pip(tmp_path, "--no-deps", "--index-url", f"{server.address}/site/simple/", "torch")

    assert not found.ok
    assert "DO NOT MATCH THE HASHES" in found.stderr


@pytest.mark.slow
def test_pip_refuses_metadata_that_was_changed(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    publish(wheelhouse)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{TAG}.whl.metadata"
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
    assert [path.name for path in (tmp_path / "a" / "got").iterdir()] == [f"torch-2.13.0-{TAG}.whl"]
    for folder in ("b", "c"):
        assert [path.name for path in (tmp_path / folder / "got").iterdir()] == [f"torch-{TORCH}-{TAG}.whl"]


@pytest.mark.slow
@needs_uv
def test_uv_takes_the_matched_set_and_checks_its_hashes(wheelhouse: Path, server: Server, tmp_path: Path) -> None:
    (set_,) = publish(wheelhouse)["sets"]
    place = f"{server.address}/site/sets/{set_['id']}"
    wanted = ("--no-deps", "--index-url", f"{place}/simple/", "-r", f"{place}/requirements.txt")

    taken = uv(tmp_path / "sound", "--require-hashes", *wanted)
    served = tmp_path / "site" / "wheels" / f"torch-{TORCH}-{TAG}.whl"
    spoiled = served.read_bytes().replace(b"__version__", b"__VERSION__")
    served.unlink()
    served.write_bytes(spoiled)
    refused = uv(tmp_path / "spoiled", "--require-hashes", *wanted)

    assert taken.ok, taken.stderr
    assert (tmp_path / "sound" / "got" / "torch" / "__init__.py").is_file()
    assert not refused.ok
    assert "ash mismatch" in refused.stderr or "Bad CRC" in refused.stderr


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
    head = '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.10"\n'
    address = f"{server.address}/site/sets/torch-{TORCH.replace('+', '-')}-cp311/"
    only = "[tool.uv]\nenvironments = [\"sys_platform == 'darwin' and platform_machine == 'arm64'\"]\n"
    body = text.replace("{SET}/", address).replace("[project]\n", head, 1)
    (project / "pyproject.toml").write_text(body + "\n" + only, encoding="utf-8")
    other = wheel(tmp_path / "other" / "filelock", "filelock", "3.0", tag="py3-none-any")
    other.with_name("index.html").write_text(f'<a href="{other.name}">{other.name}</a>', encoding="utf-8")
    # Any Python that is there locks; no index but ours and this folder is queried.
    options = ("--python", sys.executable, "--default-index", (tmp_path / "other").as_uri(), "--no-cache", "--quiet")

    locked = capture(Command(argv=("uv", "lock", *options), cwd=project), timeout_seconds=120)

    assert locked.ok, locked.stderr
    assert f'version = "{TORCH}"' in (project / "uv.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("more", [(), ("--base-url", "https://example.org/assets")])
def test_the_page_has_the_lines_for_conda(wheelhouse: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    page = _site_page(wheelhouse, tmp_path / "site", *more)

    document = strict_yaml.unchecked(_lines(page, "conda: environment.yml"))

    assert document["dependencies"][:2] == ["python=3.11", "pip"]
    rows = [
        Requirement(row.replace("{SITE}", "https://here.example.org")) for row in document["dependencies"][2]["pip"]
    ]
    base = "https://example.org/assets/" if more else "https://here.example.org/wheels/"
    torch = next(row for row in rows if row.name == "torch")
    assert torch.url is not None and torch.url.startswith(f"{base}torch-2.6.0%2Bmps.g1eba9b3-")
    assert torch.url.endswith(f"#sha256={read_wheel(next(wheelhouse.glob('torch-*.whl'))).sha256}")
    assert "{SET}/requirements.txt" in _lines(page, "pip")
