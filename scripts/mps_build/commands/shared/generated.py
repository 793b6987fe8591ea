"""What is generated from code and data: whole files, reference pages, and the parts of pages between two marks."""

from __future__ import annotations

import ast
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mps_build.common import strict_yaml
from mps_build.common.errors import UsageError
from mps_build.common.json_text import head
from mps_build.common.known_issues import KnownIssues
from mps_build.common.recipe.catalogue import all_recipes, defaults_file
from mps_build.common.recipe.forms import changes, model_schema, record, support_table, written_schema
from mps_build.common.records.benchmark import BenchmarkRecord
from mps_build.common.records.device_record import Record
from mps_build.host.probes.recording import Recording
from mps_build.inspection.audit import rules
from mps_build.kernels.families.shared.contracts import FOLDER, load_contracts
from mps_build.kernels.families.shared.large import Rules
from mps_build.kernels.judge.references import load_references
from mps_build.simulation.ledger import ledger_page
from mps_build.verify.bisection.state import State
from mps_build.verify.upstream.summary import Summary, UpstreamExplanations, load_upstream_explanations, upstream_page

from .catalogue import COMMANDS, TASKS, command_line
from .help import codes
from .parser import module_of

# Every field of every recipe, as it was when somebody last looked at what a change of defaults.yaml changes.
RECIPES_ON_RECORD = Path("tests", "recorded", "recipes.json")
_MODELS: Mapping[str, type[BaseModel]] = {
    "benchmark": BenchmarkRecord,
    "bisection": State,
    "kernel_large_rules": Rules,
    "known_issues": KnownIssues,
    "record": Record,
    "recording": Recording,
    "upstream_explanations": UpstreamExplanations,
}
# Files that commands leave, or read again, in a form of their own; `?` may be missing, `|null` may be null.
_FILES: Mapping[str, str] = {
    "wheel_receipt": "wheel:object recipe:object commit:string|null python:string profile:string "
    "steps:array audit:object",
    "companion_receipt": "wheel:object companion:string version:string of_recipe:string torch:object source:object",
    "rehearsal_receipt": "wheel:object recipe:object rehearsal:string steps:array audit:object",
    "step_receipt": "step:string version:integer inputs:object digest:string outputs:array facts:object seconds:number",
    "index_state": "published:object yanked:object reasons:object deleting:object",
}
_ENDED = ("interrupted", "cut_off")


def generated_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield (path, text as it should be) of every file that holds something generated.

    Raises:
        UsageError: a page lacks its marks.
    """
    for name, text in schemas().items():
        yield root / "schemas" / f"{name}.schema.json", text
    yield root / RECIPES_ON_RECORD, record(all_recipes())
    docs = root / "docs"
    yield docs / "reference" / "commands.md", commands_page()
    yield docs / "verify" / "simulated_rules.md", ledger_page()
    yield docs / "verify" / "simulated_upstream.md", _upstream(root)
    releases = (recipe for recipe in all_recipes() if recipe.release is not None)
    yield _page(docs / "reference" / "releases.md", "releases", support_table(releases))
    yield _page(docs / "reference" / "exit_codes.md", "exit codes", exit_codes_table())
    yield _page(docs / "inspect" / "audit.md", "rules", _rules_table())
    yield _page(docs / "contributing" / "kernel_family.md", "families", _families_table())
    yield root / "benchmarks" / "README.md", _benchmarks(root / "benchmarks")


def schemas() -> dict[str, str]:
    """Return the text of each JSON Schema by its name; editors check recipes by theirs as they are written."""
    made = {name: model.model_json_schema(mode="validation") for name, model in _MODELS.items()}
    made["recipe"] = written_schema(model_schema(), strict_yaml.read(defaults_file()).data)
    made |= {name: _schema(name, keys) for name, keys in _FILES.items()}
    made |= {name: _command_schema(name, getattr(module_of(name), "DOCUMENT", "")) for name in COMMANDS}
    return {name: _schema_text(name, schema) for name, schema in sorted(made.items())}


def _command_schema(name: str, keys: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's document: it ends with how it ended; one that failed may lack all else.

    Args:
        keys: what it holds beside the head, `key:type`, by spaces. `?key` may be missing, `|null` may be null.
    """
    schema = _schema(name, keys)
    inner = schema["required"][2:]
    schema["required"] = ["schema", "tool_version", "exit_code", "cause", "hint"]
    schema["properties"] |= {
        "exit_code": {"type": "integer", "minimum": 0, "maximum": 255},
        "cause": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
        "error": {"type": "string"},
    }
    if inner:
        ended = {"properties": {"cause": {"enum": [*_ENDED]}}}
        schema["anyOf"] = [{"required": inner}, {"required": ["error"]}, ended]
    return schema


