"""Answer what a workflow asks beside the sessions: trust, refs, outputs, upstream's commit, issues.

The steps of our workflows, so that a workflow file holds no logic of its own.

trust     fails unless this event may use a Mac (the host's hook refuses too)
inputs    a ref, runner labels: fails unless they are on the list of what is allowed
outputs   a build's --json as outputs of the step, and as a table in the job's summary
upstream  the commit of a branch or tag, and whether a nightly was made of it already
issues    what builds and records below --results show: issues opened, commented, closed (needs gh)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from mps_build.common.console import Console, human_bytes
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.json_text import checked, parse_json, to_json
from mps_build.common.plain_text import in_code, in_markdown, markdown_table
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.reporting import Result, job_summary
from mps_build.common.scrubbing.scrubber import without_secrets
from mps_build.common.workspace import work_folder
from mps_build.publish.fleet import (
    LABEL,
    Action,
    Seen,
    changed_recipes,
    check_labels,
    check_ref,
    check_trust,
    decide,
    gh,
    json_object,
    look_at_build,
    look_at_record,
    step_outputs,
)
from mps_build.wheel_build.steps.prepare_source import resolve_ref

TASK = ("repository", 7)
EXAMPLES = (
    "trust",
    'inputs --ref viable/strict --runner \'["self-hosted","macOS"]\'',
    "outputs --build build.json",
    "upstream --recipe nightly --ref viable/strict",
    "issues --results artifacts --recipe nightly --dry-run",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    what: str
    ref: str
    runner: str
    xcode: str
    python: str
    base: str
    testers: str
    recipe: str
    build: Path | None
    results: Path | None
    dry_run: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("what", choices=tuple(_OUTPUTS), metavar="WHAT", help=", ".join(_OUTPUTS))
    parser.add_argument("--ref", default="", help="a commit, tag or branch of upstream")
    parser.add_argument("--runner", default="", metavar="JSON", help="a runner's labels")
    parser.add_argument("--xcode", default="", help="a version of Xcode, at /Applications/Xcode_VERSION.app")
    parser.add_argument("--python", default="", help="the Pythons of a build, for its artifact's name")
    parser.add_argument("--base", default="HEAD^", help="changed: since which commit")
    parser.add_argument("--testers", default="", metavar="JSON", help="a list of testers' labels, one list a macOS")
    parser.add_argument("--recipe", default="nightly", help="the recipe")
    parser.add_argument("--build", type=Path, metavar="FILE", help="the document that build_wheel --json wrote")
    parser.add_argument("--results", type=Path, metavar="DIR", help="the downloaded artifacts, one folder each")
    parser.add_argument("--dry-run", action="store_true", help="issues: only show what would be done")


def run(options: Options, console: Console) -> Result:
    """Run the step that the first argument names."""
    document: dict[str, Any] = _OUTPUTS[options.what](options, console)
    return Result(document=document)


def _trust(options: Options, console: Console) -> dict[str, Any]:
    event = check_trust(os.environ)
    console.print(f"{event} of {os.environ['GITHUB_REPOSITORY']}: trusted")
    return {"event": event}


def _inputs(options: Options, console: Console) -> dict[str, Any]:
    recipe = find_recipe(options.recipe)
    if options.ref:
        check_ref(options.ref)
    if options.runner:
        check_labels(options.runner)
    if options.xcode and not re.fullmatch(r"\d+(\.\d+){0,2}(_beta(_\d)?)?", options.xcode):
        raise UsageError(f"--xcode {options.xcode!r} is not a version", hint="for example 26.4")
    if options.python and not re.fullmatch(r"\d\.\d+t?(,\d\.\d+t?)*", options.python):
        raise UsageError(f"--python {options.python!r} is not a list of versions", hint="for example 3.12,3.13")
    places = _testers(options.testers) if options.testers else []
    console.print(f"{recipe.name} {options.ref or '(its pin)'}: allowed")
    outputs = {
        "artifact": f"wheel-{recipe.name}-py{(options.python or recipe.default_python).replace(',', '-')}",
        "developer-dir": f"/Applications/Xcode_{options.xcode}.app/Contents/Developer" if options.xcode else "",
        "matrix": json.dumps({"include": places}, separators=(",", ":")),
    }
    step_outputs(outputs)
    return {"recipe": recipe.name, "include": places, **outputs}


def _testers(text: str) -> list[dict[str, str]]:
    try:
        testers = parse_json(text)
    except ValueError as error:
        raise UsageError(f"--testers {text!r} is not JSON: {error}", hint='[["self-hosted","macos-15"]]') from error
    if not isinstance(testers, list) or not testers or len(testers) > 256:
        raise UsageError(f"--testers {text!r} is not a list of 1 to 256 lists of labels")
    places = []
    for each in testers:
        labels = check_labels(json.dumps(each), bare_metal=True)
        places.append({"runner": json.dumps(labels), "place": labels[-1]})
    if len({each["place"] for each in places}) != len(places):
        raise UsageError("two testers have the same last label", hint="the last one names the macOS: macos-m2-15")
    return places


class _Wheel(BaseModel):
    path: Path
    receipt: Path
    sha256: str
    size: int
    kind: str | None = None


class _Step(BaseModel):
    step: str
    seconds: float
    skipped: bool = False


class _Build(BaseModel):
    """What a workflow needs of a build's document."""

    recipe: str
    commit: str | None = None
    wheels: tuple[_Wheel, ...] = Field(min_length=1)
    steps: tuple[_Step, ...] = ()


