"""The pages of an index, as text: PEP 503 (HTML), PEP 691 (JSON), PEP 658 (metadata beside the wheel).

And what a user writes to install one set: for pip, for uv's project file, and for conda's environment file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from packaging.version import Version

from mps_build.common.console import human_bytes
from mps_build.common.page import content_policy, section, table, whole_page
from mps_build.common.plain_text import in_html
from mps_build.common.wheels.wheel_file import BILL, MatchedSet, WheelFile

INDEX = "mps-build"
MAC = "sys_platform == 'darwin' and platform_machine == 'arm64'"


def pip_lines(address: str) -> str:
    """Return the two commands; `address` is the set's folder, with a slash at its end.

    >>> print(pip_lines("https://example.org/sets/torch-2.6.0-cp312/"), end="")
    pip install --no-deps --index-url https://example.org/sets/torch-2.6.0-cp312/simple/ \
-r https://example.org/sets/torch-2.6.0-cp312/requirements.txt
    pip install -r https://example.org/sets/torch-2.6.0-cp312/dependencies.txt
    """
    return (
        f"pip install --no-deps --index-url {address}simple/ -r {address}requirements.txt\n"
        f"pip install -r {address}dependencies.txt\n"
    )


def uv_lines(matched: MatchedSet, address: str) -> str:
    """Return the lines of a pyproject.toml: an explicit index serves nothing but what is given to it.

    Elsewhere than on Apple silicon the same project takes the official wheels, from the usual index:
    https://docs.astral.sh/uv/concepts/projects/dependencies/#multiple-sources
    """
    pins = "".join(f'    "{each.name}=={each.version}; {MAC}",\n' for each in matched.wheels)
    sources = "".join(f'{each.name} = [{{ index = "{INDEX}", marker = "{MAC}" }}]\n' for each in matched.wheels)
    return (
        f"[project]\ndependencies = [\n{pins}]\n\n"
        f'[[tool.uv.index]]\nname = "{INDEX}"\nurl = "{address}simple/"\nexplicit = true\n\n'
        f"[tool.uv.sources]\n{sources}"
    )


def conda_lines(matched: MatchedSet, wheel_address: Callable[[WheelFile], str]) -> str:
    """Return an environment.yml whose pip section names each wheel by address and hash.

    pip holds an index of conda's pip section for everything it installs, so no index is named there.
    """
    python = matched.torch.interpreter.removeprefix("cp")
    rows = "".join(f'      - "{each.name} @ {wheel_address(each)}#sha256={each.sha256}"\n' for each in matched.wheels)
    return f"dependencies:\n  - python={python[0]}.{python[1:].rstrip('t')}\n  - pip\n  - pip:\n{rows}"


SET_ADDRESS, SITE_ADDRESS = "{SET}/", "{SITE}/"
_SHEET = ":root { color-scheme: light dark } a { overflow-wrap: anywhere }"
_HEAD = (
    f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">{content_policy(styles=[_SHEET])}'
    f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_SHEET}</style>'
)


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
        attributes = [f'href="{in_html(link(wheel, base))}#sha256={wheel.sha256}"']
        if wheel.requires_python:
            attributes.append(f'data-requires-python="{in_html(wheel.requires_python)}"')
        # Both names: clients before PEP 714 know only the first.
        attributes += [f'{key}="sha256={digest}"' for key in ("data-dist-info-metadata", "data-core-metadata")]
        if wheel.file in yanked:
            attributes.append(f'data-yanked="{in_html(yanked[wheel.file])}"')
        rows.append(f"<a {' '.join(attributes)}>{in_html(wheel.file)}</a><br>")
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
    """Return the page for people: how the newest set is installed, every set with its commands, every wheel."""
    newest = sorted(sets, key=lambda each: _age(each.torch), reverse=True)
    parts = [
        '<div class="verdict soft"><h1>PyTorch wheels with MPS, self-built</h1>'
        "<p>Built by mps-build for macOS on Apple silicon; these are not the official wheels. "
        "Each set is an index of its own: no other torch can come in.</p>"
        '<p class="no-script">{SITE} stands for the address of this page, {SET} for that of the set below it: '
        "a script would fill them in.</p></div>"
    ]
    if newest:
        parts.append(section("Install the newest", _commands(newest[0], base), newest[0].id))
        rows = [_set_row(each, base) for each in newest]
        parts.append(section("All sets", table(("set", "holds", "install"), rows), str(len(rows))))
    else:
        parts.append(section("Install", "<p>No torch is published here.</p>"))
    rows = [_wheel_row(wheel, base, yanked) for wheel in sorted(wheels, key=_age, reverse=True)]
    columns = ("wheel", "size", "sha256", "beside it")
    parts.append(section("All wheels", table(columns, rows, numbers=("size",)), str(len(rows))))
    return whole_page("PyTorch wheels with MPS", "\n".join(parts), css=_STYLE, script=_SCRIPT)


def _age(wheel: WheelFile) -> tuple[Version, int, str]:
    return wheel.version, len(wheel.interpreter), wheel.interpreter  # cp39 before cp310


def _set_row(matched: MatchedSet, base: str) -> str:
    place = f"sets/{quote(matched.id)}"
    members = ", ".join(f"{in_html(wheel.name)} {in_html(str(wheel.version))}" for wheel in matched.wheels)
    files = " · ".join(
        f'<a href="{place}/{file}">{file}</a>' for file in ("requirements.txt", "constraints.txt", "dependencies.txt")
    )
    return (
        f"<tr><td><code>{in_html(matched.id)}</code></td><td>{members}</td>"
        f'<td class="install"><details><summary>commands</summary>{_commands(matched, base)}<p>{files}</p></details>'
        "</td></tr>"
    )


def _commands(matched: MatchedSet, base: str) -> str:
    return "\n".join(
        f'<h3>{client}</h3>\n<pre class="command" data-set="{in_html(matched.id)}">{in_html(lines)}</pre>'
        for client, lines in _clients(matched, base)
    )


def _wheel_row(wheel: WheelFile, base: str, yanked: Mapping[str, str]) -> str:
    note = f' <span class="tag known">yanked: {in_html(yanked[wheel.file])}</span>' if wheel.file in yanked else ""
    beside = " · ".join(
        f'<a href="{in_html(base + quote(name, safe=""))}">{in_html(name.removeprefix(wheel.file))}</a>'
        for name in (*wheel.beside, *([wheel.file + BILL] if wheel.bill is not None else []))
    )
    return (
        f'<tr><td><a href="{in_html(link(wheel, base))}">{in_html(wheel.file)}</a>{note}</td>'
        f'<td class="number">{human_bytes(wheel.size)}</td><td><code>{wheel.sha256[:16]}…</code></td>'
        f"<td>{beside}</td></tr>"
    )


def _clients(matched: MatchedSet, base: str) -> tuple[tuple[str, str], ...]:
    """Return what is written for each client; SET and SITE stand for addresses that the reader's browser fills in."""
    place = base if "://" in base else f"{SITE_ADDRESS}{base}"
    return (
        ("pip", pip_lines(SET_ADDRESS)),
        ("uv: pyproject.toml", uv_lines(matched, SET_ADDRESS)),
        ("conda: environment.yml", conda_lines(matched, lambda wheel: link(wheel, place))),
    )


_STYLE = "td.install { width: 50%; } .tag { white-space: normal; }\n"
# The lines hold the page's own address, which a static site does not know before it is served.
_SCRIPT = """for (const box of document.querySelectorAll("pre.command")) {
  const site = new URL(".", document.baseURI).href;
  const here = new URL("sets/" + encodeURIComponent(box.dataset.set) + "/", site).href;
  box.textContent = box.textContent.replaceAll("{SET}/", here).replaceAll("{SITE}/", site);
}
"""
