"""A fleet of Macs on GitHub: which releases a change touches, who may build where, one issue per regression."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mps_build.common.errors import HostError, SourceError, UsageError
from mps_build.common.git import git
from mps_build.common.json_text import load_json, parse_json
from mps_build.common.plain_text import code_block, in_code, in_markdown, plain
from mps_build.common.process import Captured, Command, capture, neutral_environ
from mps_build.common.recipe.catalogue import all_recipes, data_root, defaults_file, load_recipe, recipe_file
from mps_build.common.recipe.defaults import DEFAULTS
from mps_build.common.recipe.model import Recipe
from mps_build.common.records.device_record import FAILED


def changed_recipes(base: str) -> list[str]:
    """Return the names of the releases that differ from where this branch left `base`.

    Raises:
        SourceError: git does not know the base, or not enough of its history.
    """
    found = _git("diff", "--name-only", "--end-of-options", f"{base}...HEAD", "--", "build_recipes", "patches")
    if not found.ok:
        raise SourceError(f"git diff since {base}: {found.stderr.strip()}", hint="fetch with fetch-depth: 0")
    files = {Path(line).name for line in found.stdout.splitlines()}
    releases = [recipe for recipe in all_recipes() if recipe.release is not None]
    changed = _changed_by_defaults(releases, base) if DEFAULTS in files else frozenset()
    return [
        recipe.name
        for recipe in releases
        if recipe.name in changed or f"{recipe.name}.yaml" in files or files & {*recipe.patches, recipe.lock_name}
    ]


def _changed_by_defaults(releases: list[Recipe], base: str) -> frozenset[str]:
    """Return the names of the recipes that would be others with the defaults of the base."""
    left = _git("merge-base", base, "HEAD").stdout.strip()
    old = _git("show", f"{left}:./{defaults_file().relative_to(data_root())}")
    if not old.ok:  # the base had none
        return frozenset(recipe.name for recipe in releases)
    with tempfile.TemporaryDirectory(prefix="mps-build-defaults-") as folder:
        path = Path(folder) / DEFAULTS
        path.write_text(old.stdout, encoding="utf-8")
        return frozenset(recipe.name for recipe in releases if _with_defaults(recipe, path) != recipe)


def _with_defaults(recipe: Recipe, defaults: Path) -> Recipe | None:
    """Return what a recipe would be with other defaults; None: no recipe at all."""
    try:
        return load_recipe(recipe_file(recipe.name), defaults=defaults)
    except UsageError:
        return None


def _git(*arguments: str) -> Captured:
    return capture(git(*arguments, cwd=data_root(), environ=neutral_environ()))


def gh(*arguments: str, parse: bool = True) -> Any:
    """Run GitHub's own client; it takes its token from GH_TOKEN.

    Raises:
        SourceError: it is not there, or GitHub refuses.
    """
    found = capture(Command(argv=("gh", *arguments)), timeout_seconds=60)
    if not found.ok:
        said = found.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise SourceError(
            f"gh {' '.join(arguments[:2])}: {said[0]}", hint="install gh and set GH_TOKEN, as the workflow does"
        )
    try:
        return parse_json(found.stdout) if parse else None
    except ValueError as error:
        raise SourceError(f"gh {' '.join(arguments[:2])} did not answer with JSON: {error}") from error


def json_object(path: Path | None, what: str) -> dict[str, Any]:
    """Return the JSON object in a file; `what` names the file in the error.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    document = load_json(path, hint=f"{what} takes what a command's --json wrote") if path else None
    if not isinstance(document, dict):
        raise UsageError(f"{what}: {path or 'no file given'} does not hold a JSON object")
    return document


def step_outputs(values: Mapping[str, str]) -> None:
    """Append to the step's outputs; a value of several lines could name further outputs.

    Raises:
        UsageError: a value has a line break.
    """
    if wrong := [name for name, value in values.items() if "\n" in value or "\r" in value]:
        raise UsageError(f"the output {wrong[0]} contains a line break")
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())