def _outputs(options: Options, console: Console) -> dict[str, Any]:
    document = json_object(options.build, "--build")
    if not document.get("wheels"):
        raise UsageError(f"{options.build} names no wheel: {document.get('error', 'the build did not end well')}")
    build = checked(document, _Build, name=str(options.build), what="document of build_wheel")
    first = build.wheels[0]
    outputs = {
        "wheel": first.path.name,
        "sha256": first.sha256,
        "version": first.path.name.partition("-")[2].partition("-")[0],
        "receipt": first.receipt.name,
        "wheels": json.dumps([each.path.name for each in build.wheels]),
    }
    step_outputs(outputs)
    rows = [
        (in_code(each.path.name), human_bytes(each.size), in_code(each.sha256), each.kind or "")
        for each in build.wheels
    ]
    times = [(each.step, f"{each.seconds:.0f} s") for each in build.steps if not each.skipped]
    tables = (
        *markdown_table(("wheel", "size", "sha256", "kind"), rows),
        *("", *markdown_table(("step", "time"), times), ""),
    )
    job_summary(
        "\n".join([f"## {in_markdown(build.recipe)} at {in_code(build.commit or 'an unknown commit')}", "", *tables])
    )
    console.table(("output", "value"), list(outputs.items()))
    return outputs


def _collect(options: Options, console: Console) -> dict[str, Any]:
    """Copy what tells how a build went; a build that was cut off left no result, and gets one that says so."""
    if options.results is None:
        raise UsageError("collect needs --results DIR")
    root = work_folder() / find_recipe(options.recipe).name
    options.results.mkdir(parents=True, exist_ok=True)
    kept = options.results / "build.json"
    if options.build and options.build.is_file():
        shutil.copy2(options.build, kept)
    else:
        text = "the build ended without a result: cut off at its time limit, or cancelled"
        kept.write_text(json.dumps({"exit_code": 124, "cause": "unfinished", "error": text}) + "\n", encoding="utf-8")
    found = [
        *root.glob("logs/*"),
        *root.glob("receipts/*.json"),
        *root.rglob(".ninja_log"),
        *root.rglob("CMakeCache.txt"),
    ]
    for path in found:
        if path.is_file() and not path.is_symlink():
            place = options.results / path.relative_to(root)
            # Artifacts leave hidden files out: https://github.com/actions/upload-artifact#uploading-hidden-files
            place = place.with_name(place.name.lstrip("."))
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, _public(path))
    console.print(f"{len(found)} files of {root} are in {options.results}")
    return {"files": len(found)}


