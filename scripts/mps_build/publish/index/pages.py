"""The pages of an index, as text: PEP 503 (HTML), PEP 691 (JSON), PEP 658 (metadata beside the wheel)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

from mps_build.common.wheels.sets import MatchedSet
from mps_build.common.wheels.wheel_file import BILL, WheelFile

from .install_lines import conda_lines, pip_lines, uv_lines

SET_ADDRESS, SITE_ADDRESS = "{SET}/", "{SITE}/"
_HEAD = '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'


def link(wheel: WheelFile, base: str) -> str:
    """Return the address of a wheel's file; `+` is written %2B, which every server and client takes alike."""
    return base + quote(wheel.file, safe="")


def project_list(names: Sequence[str]) -> str:
    """Return the page that names the projects."""
    rows = "\n".join(f'<a href="{name}/">{name}</a><br>' for name in names)
    head = f'{_HEAD}<meta name="pypi:repository-version" content="1.1"><title>Simple index</title></head>'
    return f"{head}\n<body>\n{rows}\n</body>\n</html>\n"


def project_page(name: str, wheels: Sequence[WheelFile], *, base: str, yanked: Mapping[str, str]) -> str:
    """Return one project's files as HTML, with hashes, the hash of the metadata, and what is yanked."""
    rows = []
    for wheel in wheels:
        digest = hashlib.sha256(wheel.metadata).hexdigest()
        attributes = [f'href="{escape(link(wheel, base))}#sha256={wheel.sha256}"']
        if wheel.requires_python:
            attributes.append(f'data-requires-python="{escape(wheel.requires_python)}"')
        # Both names: clients before PEP 714 know only the first.
        attributes += [f'{key}="sha256={digest}"' for key in ("data-dist-info-metadata", "data-core-metadata")]
        if wheel.file in yanked:
            attributes.append(f'data-yanked="{escape(yanked[wheel.file])}"')
        rows.append(f"<a {' '.join(attributes)}>{escape(wheel.file)}</a><br>")
    body = "\n".join(rows)
    head = f'{_HEAD}<meta name="pypi:repository-version" content="1.1"><title>Links for {name}</title></head>'
    return f"{head}\n<body>\n<h1>Links for {name}</h1>\n{body}\n</body>\n</html>\n"


def project_json(name: str, wheels: Sequence[WheelFile], *, base: str, yanked: Mapping[str, str]) -> str:
    """Return one project's files as PEP 691 has it."""
    files = []
    for wheel in wheels:
        metadata = {"sha256": hashlib.sha256(wheel.metadata).hexdigest()}
        entry = {
            "filename": wheel.file,
            "url": link(wheel, base),
            "hashes": {"sha256": wheel.sha256},
            "size": wheel.size,
            "core-metadata": metadata,
            "dist-info-metadata": metadata,
            "yanked": yanked.get(wheel.file, False),
        }
        files.append(entry | ({"requires-python": wheel.requires_python} if wheel.requires_python else {}))
    versions = list(dict.fromkeys(str(wheel.version) for wheel in wheels))
    document = {"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files}
    return json.dumps(document, indent=1) + "\n"


def list_json(names: Sequence[str]) -> str:
    """Return the projects as PEP 691 has it."""
    return json.dumps({"meta": {"api-version": "1.1"}, "projects": [{"name": name} for name in names]}, indent=1) + "\n"


def front_page(sets: Sequence[MatchedSet], wheels: Sequence[WheelFile], *, base: str, yanked: Mapping[str, str]) -> str:
    """Return the page for people: each set with its command, each wheel with what lies beside it."""
    parts = [_HEAD, _STYLE, "<title>PyTorch wheels with MPS</title></head><body>"]
    parts.append("<h1>PyTorch wheels with MPS, self-built</h1>")
    parts.append("<p>Built by mps-build for macOS on Apple silicon; these are not the official wheels. ")
    parts.append("Each set is an index of its own: no other torch can come in.</p>")
    for each in sets:
        place = f"sets/{quote(each.id)}"
        members = ", ".join(f"{escape(wheel.name)} {escape(str(wheel.version))}" for wheel in each.wheels)
        parts.append(f'<section class="set"><h2>{escape(each.id)}</h2><p>{members}</p>')
        for client, lines in _clients(each, base):
            parts.append(f"<h3>{client}</h3>")
            parts.append(f'<pre class="command" data-set="{escape(each.id)}">{escape(lines)}</pre>')
        parts.append("<p>")
        files = ("requirements.txt", "constraints.txt", "dependencies.txt")
        parts.append(" · ".join(f'<a href="{place}/{file}">{file}</a>' for file in files))
        parts.append("</p></section>")
    parts.append("<h2>All wheels</h2><table><tr><th>wheel</th><th>size</th><th>sha256</th><th>beside it</th></tr>")
    for wheel in wheels:
        note = f' <span class="yanked">yanked: {escape(yanked[wheel.file])}</span>' if wheel.file in yanked else ""
        beside = " · ".join(
            f'<a href="{escape(base + quote(name, safe=""))}">{escape(name.removeprefix(wheel.file))}</a>'
            for name in (*wheel.beside, *([wheel.file + BILL] if wheel.bill is not None else []))
        )
        parts.append(
            f'<tr><td><a href="{escape(link(wheel, base))}">{escape(wheel.file)}</a>{note}</td>'
            f"<td>{wheel.size / 1e6:.1f} MB</td><td><code>{wheel.sha256[:16]}…</code></td><td>{beside}</td></tr>"
        )
    return "\n".join([*parts, f"</table>{_SCRIPT}</body></html>\n"])


def _clients(matched: MatchedSet, base: str) -> tuple[tuple[str, str], ...]:
    """Return what is written for each client; SET and SITE stand for addresses that the reader's browser fills in."""
    place = base if "://" in base else f"{SITE_ADDRESS}{base}"
    return (
        ("pip", pip_lines(SET_ADDRESS)),
        ("uv: pyproject.toml", uv_lines(matched, SET_ADDRESS)),
        ("conda: environment.yml", conda_lines(matched, lambda wheel: link(wheel, place))),
    )


_STYLE = """<meta name="viewport" content="width=device-width"><style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
.set { border: 1px solid #8884; border-radius: 8px; padding: 0 1rem; margin: 1rem 0 }
h2 { font-size: 1.1rem } h3 { font-size: .9rem; margin: .8rem 0 0 }
pre { background: #8882; padding: .7rem; overflow-x: auto } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8883; overflow-wrap: anywhere }
.yanked { color: #b50 }
</style>"""
# The lines hold the page's own address, which a static site does not know before it is served.
_SCRIPT = """<script>
for (const box of document.querySelectorAll("pre.command")) {
  const site = new URL(".", document.baseURI).href;
  const here = new URL("sets/" + encodeURIComponent(box.dataset.set) + "/", site).href;
  box.textContent = box.textContent.replaceAll("{SET}/", here).replaceAll("{SITE}/", site);
}
</script>"""