# Events that only somebody with write access can cause. runner/hooks/job-started.sh holds the same list (a test
# compares them): there no pull request can change it.
TRUSTED_EVENTS = ("push", "release", "schedule", "workflow_dispatch")
_REFS = re.compile(r"[0-9a-f]{40}|v\d+\.\d+\.\d+(-rc\d+)?|nightly|viable/strict|main|release/\d+\.\d+")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_trust(environ: Mapping[str, str]) -> str:
    """Return the event's name, if this job may run on a Mac.

    Raises:
        HostError: an event that a stranger can cause, or a repository that this Mac does not serve.
    """
    event, repository = environ.get("GITHUB_EVENT_NAME", ""), environ.get("GITHUB_REPOSITORY", "")
    if event not in TRUSTED_EVENTS:
        raise HostError(
            f"the event {event or '(none)'!r} may not use a Mac",
            hint=f"only {', '.join(TRUSTED_EVENTS)} may: code from forks and pull requests must not run there",
        )
    served = environ.get("MPS_BUILD_REPOSITORIES", "").replace(",", " ").split()
    if not served or repository not in served:
        raise HostError(
            f"this Mac does not serve {repository or '(no repository)'}",
            hint="MPS_BUILD_REPOSITORIES in the runner's .env names those that it serves: runner/setup.sh",
        )
    return event


def check_ref(ref: str) -> str:
    """Return a ref that may be built: a commit, a release's tag, or a branch that upstream protects.

    Raises:
        UsageError: any other, a fork's pull request for instance (refs/pull/1/head).
    """
    if not _REFS.fullmatch(ref):
        raise UsageError(
            f"the ref {ref!r} is not on the list of what may be built here",
            hint="a 40-hex commit, v2.15.0, v2.16.0-rc1, nightly, viable/strict, main, or release/2.16",
        )
    return ref


def check_labels(text: str, *, bare_metal: bool = False) -> list[str]:
    """Return the labels of a runner from their JSON.

    Raises:
        UsageError: no JSON list of labels, or not of a self-hosted Mac.
    """
    try:
        labels = parse_json(text)
    except ValueError as error:
        raise UsageError(f"runner labels {text!r} are not JSON: {error}", hint='["self-hosted","macOS"]') from error
    if not isinstance(labels, list) or not all(isinstance(each, str) and _LABEL.fullmatch(each) for each in labels):
        raise UsageError(f"runner labels {text!r} are not JSON list of words", hint='["self-hosted","macOS"]')
    if "self-hosted" not in labels:
        what = (
            "a hosted Mac is a virtual machine: no verdict on MPS can be had from it"
            if bare_metal
            else "it is open to all"
        )
        raise UsageError(f"runner labels {text} lack self-hosted: {what}", hint='["self-hosted","macOS","ARM64"]')
    return labels


