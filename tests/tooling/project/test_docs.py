"""The docs: every link leads somewhere, every command that is shown exists, every generated part is up to date."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.parser import parser_of
from repository import nox_sessions
from rows import for_each

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "scripts" / "mps_build"
SUITE = ROOT / "tests" / "device"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])
SESSIONS = nox_sessions(ROOT / "noxfile.py")


@for_each(PAGES, name=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_every_named_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [link for link in links if link and "://" not in link and not (page.parent / link).exists()]
    named = re.findall(r"`((?:docs|tests|benchmarks|build_recipes|patches|runner|schemas)/[\w./-]+\.\w+)`", text)
    named += re.findall(r"\btests/(?:tooling|device|sensitivity|training|recorded)/[\w./-]+\.\w+", text)
    if page.name != "CHANGELOG.md":  # it speaks of what was
        missing += [name for name in named if not (ROOT / name).exists()]

    assert not missing


@for_each(PAGES, name=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    for line in re.findall(r"nox -s ([^`\n]+)", page.read_text(encoding="utf-8")):
        found = re.match(r"dev -- \w+(?![^ ]*\|)|tests -- --tier \w+|\w+", line)
        if not found or found[0].split()[-1].isupper():
            continue
        assert found[0] in SESSIONS, line
        name = found[0].removeprefix("dev -- ")
        if name in COMMANDS:
            rest = line[found.end() :].removeprefix(" -- ")
            known = {option for action in parser_of(name)._actions for option in action.option_strings}
            assert {word for word in _words(rest) if word.startswith("--") and word != "--"} <= known, line


@for_each(PAGES, name=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_part_of_a_page_finds_its_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", text) if "://" not in link]
    targets = [((page.parent / name) if name else page, part) for name, _, part in links if name.endswith((".md", ""))]

    assert [(path.name, part) for path, part in targets if part not in _anchors(path)] == []


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub gives the headings of a page; one that comes again has a number behind it."""
    if not page.is_file():
        return frozenset()
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+?) *$", prose, re.MULTILINE)
    found = [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]
    return frozenset(f"{each}-{n}" if (n := found[:at].count(each)) else each for at, each in enumerate(found))


def _tree() -> list[str]:
    """Return the rows of CONTRIBUTING's tree, each with the lines that go on with it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Where things are")[1]
    block = re.findall(r"(?:^    .*\n)+", text, re.M)[0]
    return re.sub(r"\n {16,}", " ", block).splitlines()


def _has_files(folder: Path) -> bool:
    """Return whether more is there than what Python left of a package that has gone."""
    return any(path.is_file() and "__pycache__" not in path.parts for path in folder.rglob("*.*"))


def _folders(place: Path) -> set[str]:
    found = {each.name for each in place.iterdir() if each.is_dir() and _has_files(each)}
    return {name for name in found if not name.startswith((".", "__")) and name not in ("work", "wheelhouse")}


def test_the_tree_names_every_folder_and_no_other() -> None:
    tree = "\n".join(_tree())

    named = {name for name in _folders(ROOT) if f"{name}/" in tree}
    assert named == _folders(ROOT)
    assert {f"tests/{name}/" for name in _folders(ROOT / "tests") if f"tests/{name}/" not in tree} == set()
    assert {name for name in re.findall(r"^    ([\w./]+)", tree, re.M) if not (ROOT / name).exists()} == set()


def test_the_tree_names_the_folders_of_each_package() -> None:
    packages = ROOT / "scripts" / "mps_build"
    rows = {row.split("/")[0].strip(): row for row in _tree() if row.startswith("      ") and "/ " in row}

    assert rows.keys() == _folders(packages)
    for package, row in rows.items():
        named = set(re.findall(r"([\w.]+)/", row.strip())) - {package}
        assert named == _folders(packages / package), package


def _prose(path: Path) -> str:
    """Return the docstrings and comments of a file, without addresses."""
    text = path.read_text(encoding="utf-8")
    if ".md" not in text:
        return ""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
    parts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, nodes)]
    parts += [line.partition("# ")[2] for line in text.splitlines()]
    return re.sub(r"https?://\S+|>>> .*|'[^']*'", "", "\n".join(parts))


@pytest.mark.parametrize("folder", ["scripts", "tests", "benchmarks"])
def test_no_source_cites_a_page_that_is_not_here(folder: str) -> None:
    pages = {path.name for part in ("docs", "tests", "benchmarks") for path in (ROOT / part).rglob("*.md")}
    pages |= {path.name for path in ROOT.glob("*.md")}
    cited = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"(?<![\w.])(\w+\.md)\b", _prose(path))
    }

    assert cited
    assert {name for name in cited if name.partition(": ")[2] not in pages} == set()


def _words(text: str) -> list[str]:
    """Return the words of a command line, up to a comment; a quote that the page breaks off counts as a word's."""
    try:
        return [word.partition("=")[0] for word in shlex.split(text.partition(" -- ")[0], comments=True)]
    except ValueError:
        return []


def test_docs_are_pages_that_a_person_reads() -> None:
    lines = {
        str(page.relative_to(ROOT)): len(page.read_text("utf-8").splitlines()) for page in ROOT.glob("docs/**/*.md")
    }

    assert len(lines) <= 45, "what is generated of thousands of rows is made by a command"
    assert {page: count for page, count in lines.items() if count > 200} == {}


def test_every_command_has_its_line_in_the_list() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"^\| (\w+) \| .* \| `", text, re.MULTILINE)) == sorted(COMMANDS)


def _imports(path: Path) -> set[Path]:
    """Return the files that a module names in its imports, also through a package's own."""
    found: set[Path] = set()
    package = path.parent
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = [package, *package.parents][node.level - 1]
        else:
            base = SOURCES.parent if (node.module or "").startswith("mps_build") else SUITE
        for name in (node.module or "", *(f"{node.module or ''}.{each.name}".strip(".") for each in node.names)):
            place = base.joinpath(*name.split(".")) if name else base
            file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            if file.is_file() and file not in found:
                found.add(file)
                found |= _imports(file) if file.name == "__init__.py" and file != path else set()
    return found


def test_the_three_flows_pass_the_modules_that_the_page_names() -> None:
    text = (ROOT / "docs" / "contributing" / "where.md").read_text(encoding="utf-8").partition("## Three flows")[2]
    flows = re.findall(r"^- (\w+ → \w+): ((?:.|\n  )+)", text, re.MULTILINE)

    assert [name for name, _ in flows] == ["recipe → wheel", "wheel → verdict", "case → verdict"]
    for name, flow in flows:
        reached: set[Path] = set()
        for part in flow.split(";"):
            for place, module in enumerate(re.findall(r"`([^`]+\.py)`", part)):
                path = ROOT / module if module.startswith("tests/") else SOURCES / module
                assert path.is_file(), f"{name}: {module}"
                is_first = place == 0 and not (reached and module.startswith("verify/"))
                assert is_first or path in reached, f"{name}: nothing before imports {module}"
                reached |= _imports(path)
