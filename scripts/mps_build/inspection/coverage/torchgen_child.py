"""Run by another interpreter, with a folder that holds a `torchgen` and its YAML: prints what torchgen would register.

Not imported by us: it imports the torchgen that it is given (1.12 to the newest), so the rules of structured
kernels, generated variants and composites are those of that very tree. Wants pyyaml and typing-extensions.

    python torchgen_child.py ROOT NATIVE_FUNCTIONS_YAML TAGS_YAML
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import sys
from typing import Any

# Keys that decide what a dense MPS tensor meets, and those that a person asks about beside them.
KEYS = (
    "MPS",
    "CPU",
    "CUDA",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "SparseMPS",
    "SparseCsrMPS",
    "NestedTensorMPS",
    "QuantizedMPS",
)
_IMPL = re.compile(r'm\.impl\("([^"]+)"')


def main(root: str, native_functions: str, tags: str) -> None:
    """Print, as JSON, what a tree's own torchgen says of its operators; runs in a process of its own."""
    sys.path.insert(0, root)
    gen = importlib.import_module("torchgen.gen")
    keys = importlib.import_module("torchgen.model").DispatchKey
    parsed = gen.parse_native_yaml(native_functions, tags)
    groups = gen.get_grouped_native_functions(parsed.native_functions)
    registered = {}
    for name in KEYS:
        if not hasattr(keys, name):
            continue
        index = parsed.backend_indices[keys[name]]
        if index.dispatch_key is not keys[name]:  # torchgen's "nothing of that key"
            continue
        register = _register(index)
        found = [_IMPL.findall(text) for group in groups if _namespace(group) == "aten" for text in register(group)]
        registered[name] = sorted({name for names in found for name in names})
    own = parsed.backend_indices[keys["MPS"]].index if hasattr(keys, "MPS") else {}
    others: dict[str, list[str]] = {}
    for key, index in parsed.backend_indices.items():
        for operator in index.index:
            others.setdefault(str(operator), []).append(key.name)
    operators = sorted(str(each.func.name) for each in parsed.native_functions if _namespace(each) == "aten")
    known = {name for names in registered.values() for name in names}
    document = {
        "registered": registered,
        "own": sorted(str(name) for name in own),
        "through": _through(group for group in groups if hasattr(group, "functional")),
        "elsewhere": {name: sorted(others.get(name, ())) for name in operators if name not in known},
    }
    json.dump(document, sys.stdout)


def _register(index: Any) -> Any:
    """Return torchgen's own writer of `m.impl(...)` lines; its parameters differ from release to release."""
    dest = importlib.import_module("torchgen.dest")
    selector = importlib.import_module("torchgen.selective_build.selector").SelectiveBuilder
    target = importlib.import_module("torchgen.utils").Target
    wanted = {
        "backend_index": index,
        "target": target.REGISTRATION,
        "selector": selector.get_nop_selector(),
        "rocm": False,
        "symint": True,
        "cpp_namespace": "at::native",
        "class_method_name": None,
        "skip_dispatcher_op_registration": False,
    }
    fields = {each.name for each in dataclasses.fields(dest.RegisterDispatchKey)}
    return dest.RegisterDispatchKey(**{name: value for name, value in wanted.items() if name in fields})


def _namespace(group: Any) -> str:
    return str(getattr(getattr(group, "functional", group), "namespace", "aten"))


def _through(groups: Any) -> dict[str, str]:
    """Return, of each composite that torchgen writes itself, the one operator that its body calls.

    Structured functions without a kernel of a backend call their out= form; a generated out= form calls the
    functional, and a generated functional calls the in-place, mutable or out= form
    (torchgen.native_function_generation).
    """
    found: dict[str, str] = {}
    for group in groups:
        forms: dict[str, Any] = {
            kind: getattr(group, kind, None) for kind in ("functional", "inplace", "mutable", "out")
        }
        if group.structured:
            own = [forms["functional"], forms["inplace"]]
            found |= {str(form.func.name): str(group.out.func.name) for form in own if form is not None}
            continue
        out = forms["out"]
        if out is not None and _is_generated(out):
            found[str(out.func.name)] = str(group.functional.func.name)
        if _is_generated(forms["functional"]):
            targets = [forms[kind] for kind in ("inplace", "mutable", "out") if forms[kind] is not None]
            found |= {str(group.functional.func.name): str(target.func.name) for target in targets[:1]}
    return found


def _is_generated(function: Any) -> bool:
    return function is not None and "generated" in getattr(function, "tags", ())


if __name__ == "__main__":
    main(*sys.argv[1:])
