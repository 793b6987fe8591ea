"""The repository as data: its modules as syntax trees, and every name that a workflow uses resolved."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mps_build.commands.shared.catalogue import COMMANDS, MAINTAINERS
from mps_build.commands.shared.parser import module_of
from mps_build.common import strict_yaml

PACKAGE = Path(__file__).parents[3] / "scripts" / "mps_build"


@cache
def source_trees() -> dict[Path, ast.Module]:
    """Return each module's tree by its path."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node, in no order: `ast.walk` takes three times as long."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                left.append(value)
            elif isinstance(value, list):
                left += [each for each in value if isinstance(each, ast.AST)]


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement, in no order, and nothing of what stands within one."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, ())
            if isinstance(inner, list):  # of a lambda it is an expression
                yield from inner
                left += inner


# What the sessions write to the step's outputs, and the keys of the matrices they make (tests hold both).
CI_OUTPUTS: Mapping[str, frozenset[str]] = {
    "inputs": frozenset({"artifact", "developer-dir", "matrix"}),
    "outputs": frozenset({"wheel", "wheels", "sha256", "version", "receipt"}),
    "changed": frozenset({"matrix", "any"}),
    "upstream": frozenset({"commit", "changed", "done"}),
}
MATRIX_KEYS: Mapping[str, frozenset[str]] = {
    "ci inputs": frozenset({"runner", "place"}),
    "ci changed": frozenset({"recipe"}),
    "matrix": frozenset({"recipe", "python", "xcode", "macos", "deployment_target"}),
}
ACTION_OUTPUTS: Mapping[str, frozenset[str]] = {
    "actions/attest-build-provenance": frozenset({"bundle-path", "attestation-id", "attestation-url"})
}
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_NAME = r"([A-Za-z_][\w-]*)"
# `nox -s dev -- NAME` runs NAME; the words of a session and its arguments may stand in a variable.
_SESSION = re.compile(
    r"\bnox(?:\)\")? -s "
    r"(\"\$\{words\[@\]\}\"|(?P<dev>dev -- (?=\w))?(?P<name>[\w-]+))(?P<rest>[^\n]*)"
)
_WORDS = re.compile(r"read -ra words <<< \"\$(\w+)\"")


def faults(root: Path) -> list[str]:
    """Return a line for each name in .github/ that leads nowhere."""
    workflows = {path.name: _load(path) for path in sorted((root / ".github" / "workflows").glob("*.yml"))}
    sessions = nox_sessions(root / "noxfile.py")
    found = []
    for name, workflow in workflows.items():
        found += [f"{name}: {fault}" for fault in _Workflow(root, workflow, workflows, sessions).faults()]
    for path in sorted((root / ".github" / "actions").glob("*/action.yml")):
        action = _load(path)
        for step in action["runs"]["steps"]:
            found += [f"{path.parent.name}: {fault}" for fault in _session_faults(step, {}, sessions)]
    return found


def nox_sessions(noxfile: Path) -> frozenset[str]:
    """Return what may stand behind `nox -s`: the commands, the functions that are made sessions, and what these name.

    The latter with their own words: `dev -- lock`, `tests -- --tier slow`.
    """
    tree = ast.parse(noxfile.read_text(encoding="utf-8"))
    own = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(each) for each in node.decorator_list)
    }
    named: dict[str, list[str]] = {"_TIERS": [], "_DEV": []}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and isinstance(node.value, ast.Dict):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            keys = [each.value for each in node.value.keys if isinstance(each, ast.Constant)]
            named.setdefault(target, []).extend(map(str, keys))
    tiers = {f"tests -- --tier {name}" for name in named["_TIERS"]}
    dev = {f"dev -- {name}" for name in (*named["_DEV"], *MAINTAINERS)}
    return frozenset(own | tiers | dev | (COMMANDS.keys() - MAINTAINERS))