def _public(path: Path) -> str:
    """Return a text of a build as others may read it."""
    text = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".json":
        with suppress(ValueError):
            return to_json(without_secrets(parse_json(text)))
    return str(without_secrets(text))


def _changed(options: Options, console: Console) -> dict[str, Any]:
    names = changed_recipes(options.base)
    console.print(f"changed since {options.base}: {', '.join(names) or 'no recipe'}")
    matrix = {"include": [{"recipe": name} for name in names]}
    step_outputs({"matrix": json.dumps(matrix, separators=(",", ":")), "any": str(bool(names)).lower()})
    return {"recipes": names}


def _upstream(options: Options, console: Console) -> dict[str, Any]:
    recipe = find_recipe(options.recipe)
    if recipe.source.repository is None:
        raise UsageError(f"{recipe.name} has no upstream repository")
    commit = resolve_ref(recipe.source.repository, check_ref(options.ref), environ=fetch_environ(os.environ))
    done = f"done-{recipe.name}-{commit}"
    path = f"repos/{os.environ.get('GITHUB_REPOSITORY', '')}/actions/artifacts?name={done}"
    found = gh("api", path)
    artifacts = found.get("artifacts", []) if isinstance(found, dict) else []
    changed = all(each.get("expired") for each in artifacts)
    console.print(f"{options.ref} is {commit}: {'new' if changed else 'built and verified already'}")
    step_outputs({"commit": commit, "changed": str(changed).lower(), "done": done})
    return {"commit": commit, "changed": changed, "done": done}


def _issues(options: Options, console: Console) -> dict[str, Any]:
    """Read build.json and record.json in each artifact's folder; a record's folder is named `record-PLACE`."""
    if options.results is None or not options.results.is_dir():
        raise UsageError(f"--results {options.results}: no such folder", hint="the downloaded artifacts")
    seen = _seen(options.results, options.recipe)
    if not seen:
        raise UsageError(f"{options.results} holds neither build.json nor record.json: the run left no result")
    listed = gh("issue", "list", "--label", LABEL, "--state", "open", "--limit", "1000", "--json", "number,body")
    actions = decide(seen, listed)
    for action in actions:
        console.print(f"{action.kind} {action.number or ''} {action.title}")
        if not options.dry_run:
            _act(action)
    if not actions:
        console.print("nothing to report")
    return {"actions": [{"kind": each.kind, "number": each.number, "title": each.title} for each in actions]}


def _seen(results: Path, recipe: str) -> list[Seen]:
    run = "/".join(os.environ.get(name, "?") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"))
    run += f"/actions/runs/{os.environ.get('GITHUB_RUN_ID', '?')}"
    seen = [
        look_at_build(json_object(path, "a build"), recipe=recipe, run=run)
        for path in sorted(results.rglob("build.json"))
    ]
    for path in sorted(results.rglob("record.json")):
        place = path.relative_to(results).parts[0].removeprefix("record-")
        seen.append(look_at_record(json_object(path, "a record"), recipe=recipe, place=place, run=run))
    return seen


def _act(action: Action) -> None:
    if action.kind == "open":
        gh("issue", "create", "--label", LABEL, "--title", action.title, "--body", action.body, parse=False)
    elif action.kind == "comment":
        gh("issue", "comment", str(action.number), "--body", action.body, parse=False)
    else:
        gh("issue", "close", str(action.number), "--comment", action.body, parse=False)


_OUTPUTS = {
    "trust": _trust,
    "inputs": _inputs,
    "outputs": _outputs,
    "collect": _collect,
    "changed": _changed,
    "upstream": _upstream,
    "issues": _issues,
}