LABEL = "mps-regression"
_MARKER = re.compile(r"<!-- mps-build regression (\S+) -->")
_MOST = 10  # issues a night: more failures have one cause, and get one issue


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; `key` is the same every night (recipe, where, what)."""

    key: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a night showed: what is wrong, and which keys were looked at and are well."""

    wrong: tuple[Finding, ...]
    well: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is done to the issues; `number` is None for a new one."""

    kind: Literal["open", "comment", "close"]
    number: int | None
    title: str
    body: str


def look_at_record(record: Mapping[str, Any], *, recipe: str, place: str, run: str) -> Seen:
    """Return what one record of verify_mps shows.

    A run that ended without a verdict (a virtual GPU, an interruption) shows that, and calls nothing well.
    """
    torch = record.get("torch") or {}
    commit = str(torch.get("commit") or "an unknown commit")
    version = in_markdown(str(torch.get("version") or "unknown"))
    where = f"torch {version} at {in_markdown(commit)}, {in_markdown(place)}\n\nRun: {run}"
    verdict_key = _key(recipe, place, "verdict")
    if record.get("partial") or record.get("verdict") not in ("verified", "regressed", "known_issues_only"):
        cause = record.get("cause") or record.get("verdict")
        said = _fenced(record.get("message") or record.get("hint") or "")
        text = f"No verdict: {in_markdown(str(cause))}.\n\n{said}\n\n{where}"
        return Seen(
            wrong=(Finding(key=verdict_key, title=f"{recipe}: no verdict on {place}", text=text),), well=frozenset()
        )
    wrong, well = [], {verdict_key}
    for case in record.get("cases", []):
        key = _key(recipe, place, str(case["id"]))
        if case.get("explained"):  # as 0.2 wrote it, of a simulated device: nothing new, and not well
            continue
        if case["outcome"] in FAILED:
            said = _fenced(case.get("reason") or "")
            text = f"{in_code(str(case['id']))}: {in_markdown(str(case['outcome']))}\n\n{said}\n\n{where}"
            wrong.append(Finding(key=key, title=f"{recipe}: {_plain(case['id'])} fails on {place}", text=text))
        elif case["outcome"] in ("passed", "known", "unexpected_pass"):
            well.add(key)
    many = _key(recipe, place, "many")
    if len(wrong) > _MOST:
        names = "\n".join(f"- {in_markdown(finding.title)}" for finding in wrong[:50])
        title = f"{recipe}: {len(wrong)} cases fail on {place}"
        return Seen(wrong=(Finding(key=many, title=title, text=f"{names}\n\n{where}"),), well=frozenset(well))
    return Seen(wrong=tuple(wrong), well=frozenset(well | {many}))


def look_at_build(document: Mapping[str, Any], *, recipe: str, run: str) -> Seen:
    """Return what one `build_wheel --json` shows."""
    key = _key(recipe, "build", "build")
    if not document.get("exit_code"):
        return Seen(wrong=(), well=frozenset({key}))
    triage = document.get("triage") or {}
    cause = in_markdown(str(triage.get("cause") or "none"))
    text = f"{_fenced(document.get('error') or '')}\n\nKnown cause: {cause}\n\nRun: {run}"
    title = f"{recipe}: the build fails ({_plain(document.get('cause'))})"
    return Seen(wrong=(Finding(key=key, title=title, text=text),), well=frozenset())


def decide(seen: Iterable[Seen], open_issues: Sequence[Mapping[str, Any]]) -> list[Action]:
    """Return what to do; an issue whose key nobody looked at this time is left alone."""
    looks = list(seen)
    wrong = {finding.key: finding for each in looks for finding in each.wrong}
    well = frozenset(key for each in looks for key in each.well) - wrong.keys()
    numbers: dict[str, int] = {}
    for issue in sorted(open_issues, key=lambda issue: int(issue["number"])):
        # The last one is ours: what stands before it may quote anything.
        if keys := _MARKER.findall(str(issue.get("body") or "")):
            numbers.setdefault(keys[-1], int(issue["number"]))
    actions = []
    for key, finding in wrong.items():
        number = numbers.get(key)
        body = finding.text if number else f"{finding.text}\n\n<!-- mps-build regression {key} -->"
        kind: Literal["open", "comment"] = "comment" if number else "open"
        actions.append(Action(kind=kind, number=number, title=finding.title, body=body))
    for key, number in numbers.items():
        if key in well:
            actions.append(
                Action(kind="close", number=number, title=key, body="Fixed: the case passed in the latest run.")
            )
    return actions


def _key(recipe: str, place: str, what: str) -> str:
    return "/".join(re.sub(r"[^\w.=-]+|--+", "_", part) for part in (recipe, place, what))


def _fenced(text: str) -> str:
    """Return a text that was made elsewhere as a block that cannot end early, nor call anybody."""
    return code_block(str(text)[:4000], "text")


def _plain(text: object) -> str:
    return re.sub(r"[`@#<>\s]+", " ", plain(str(text)))[:120]
