"""One failure of a record as a script of its own, and as the text of an issue for upstream."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.plain_text import code_block, fence_of, in_code, in_html, in_markdown, markdown_table, plain
from mps_build.common.records.device_record import Case, Record

from .words import facts as facts_of_record
from .words import issue_link

MOST_TITLE = 120
MOST_FOUND = 6_000
_MAIN = Path(__file__).with_name("repro_main.py.txt")


def render_script(record: Record, case: Case, sources: Mapping[str, str]) -> str:
    """Return the script: torch and the standard library, the case and the frame that asks it."""
    module = (case.file or "").removesuffix(".py")
    parts = [
        "#!/usr/bin/env python3",
        _literal_docstring(record, case),
        "",
        "import argparse",
        "import importlib.abc",
        "import importlib.util",
        "import linecache",
        "import os",
        "import sys",
        "",
        f"CASE, FILE, DEVICE = {case.id!r}, {module!r}, {record.device!r}",
        "SOURCES = {}",
    ]
    for name, source in sources.items():
        parts += ["", f"SOURCES[{name!r}] = {_literal(source)}"]
    return "\n".join([*parts, "", "", _MAIN.read_text(encoding="utf-8")])


_KINDS = {"bug": "a bug of PyTorch", "apple": "a bug of Apple's", "limit": "a limit of the simulation"}


def render_issue(
    record: Record, case: Case, script: str, file: str, *, facts: Mapping[str, str] | None = None, why_long: str = ""
) -> str:
    """Return the text of an issue, in Markdown: what, how to see it, on what.

    `facts` are what a title says (operator, dtype, condition, effect). `why_long`: why the script is the suite's own
    frame; then the text tells how to make it, and does not hold it.
    """
    links = ", ".join(issue_link(issue) or in_markdown(issue) for issue in case.issue)
    lines = [
        f"# {title(record, case, facts or {})}",
        "",
        f"{in_code(case.id)} gives a wrong answer on {in_code(record.device)} "
        f"with torch {in_markdown(str(record.torch.version))}.",
        in_markdown(_caveat(record)),
        "",
        "**Expected:** what float64 on the CPU gives, within the rounding of the dtype and the number of terms.",
        "",
        "**Found:**",
        "",
        code_block(plain(_found(case))[:MOST_FOUND]),
        "",
        f"**To reproduce:** {in_code(f'python {file}')} (attached; torch and the standard library only; exit 1 means "
        "wrong).",
        "",
    ]
    if links:
        lines += [f"The case was written for {links}.", ""]
    if known := next((row for row in record.known_issues if row.id == case.known_issue), None):
        since = f", since {known.since}" if known.since else ""
        kind = _KINDS.get(known.kind, known.kind)
        sentence = f"Known as {known.link or known.id}, {kind} ({known.title}{since}): {known.reason}."
        lines += [in_markdown(sentence), ""]
    shown = [(name, value) for name, value in facts_of_record(record) if name not in ("started", "time")]
    lines += ["**Versions**", "", *markdown_table(("", ""), shown)]
    lines += ["", *_script_lines(record, case, script, file, why_long), ""]
    return "\n".join(lines)


def _script_lines(record: Record, case: Case, script: str, file: str, why_long: str) -> list[str]:
    if why_long:
        command = f"nox -s repro -- RECORD {shlex.quote(plain(case.id))}"
        return [
            f"The script is long, since the case could not be cut down ({in_markdown(why_long)}). It is attached with "
            f"the record (record.json of {in_markdown(record.started[:10])}, {in_markdown(record.tool)}); "
            f"{in_code(command)} writes it again.",
        ]
    fence = fence_of(script)
    head = f"<details><summary>{in_html(file)}</summary>"
    return [head, "", f"{fence}python", script.rstrip(), fence, "", "</details>"]


def title(record: Record, case: Case, facts: Mapping[str, str]) -> str:
    """Return an issue's title: operator, dtype, condition and effect; it ends at a word."""
    effect = facts.get("effect") or _effect(case)
    said = [facts[key] for key in ("operator", "dtype", "condition") if facts.get(key)] or [case.id]
    text = f"{', '.join(said)}: {effect}"
    return f"[{in_markdown(record.device.upper())}] " + in_markdown(
        textwrap.shorten(plain(text), MOST_TITLE, placeholder=" …")
    )


def _effect(case: Case) -> str:
    """Return what was wrong, from the reason: without the kind of exception, the state and the path of the answer."""
    first = (case.reason or "").strip().partition("\n")[0]
    first = re.sub(r"^(Mismatch|AssertionError): ", "", first)
    first = re.sub(r"^((fresh|again|other|polluted|row \w+|answer \d+|(out|base)[\w.\[\]-]*): )+", "", first)
    return first or {"crashed": "the process crashes", "timeout": "it does not end"}.get(case.outcome, "a wrong answer")


