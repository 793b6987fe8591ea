"""A wheel's operators: `(path, what its library registers) -> Facts`, by three witnesses that are compared.

Its headers say what each dispatch key has (`ATen/ops/*_ops.h` names the operators, `*_<key>_dispatch.h` declares a
key's kernels; what is registered by hand has none). The torchgen and the YAML that it carries say the same once more,
and which operator a generated composite calls. Its library's machine code says what is really registered, by hand too.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...common.errors import MpsNotBuilt, SourceError, UsageError, reason_of
from ...common.reporting import Reporter
from ...common.wheels.wheel_file import Members, UnsoundWheel, open_wheel
from ..audit.symbols import read_library
from ..limits import Malformed
from .model import ByHand, Facts
from .tree import ask_torchgen

FOLDER = "torch/include/ATen/ops/"
# The part of a file's name, and the dispatch key that it means.
KEYS = {
    "mps": "MPS",
    "cpu": "CPU",
    "cuda": "CUDA",
    "compositeimplicitautograd": "CompositeImplicitAutograd",
    "compositeexplicitautograd": "CompositeExplicitAutograd",
    "compositeexplicitautogradnonfunctional": "CompositeExplicitAutogradNonFunctional",
}
_FILE = re.compile(rf"^(?P<name>.+)_(?P<key>{'|'.join(KEYS)})_dispatch\.h$")
# Both spellings of a constant: `name = "aten::add"` and, up to 2.1, a macro's `(name, "aten::add")`.
_CONSTANT = r'\b{}\b\s*[=,]\s*"([^"]*)"'
_STRUCT = re.compile(r"\bstruct\s+(?:TORCH_API\s+)?\w+\s*\{(.*?)\n\};", re.DOTALL)
_CALL = re.compile(r"static\s+(?P<result>[^;=]+?)\s*\bcall\((?P<arguments>[^;]*)\);")
_DECLARATION = re.compile(r"^TORCH_\w*API\s+(?P<result>.+?)\s*\b(?P<name>\w+)\((?P<arguments>.*)\);$", re.MULTILINE)


def is_wanted(file: str) -> bool:
    """Tell whether a file of ATen/ops is one of the two kinds that are read."""
    return file.endswith("_ops.h") or bool(_FILE.match(file))


def read_headers(files: Mapping[str, str]) -> tuple[dict[str, frozenset[str]], frozenset[str], tuple[str, ...]]:
    """Return operators by dispatch key, every operator, and declarations that fit none."""
    known: dict[tuple[str, str], str] = {}
    for file, text in files.items():
        if file.endswith("_ops.h"):
            known |= dict(_operators(text))
    found: dict[str, set[str]] = {}
    strange: list[str] = []
    for file, text in sorted(files.items()):
        match = _FILE.match(file)
        if match is None:
            continue
        key = KEYS[match["key"]]
        declared = [_signature(each) for each in _DECLARATION.finditer(text)]
        # 1.12 writes `foo_functional` for an overload of foo; later it is a name of its own.
        short = [(name.removesuffix("_functional"), arguments) for name, arguments in declared]
        operators = {known.get(one) or known.get(other) or "" for one, other in zip(declared, short, strict=True)}
        operators.discard("")
        found.setdefault(key, set()).update(operators)
        if not operators:
            strange.append(f"{file}: none of its {len(declared)} declarations is the call of an operator")
    return {key: frozenset(names) for key, names in found.items()}, frozenset(known.values()), tuple(strange)


def _operators(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((C++ name, arguments), operator) of each operator that an _ops.h declares."""
    for struct in _STRUCT.finditer(text):
        constants = [re.search(_CONSTANT.format(each), struct[1]) for each in ("name", "overload_name")]
        call = _CALL.search(struct[1])
        if call is None or constants[0] is None or constants[1] is None or not constants[0][1].startswith("aten::"):
            continue
        name, overload = constants[0][1].removeprefix("aten::"), constants[1][1]
        yield (name, _plain(_split(call["arguments"]))), f"{name}.{overload}" if overload else name


def _signature(declaration: re.Match[str]) -> tuple[str, str]:
    """Return the C++ name without what tells variants apart, and the arguments without their defaults.

    Of each kernel several C++ spellings are declared (`add_out` and `add_outf`, with and without SymInt, with
    TensorOptions or its parts); one of them has the operator's own arguments, and only that one is matched.
    """
    name = re.sub(r"(?:_symint)?_outf$|_symint$", "", declaration["name"])
    return name, _plain(re.sub(r"\s*=.*$", "", each) for each in _split(declaration["arguments"]))


def _plain(arguments: Iterable[str]) -> str:
    return ", ".join(" ".join(each.split()) for each in arguments)


