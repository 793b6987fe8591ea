"""A wheel's operators by its headers: `ATen/ops/*_ops.h` names them, `*_<key>_dispatch.h` declares each key's kernels.

`{file name: text} -> {dispatch key: operators}`. torchgen writes the declarations of a key from what it registers for
it, so a header is as good as the source was; what is registered by hand has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

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
    for at, letter in enumerate(text):
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]