def _caveat(record: Record) -> str:
    """Return what a reader upstream must know first: a rehearsal, a simulated device, or an injected fault."""
    is_plain = record.device == "mps" and record.simulated is None and not record.selection.get("inject")
    return "" if is_plain else record.statement


def _found(case: Case) -> str:
    outcome = "failed" if case.outcome == "known" else case.outcome
    lines = [f"{outcome}: {case.reason or ''}".strip()]
    if case.largest is not None and case.bound is not None:
        lines.append(f"largest error {case.largest:.4g}, allowed {case.bound:.4g}")
    return "\n".join(lines)


def said_of(record: Record, case: Case) -> str:
    """Return the first words of a short script."""
    found = textwrap.shorten(plain(_found(case)), 300, placeholder=" …")
    return (
        f"{case.id}: a wrong answer of {record.device} with torch {record.torch.version}, beside float64 on the CPU. "
        f"Found: {found} Written by {record.tool} from a record of {record.started[:10]}. {_caveat(record)}".rstrip()
    )


def _literal_docstring(record: Record, case: Case) -> str:
    text = (
        f"{case.id}: a wrong answer of {record.device} with torch {record.torch.version}.\n\n"
        "Expected: what float64 on the CPU gives, within the rounding of the dtype and the number of terms.\n"
        f"Found:    {' '.join((case.reason or case.outcome).split())[:400]}\n\n"
        "Ends with 1 if the answer is wrong, 0 if it is right. Needs torch and nothing else.\n"
        f"Written by {record.tool} from a record of {record.started[:10]}. {_caveat(record)}".rstrip()
        + "\n"
    )
    return '"""' + plain(text).replace("\\", "\\\\").replace('"""', "'''") + '"""'


def _literal(source: str) -> str:
    """Return the source as a literal that a person can read, where that is possible."""
    if "'''" not in source and not source.rstrip("\n").endswith(("\\", "'")):
        return f"r'''\n{source}'''"
    return repr(source)


FRAME = "engine"
# What is imported of these packages is embedded.
FRAMES = (FRAME, "operators", "transforms")
# What the script itself calls, besides what the case's file imports.
_ALWAYS = ("states", "runs", "faults", "selection", "compare")


def embed(suite: Path, file: str, case_id: str) -> Mapping[str, str]:
    """Return module name -> source of all that the case needs; the other cases of its file are left out.

    Raises:
        UsageError: the suite has no such file.
    """
    # A record comes from anywhere: what it names is a file of the suite, by its bare name, or nothing.
    path = {each.name: each for each in (*suite.glob("*.py"), *suite.glob("*/test_*.py"))}.get(file, suite / "nothing")
    if path.is_symlink() or not path.is_file():
        raise UsageError(
            f"{suite / plain(file)}: the record names a file that this suite does not have",
            hint="use the tool's version that wrote the record, or verify again",
        )
    text = path.read_text(encoding="utf-8")
    sources = {path.stem: without_other_cases(text, case_id)}
    wanted = [f"{FRAME}.{name}" for name in _ALWAYS] + [FRAME, *_imports(text, package="")]
    while wanted:
        name = wanted.pop()
        if name in sources:
            continue
        source = _read(suite, name)
        if source is None:
            continue
        sources[name] = source
        package = name if (suite.joinpath(*name.split(".")) / "__init__.py").is_file() else name.rpartition(".")[0]
        wanted += [name.rpartition(".")[0] or FRAME, *_imports(source, package=package)]
    return dict(sorted(sources.items(), key=lambda pair: (pair[0] != path.stem, pair[0])))


def without_other_cases(text: str, case_id: str) -> str:
    """Return a file's source without the functions that are registered under another literal id and not used."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in reversed(tree.body):
        if not isinstance(node, ast.FunctionDef) or node.name in used:
            continue
        ids = [_literal_id(decorator) for decorator in node.decorator_list]
        if ids and all(found is not None and found != case_id for found in ids):
            begin, end = node.decorator_list[0].lineno - 1, node.end_lineno or node.lineno
            while end < len(lines) and not lines[end].strip():
                end += 1
            del lines[begin:end]
    return "".join(lines)


def _literal_id(decorator: ast.expr) -> str | None:
    """Return the id of `@cases.case("id", ...)`; None for any other decorator, or an id that is computed."""
    if (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr in ("case", "check")
        and decorator.args
        and isinstance(decorator.args[0], ast.Constant)
        and isinstance(decorator.args[0].value, str)
    ):
        return decorator.args[0].value
    return None


@lru_cache(maxsize=512)
def _imports(source: str, *, package: str) -> tuple[str, ...]:
    """Return the modules of the frame that a source imports, by their whole names: many scripts embed the same."""
    return tuple(_imported(source, package))


def _imported(source: str, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in FRAMES)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = ".".join(parents[: len(parents) - node.level + 1])
            base = f"{above}.{node.module or ''}".strip(".") if node.level else (node.module or "")
            if base.split(".")[0] in FRAMES:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _read(suite: Path, module: str) -> str | None:
    path = suite.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    return None