def _load(path: Path) -> dict[str, Any]:
    document = strict_yaml.unchecked(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    return {("on" if key is True else key): value for key, value in document.items()}


class _Workflow:
    def __init__(
        self, root: Path, workflow: dict[str, Any], workflows: Mapping[str, Any], sessions: frozenset[str]
    ) -> None:
        self.root, self.workflow, self.workflows, self.sessions = root, workflow, workflows, sessions
        self.jobs: dict[str, dict[str, Any]] = workflow["jobs"]

    def faults(self) -> list[str]:
        found = []
        for name, output in (_call(self.workflow).get("outputs") or {}).items():
            for job, key in re.findall(rf"jobs\.{_NAME}\.outputs\.{_NAME}", output["value"]):
                if key not in self._outputs_of(job):
                    found.append(f"output {name}: jobs.{job}.outputs.{key} is not there")
        for text in _strings({key: self.workflow.get(key) for key in ("concurrency", "run-name", "env")}):
            found += self._input_faults(text)
        for name, job in self.jobs.items():
            found += [f"{name}: {fault}" for fault in self._job_faults(job)]
        return found

    def _job_faults(self, job: dict[str, Any]) -> list[str]:
        needs = _list(job.get("needs"))
        found = [f"needs {each}, which is not a job" for each in needs if each not in self.jobs]
        for text in _strings(job):
            found += self._input_faults(text)
            for needed, rest in re.findall(rf"(?<![\w.-])needs\.{_NAME}\.([\w.-]+)", text):
                if needed not in needs:
                    found.append(f"needs.{needed} is used, and not in needs")
                elif rest != "result" and rest.removeprefix("outputs.") not in self._outputs_of(needed):
                    found.append(f"needs.{needed}.{rest} is not there")
            for key in re.findall(rf"(?<![\w.-])matrix\.{_NAME}", text):
                if key not in self._matrix_keys(job):
                    found.append(f"matrix.{key} is not there")
        if "uses" in job:
            found += self._uses_faults(job["uses"], job.get("with") or {})
        earlier: dict[str, frozenset[str]] = {}
        for step in job.get("steps", []):
            found += self._step_faults(step, earlier, job)
            if "id" in step:
                earlier[step["id"]] = step_outputs(step)
        for text in _strings(job.get("outputs") or {}):
            found += _step_reference_faults(text, earlier)
        return found

    def _step_faults(
        self, step: dict[str, Any], earlier: Mapping[str, frozenset[str]], job: dict[str, Any]
    ) -> list[str]:
        found = [fault for text in _strings(step) for fault in _step_reference_faults(text, earlier)]
        if "uses" in step:
            found += self._uses_faults(step["uses"], step.get("with") or {})
        return found + _session_faults(step, (job.get("strategy") or {}).get("matrix") or {}, self.sessions)

    def _input_faults(self, text: str) -> list[str]:
        declared = [trigger for trigger in (_call(self.workflow), _dispatch(self.workflow)) if trigger is not None]
        inputs = [trigger.get("inputs") or {} for trigger in declared if trigger]
        return [
            f"inputs.{key} is not declared"
            for key in re.findall(rf"(?<![\w.-])inputs\.{_NAME}", text)
            if not inputs or not all(key in each for each in inputs)
        ]

    def _outputs_of(self, name: str) -> frozenset[str]:
        job = self.jobs.get(name, {})
        if "uses" in job:
            called = self.workflows.get(Path(job["uses"]).name, {})
            return frozenset(_call(called).get("outputs") or {})
        return frozenset(job.get("outputs") or {})

    def _uses_faults(self, uses: str, given: Mapping[str, Any]) -> list[str]:
        # `$/` is the repository that the workflow itself lies in, `./` what a job has checked out.
        if not uses.startswith(("./", "$/")):
            return []
        uses = uses.removeprefix("$/")
        if uses.endswith((".yml", ".yaml")):
            called = self.workflows.get(Path(uses).name)
            if called is None or not (self.root / uses).is_file():
                return [f"uses {uses}, which is not there"]
            inputs = _call(called).get("inputs") or {}
        else:
            path = self.root / uses / "action.yml"
            if not path.is_file():
                return [f"uses {uses}, which is not there"]
            inputs = _load(path).get("inputs") or {}
        found = [f"{uses} takes no input {key}" for key in given if key not in inputs]
        return found + [
            f"{uses} needs the input {key}"
            for key, declared in inputs.items()
            if declared.get("required") and "default" not in declared and key not in given
        ]

    def _matrix_keys(self, job: dict[str, Any]) -> frozenset[str]:
        matrix = (job.get("strategy") or {}).get("matrix") or {}
        if isinstance(matrix, dict):
            include = matrix.get("include") or []
            keys = {key for row in include if isinstance(row, dict) for key in row}
            return frozenset(keys | (set(matrix) - {"include", "exclude"}))
        made = re.search(rf"fromJSON\(needs\.{_NAME}\.outputs\.{_NAME}\)", matrix)
        if not made:
            return frozenset()
        step = re.search(rf"steps\.{_NAME}\.", (self.jobs.get(made[1], {}).get("outputs") or {}).get(made[2], ""))
        for each in self.jobs.get(made[1], {}).get("steps", []):
            if step and each.get("id") == step[1]:
                for session, what in _sessions_of(each):
                    return MATRIX_KEYS.get(f"{session} {what}".strip() if session == "ci" else session, frozenset())
        return frozenset()


def step_outputs(step: Mapping[str, Any]) -> frozenset[str]:
    """Return the outputs that a step writes."""
    if "uses" in step:
        return ACTION_OUTPUTS.get(step["uses"].split("@")[0], frozenset())
    names = set(re.findall(r"echo \"([\w-]+)(?:=|<<)[^\n]*GITHUB_OUTPUT", step.get("run", "")))
    for session, what in _sessions_of(step):
        names |= CI_OUTPUTS.get(what, frozenset()) if session == "ci" else set()
    return frozenset(names)


def _sessions_of(step: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (session, first argument) of each call of nox in a step."""
    found = []
    for match in _SESSION.finditer(str(step.get("run", ""))):
        first = re.match(r"\s+(?:--\s+)?(\S+)", match["rest"])
        found.append((match["name"] or "", first[1] if first else ""))
    return found


def _session_faults(step: Mapping[str, Any], matrix: object, sessions: frozenset[str]) -> list[str]:
    found = []
    run = re.sub(r"\\\n", " ", str(step.get("run", "")))
    for match in _SESSION.finditer(run):
        name = match["name"]
        if name is None:
            read = _WORDS.search(run)
            stated = str((step.get("env") or {}).get(read[1], "")) if read else ""
            key = re.fullmatch(rf"\$\{{\{{ matrix\.{_NAME} \}}\}}", stated)
            names = list((matrix if isinstance(matrix, dict) else {}).get(key[1], [])) if key else []
            found += [] if names else [f"{match[0]}: cannot tell which session that is"]
        else:
            names = [f"dev -- {name}" if match["dev"] else name]
        found += [f"nox has no session {each}" for each in names if each not in sessions]
        if name in COMMANDS:
            found += _argument_faults(name, match["rest"], run)
    return found


def _argument_faults(command: str, rest: str, run: str) -> list[str]:
    """Hold the options of a call, and of the array it passes, against the command's own parser."""
    module = module_of(command)
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings} | {"--json"}
    passed = rest + (run if '"${arguments[@]}"' in rest else "")
    wrong = [
        f"{command} has no option {each}"
        for each in re.findall(r"(?<![\w-])--[a-z][\w-]*", passed)
        if each not in known
    ]
    what = re.match(r"\s+(?:--\s+)?([\w-]+)", rest)
    if command == "ci" and (not what or what[1] not in (parser._actions[1].choices or ())):
        wrong.append(f"ci knows no {what[1] if what else 'nothing'}")
    return wrong


def _step_reference_faults(text: str, earlier: Mapping[str, frozenset[str]]) -> list[str]:
    return [
        f"steps.{step}.outputs.{key} is not there"
        for step, key in re.findall(rf"\bsteps\.{_NAME}\.outputs\.{_NAME}", text)
        if key not in earlier.get(step, frozenset())
    ]


def _call(workflow: Mapping[str, Any]) -> dict[str, Any]:
    return _trigger(workflow, "workflow_call")


def _dispatch(workflow: Mapping[str, Any]) -> dict[str, Any]:
    return _trigger(workflow, "workflow_dispatch")


def _trigger(workflow: Mapping[str, Any], name: str) -> dict[str, Any]:
    triggers = workflow.get("on") or {}
    return (triggers.get(name) or {}) if isinstance(triggers, dict) else {}


def _list(value: object) -> list[str]:
    return [] if value is None else [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _strings(value: object, *, key: str = "") -> Iterable[str]:
    """Return the expressions in a value: inside ${{ }}, and the whole of an `if`."""
    if isinstance(value, str):
        if key == "if":
            yield value
        else:
            yield from _EXPRESSION.findall(value)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _strings(each, key=str(name))
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