def _schema(name: str, keys: str) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "schema": {"const": head(name)["schema"]},
        "tool_version": {"type": "string", "minLength": 1},
    }
    required = [*properties]
    for word in keys.split():
        key, _, types = word.partition(":")
        if not key.startswith("?"):
            required.append(key)
        properties[key.lstrip("?")] = {"type": types.split("|") if "|" in types else types}
    return {"title": name, "type": "object", "required": required, "properties": properties}


def recipe_changes(root: Path) -> list[str]:
    """Return which field of which recipe is no longer what is on record; nothing where there is no record yet."""
    path = root / RECIPES_ON_RECORD
    try:
        return changes(path.read_text(encoding="utf-8"), all_recipes()) if path.is_file() else []
    except ValueError:
        return [f"{RECIPES_ON_RECORD} is not JSON"]


def between_marks(text: str, name: str, part: str, *, page: str) -> str:
    """Return a page's text with `part` between the marks of that name.

    >>> between_marks("a\\n<!-- generated: x -->\\nold\\n<!-- end: x -->\\nb\\n", "x", "new", page="p.md")
    'a\\n<!-- generated: x -->\\nnew\\n<!-- end: x -->\\nb\\n'

    Raises:
        UsageError: the marks are missing, or not there once each in order.
    """
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise UsageError(f"{page} must hold each mark once, in order", hint=f"add the lines\n{begin}\n{end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"


def _schema_text(name: str, schema: Mapping[str, Any]) -> str:
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{name}.schema.json", **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _page(path: Path, name: str, part: str) -> tuple[Path, str]:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return path, between_marks(text, name, part, page=str(path))


def _upstream(root: Path) -> str:
    summary = Summary.model_validate_json((root / "benchmarks" / "upstream_tests.json").read_bytes())
    wheels = json.loads((root / "benchmarks" / "upstream_wheels.json").read_bytes())
    return upstream_page(
        summary, load_upstream_explanations(), [Summary.model_validate(each) for each in wheels.values()]
    )


def _benchmarks(folder: Path) -> str:
    """Return the page of figures; benchmarks/ is not part of the package, so its module is loaded by its path."""
    spec = importlib.util.spec_from_file_location("benchmarks_page", folder / "shared" / "page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.render(json.loads((folder / "results.json").read_text(encoding="utf-8"))))


_GENERATED = "<!-- generated by `regenerate`: do not edit -->"


def commands_page() -> str:
    """Return the list of all commands, by task, in Markdown; their options are explained by `--help-all` alone."""
    return "\n".join(_commands()) + "\n"


def _rules_table() -> str:
    """Return every rule as a Markdown table, as docs/inspect/audit.md shows it."""
    rows = ["| rule | level | judged | holds for | why |", "|---|---|---|---|---|"]
    for rule in rules.ALL:
        judged = "whole files" if rule.needs_full else "headers"
        rows.append(
            f"| {rule.id} | {rule.level} | {judged} | {'torch' if rule.torch_only else 'any'} | {rule.reason} |"
        )
    return "\n".join(rows)


def _families_table() -> str:
    """Return the families' folders as a Markdown table: subject, contracts, references."""
    contracts = [each.folder for each in load_contracts()]
    references = [row.get("family") for row in load_references().values()]
    lines = ["| folder | what | contracts | references |", "|---|---|---|---|"]
    for name in sorted(set(contracts)):
        link = f"[{name}](../../scripts/mps_build/kernels/families/{name})"
        lines.append(f"| {link} | {_subject(FOLDER / name)} | {contracts.count(name)} | {references.count(name)} |")
    return "\n".join(lines)


def _subject(folder: Path) -> str:
    """Return what a family's package says of itself; nothing is imported for it."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.rstrip(".")


def exit_codes_table() -> str:
    """Return the exit codes of the error classes as a Markdown table; 0 and 1 have no class."""
    rows = codes()
    return "\n".join(["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in rows.items())])


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", _GENERATED, "")
    yield "`nox -s COMMAND -- OPTIONS` in a clone is `mps-build COMMAND OPTIONS` of an installation. `--help` explains"
    yield "the options that most people need, `--help-all` every one. Every command also takes `--json FILE`; the"
    yield "document always holds `schema`, `tool_version`, `exit_code`, `cause` and `hint`."
    for task, commands in TASKS.items():
        yield from (
            "",
            f"## {task[0].upper()}{task[1:]}",
            "",
            "| command | what it does | for example |",
            "|---|---|---|",
        )
        for name, summary in commands.items():
            example = command_line(name, module_of(name).EXAMPLES[0])
            yield f"| {name} | {_cell(summary)} | `{_cell(example)}` |"


def _cell(text: object) -> str:
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())