def _split(text: str) -> list[str]:
    """Return arguments, parted at the commas that stand in no bracket."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<({") - (character in ">)}")
        if character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


LIBRARY = "torch/lib/libtorch_cpu.dylib"
_YAML = "torchgen/packaged/ATen/native/"
_MOST_NAMES = 8
# Of all headers together, and of all of torchgen: 30 MB and 3 MB in 2.15.0.
_MOST_LIBRARY_BYTES = 1 << 30  # 200 MB in 2.15.0
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the library's machine code registers: dispatch key to (operator, falls back); `fault` if it was not read."""

    registered: Mapping[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fault: str = ""


def read_compiled(path: Path, reporter: Reporter) -> Compiled:
    """Return what a wheel's library registers; a library that cannot be read is reported, not fatal."""
    reporter.started("Read the library's registrations", unit="bytes")
    try:
        with open_wheel(path) as members:
            library = read_library(members.read(LIBRARY, most_bytes=_MOST_LIBRARY_BYTES))
    except (Malformed, UnsoundWheel, OSError) as error:
        return Compiled(fault=str(error).strip("'\""))
    finally:
        reporter.done()
    registered = {
        key: tuple((each.operator, each.falls_back) for function in functions for each in function)
        for key, functions in library.registered.items()
    }
    fault = "" if registered else "it holds no registering function of arm64 code"
    return Compiled(registered=registered, kernels=library.kernels, fault=fault)


def facts_of_wheel(path: Path, compiled: Compiled) -> Facts:
    """Return what the wheel's headers, torchgen and library say of its operators.

    Raises:
        UsageError: no wheel of torch.
        MpsNotBuilt: it has no operator for MPS.
    """
    try:
        with open_wheel(path) as members:
            return _facts(path, members, compiled)
    except (OSError, UnsoundWheel) as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}", hint="give a whole .whl file") from error


def _facts(path: Path, members: Members, compiled: Compiled) -> Facts:
    names = members.names
    wanted = [name for name in names if name.startswith(FOLDER) and is_wanted(name[len(FOLDER) :])]
    if not wanted:
        raise UsageError(f"{path.name}: holds no {FOLDER}*_ops.h", hint="give a wheel of torch, 1.12 or newer")
    read = members.read_all(wanted, most_bytes=_MOST_BYTES)
    texts = {name[len(FOLDER) :]: data.decode("utf-8", "replace") for name, data in read}
    headers, operators, strange = read_headers(texts)
    if not headers.get("MPS"):
        hint = "MPS came with 1.12, and is in wheels for macOS only: torch==2.15.0 fetches one"
        raise MpsNotBuilt(f"{path.name}: has no *_mps_dispatch.h, so it was built without MPS", hint=hint)
    torchgen, fault = _torchgen(members)
    notes = [fault] if fault else []
    if compiled.fault:
        notes.append(f"{LIBRARY} was not read, so registrations by hand are not known: {compiled.fault}")
    checks = [*strange, *_checks("torchgen", torchgen.get("registered", {}), headers)]
    by_hand: tuple[ByHand, ...] = ()
    if compiled.registered:
        native = {key: [name for name, _ in compiled.registered.get(key, ())] for key in headers if key != "CUDA"}
        checks += _checks("the library", native, headers, may_have_more=True)
        by_hand = tuple(
            ByHand(operator=name, falls_back=falls_back, where=LIBRARY)
            for name, falls_back in compiled.registered.get("MPS", ())
            if name not in headers["MPS"]
        )
    known = frozenset().union(*headers.values())
    return Facts(
        label=path.name,
        kind="wheel",
        version=path.name.split("-")[1] if "-" in path.name else "of unknown version",
        registered=headers,
        own=frozenset(torchgen.get("own", ())),
        through=torchgen.get("through", {}),
        elsewhere={name: tuple(torchgen.get("elsewhere", {}).get(name, ())) for name in sorted(operators - known)},
        by_hand=by_hand,
        kernels=compiled.kernels,
        checks=tuple(checks),
        notes=tuple(notes),
    )


def _torchgen(members: Members) -> tuple[dict[str, Any], str]:
    """Return what the wheel's own torchgen says, or why it says nothing."""
    ours = [name for name in members.names if name.startswith("torchgen/") and name.endswith((".py", ".yaml"))]
    if _YAML + "native_functions.yaml" not in ours:
        return {}, "it carries no torchgen: what its generated composites call is not known"
    with tempfile.TemporaryDirectory(prefix="mps-build-torchgen-") as folder:
        root = Path(folder).resolve()
        safe = (each for each in ours if ".." not in Path(each).parts)
        for name, data in members.read_all(safe, most_bytes=_MOST_BYTES):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        try:
            return ask_torchgen(root, root / _YAML / "native_functions.yaml", root / _YAML / "tags.yaml"), ""
        except (SourceError, MpsNotBuilt) as error:
            return {}, f"its torchgen could not be queried: {str(error).replace(folder, 'WHEEL')}"


def _checks(
    witness: str,
    says: Mapping[str, Iterable[str]],
    headers: Mapping[str, frozenset[str]],
    may_have_more: bool = False,
) -> list[str]:
    """Return where a witness contradicts the headers; what is registered by hand has none, and may be more."""
    found = []
    for key, names in headers.items():
        if key not in says:
            continue
        other = frozenset(says[key])
        missing, more = sorted(names - other), sorted(other - names)
        if missing:
            found.append(f"{key}: headers declare, {witness} does not register: {_some(missing)}")
        if more and not may_have_more:
            found.append(f"{key}: {witness} registers, headers do not declare: {_some(more)}")
    return found


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
