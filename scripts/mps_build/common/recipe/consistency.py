"""What the fields of a recipe must say of each other; checked on the raw data, so that every fault shows at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packaging.version import Version

from ..strict_yaml import Fault
from .defaults import SOURCES


def cross_faults(data: Any) -> Iterator[Fault]:
    """Yield what no single field can know; a field of the wrong kind is the model's to report, and is passed over."""
    if not isinstance(data, Mapping):
        return
    yield from _pin_faults(data)
    yield from _python_faults(data)
    yield from _target_faults(data)
    yield from _metal_faults(data)
    yield from _openmp_faults(data)
    yield from _environment_faults(data)
    yield from _repeated(data, "patches")
    yield from _repeated(data, "rehearsal_patches")


def _pin_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    evidence, embedded = data.get("evidence"), _at(data, "source", "kind") == "embedded"
    if evidence in ("tag", "wheel") and data.get("commit") is None and "commit" in data:
        yield ("commit",), f"must be given where evidence is {evidence!r}"
    if evidence in ("tag", "wheel") and data.get("tag") is None and "tag" in data:
        yield ("tag",), f"must be given where evidence is {evidence!r}"
    if evidence == "caller" and data.get("commit") is not None:
        yield ("commit",), "must be null where the caller gives it (evidence: caller)"
    if evidence == "wheel" and not data.get("unproved"):
        yield ("evidence",), "is `wheel`: say in `unproved` that nobody evidences the tag's commit"
    if _at(data, "source", "kind") in (None, "git") and isinstance(data.get("source"), Mapping):
        if not data["source"].get("repository"):
            yield ("source", "repository"), "is missing: a git source needs one"
    elif embedded and data["source"].get("repository"):
        yield ("source", "repository"), "does not go with an embedded source"


def _python_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    pythons, default = data.get("pythons"), data.get("default_python")
    if isinstance(pythons, Sequence) and isinstance(default, str) and default not in pythons:
        yield ("default_python",), f"{default!r} is not among pythons"
    yield from _repeated(data, "pythons")


def _target_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    target = _version(data.get("deployment_target"))
    if target is None:
        return
    text = data["deployment_target"]
    if target.major < 11:
        yield ("deployment_target",), f"{text!r} is below 11.0, the first macOS on Apple silicon"
    if len(target.release) != 2 or target.minor:
        yield ("deployment_target",), f"must be X.0, not {text!r}: pip matches no other macOS arm64 tag"
    for what, path in (
        ("libomp's minimum macOS", ("libomp", "minos")),
        ("the macOS that metal_basic is compiled for", ("wheel", "metal_sections", "metal_basic")),
    ):
        least = _version(_at(data, *path))
        if least is not None and target < least:
            yield ("deployment_target",), f"{text!r} is below {what}, {least}: the wheel's tag would promise too much"


def _metal_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    sections = _at(data, "wheel", "metal_sections")
    sections = sections if isinstance(sections, Mapping) else {}
    aot, metal_4 = _at(data, "gate", "can_compile_metal"), _at(data, "gate", "can_compile_metal_40")
    if aot is True and _at(data, "host", "metal_compiler") == "unused":
        yield ("host", "metal_compiler"), "must be `required` where gate.can_compile_metal is true"
    if "metal_basic" in sections and aot is not True:
        yield ("gate", "can_compile_metal"), "must be true where the wheel must hold metal_basic"
    if "metal_40" in sections and metal_4 is not True:
        yield ("gate", "can_compile_metal_40"), "must be true where the wheel must hold metal_40"
    if metal_4 is True and aot is not True:
        yield ("gate", "can_compile_metal_40"), "cannot be true without can_compile_metal"


def _openmp_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    gate, wheel = _at(data, "gate", "openmp"), _at(data, "wheel", "openmp")
    if isinstance(gate, bool) and isinstance(wheel, bool) and gate != wheel:
        yield ("wheel", "openmp"), f"is {wheel}, but gate.openmp is {gate}"
    if wheel is True and data.get("libomp") is None:
        yield ("wheel", "openmp"), "is true, but no libomp is declared: the host's own is never taken"


def _environment_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    variables = data.get("environment")
    if not isinstance(variables, Sequence) or isinstance(variables, str):
        return
    target, seen = data.get("deployment_target"), set()
    sources = {"MACOSX_DEPLOYMENT_TARGET": "deployment_target", "_PYTHON_HOST_PLATFORM": "host_platform"}
    expected = {name: SOURCES[source](data) for name, source in sources.items()}
    version = data.get("version")
    for index, variable in enumerate(variables):
        if not isinstance(variable, Mapping):
            continue
        name, value = variable.get("name"), variable.get("value")
        if name in seen:
            yield ("environment", index, "name"), f"{name} is set two times"
        seen.add(name)
        if isinstance(target, str) and isinstance(value, str) and expected.get(str(name), value) != value:
            yield ("environment", index, "value"), f"{name} must be {expected[str(name)]!r}, by deployment_target"
        if name == "PYTORCH_BUILD_VERSION" and isinstance(version, str) and value != version:
            yield ("environment", index, "value"), f"{name} must be {version!r}, the recipe's version"
        if isinstance(value, str) and any(character in value for character in ";\n\r\0"):
            yield ("environment", index, "value"), f"{name} holds `;` or a line end: CMake would split it (B44)"


def _repeated(data: Mapping[str, Any], key: str) -> Iterator[Fault]:
    values = data.get(key)
    if isinstance(values, Sequence) and not isinstance(values, str):
        for index, value in enumerate(values):
            if value in values[:index]:
                yield (key, index), f"{value!r} is given two times"


def _at(data: Any, *path: str) -> Any:
    for part in path:
        if not isinstance(data, Mapping):
            return None
        data = data.get(part)
    return data


def _version(value: Any) -> Version | None:
    try:
        return Version(value) if isinstance(value, str) else None
    except ValueError:
        return None
