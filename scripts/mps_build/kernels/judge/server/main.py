"""Runs where torch is, without mps_build: answers questions over a Unix socket until the process that asks has ended.

    python main.py SOCKET REFERENCES.json

A question is a message of JSON and the buffers' bytes, its answer a message of JSON (execution/frames.py). A question
says which row of REFERENCES.json is meant, and gives its inputs in the order of the row's parameters. Rows are ours,
and compiled once, at the start; nothing of a question is ever evaluated, and what is answered is answered by a child
that has closed itself (execution/sandbox.py).
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import inspect
import json
import math
import os
import signal
import sys
import warnings
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)


KERNELS = os.path.dirname(os.path.dirname(FOLDER))


def _module(*path: str) -> Any:
    """Return a module of mps_build's that needs nothing of mps_build."""
    spec = importlib.util.spec_from_file_location("_".join(path), os.path.join(KERNELS, *path) + ".py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sandbox, frames, fork_server = (_module("execution", name) for name in ("sandbox", "frames", "fork_server"))

MEMORY_BYTES = 8 << 30
MOST_TEXT, MOST_BYTES = 1 << 20, 1 << 31
MOST_ELEMENTS = 1 << 27
_SECONDS = 120
_QUESTION = {"name", "got", "inputs", "ulp", "scale", "known", "sizes"}
_VIEW = {"buffer", "dtype", "shape", "strides", "offset"}


class BadQuestion(Exception):
    """It is not of the form that the one who asks writes."""


class Expression:
    """An expression of ours as a function of the names that it uses."""

    def __init__(self, text: Any, names: Any, known: Any) -> None:
        used = {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
        self.names = [name for name in names if name in used]
        self._function = eval(f"lambda {', '.join(self.names)}: ({text})", known)

    def __call__(self, **inputs: Any) -> Any:
        return self._function(**{name: inputs[name] for name in self.names if name in inputs})


class References:
    """The references of the kernels, compiled once, and the comparison of each answer."""

    def __init__(self, references: Any) -> None:
        import torch

        compare = importlib.import_module("compare")
        self.compare, self.take_view = compare.compare, compare.take_view
        self.dtypes = frozenset(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype))
        functions = _functions()
        known = {"torch": torch, "F": torch.nn.functional, "math": math, **functions}
        every = sorted({name for row in references.values() for name in row.get("parameters", ())})
        self.rows: dict[str, Any] = {}
        self.masks: dict[str, Any] = {}
        for name, row in references.items():
            if "where" in row:
                names = dict.fromkeys([*every, "eps", "tiny", "largest", "want", "got"])
                self.masks[name] = Expression(row["where"], list(names), known)
            else:
                self.rows[name] = _compiled(row, functions, known)

    def answer(self, question: Any, buffers: Any) -> Any:
        """Return the outcome of one question: the row that is meant, the inputs, and the bytes that a kernel wrote.

        Raises:
            BadQuestion: it has not the form of one.
        """
        if not isinstance(question, dict) or set(question) != _QUESTION:
            raise BadQuestion("it has other parts than a question has")
        row = self.rows.get(question["name"]) if isinstance(question["name"], str) else None
        if row is None:
            raise BadQuestion("there is no such reference")
        if row.get("complex") and str(question["got"].get("dtype", "")).startswith("complex"):
            row = row["complex"]
        given = question["inputs"]
        if not isinstance(given, list) or len(given) != len(row["parameters"]):
            raise BadQuestion(f"it has not the {len(row['parameters'])} inputs of its reference")
        inputs = {
            name: self._input(value, buffers)
            for name, value in zip(row["parameters"], given, strict=True)
            if value is not None
        }
        bounds = {
            "ulp": _number(question["ulp"]),
            "scale": _number(question["scale"]),
            "magnitude": row.get("magnitude"),
            "overflow": row.get("overflow"),
            "masks": {name: self.masks[f"known:{name}"] for name in _names(question["known"], self.masks)},
            "name": question["name"],
        }
        return self.compare(row["function"], inputs, self._view(question["got"], buffers), bounds, row)

    def _input(self, value: Any, buffers: Any) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            raise BadQuestion("an input is a view or a value")
        return self._view(value["view"], buffers) if "view" in value else _value(value.get("value"))

    def _view(self, view: Any, buffers: Any) -> Any:
        if not isinstance(view, dict) or set(view) != _VIEW or view["dtype"] not in self.dtypes:
            raise BadQuestion("a view has a buffer, a type, a shape, strides and an offset")
        shape, strides, offset, number = view["shape"], view["strides"], view["offset"], view["buffer"]
        if not (_are_whole(shape) and _are_whole(strides) and _are_whole([offset, number])):
            raise BadQuestion("a view's shape, strides and offset are whole numbers")
        if len(shape) != len(strides) or min([*shape, offset, number], default=0) < 0 or number >= len(buffers):
            raise BadQuestion("a view's shape and strides are of one length, and its buffer is there")
        if math.prod(shape) > MOST_ELEMENTS:
            raise BadQuestion(f"a view of {math.prod(shape)} elements")
        return self.take_view(view, buffers)


def _compiled(row: Any, functions: Any, known: Any) -> Any:
    """Return a row with functions in place of its texts; `complex`: the row for complex results."""
    parameters = row["parameters"]
    made = {**row, "parameters": parameters}
    for key in ("magnitude", "overflow"):
        if row.get(key):
            made[key] = Expression(row[key], parameters, known)
    if "function" in row:
        made["function"] = functions[row["function"]]
    elif "expr" in row:
        made["function"] = Expression(row["expr"], parameters, known)
    if "complex" in row:
        made["complex"] = _compiled(
            {**{key: row[key] for key in row if key != "complex"}, **row["complex"]}, functions, known
        )
    return made


def _functions() -> Any:
    """Return the references that are functions: the public ones of each family's references.py."""
    found: dict[str, Any] = {}
    for family in sorted(os.listdir(os.path.join(KERNELS, "families"))):
        if os.path.exists(os.path.join(KERNELS, "families", family, "references.py")):
            module = _module("families", family, "references")
            own = {name: each for name, each in vars(module).items() if inspect.isfunction(each) and name[0] != "_"}
            assert not own.keys() & found, f"{family}: a reference is there two times"
            found.update(own)
    for name, function in found.items():
        kinds = {each.kind for each in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{name}: a reference's parameters have names"
    return found


def _are_whole(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= 64
        and all(type(each) is int and abs(each) < 1 << 62 for each in values)
    )


def _number(value: Any) -> Any:
    if value is not None and type(value) not in (int, float):
        raise BadQuestion("a bound is a number")
    return value


def _value(value: Any) -> Any:
    """Return a number, a word, or a list of them."""
    if isinstance(value, list):
        return [_value(each) for each in value]
    if value is not None and type(value) not in (bool, int, float, str):
        raise BadQuestion("a value is a number, a word, or a list of them")
    return value


def _names(known: Any, masks: Any) -> Any:
    if not isinstance(known, list) or not all(isinstance(each, str) and f"known:{each}" in masks for each in known):
        raise BadQuestion("it names an issue that is not known")
    return known


def begin(judge: References, connection: Any) -> None:
    """Close this process, then answer the questions of one connection until it ends."""
    descriptor = connection.fileno()
    try:
        sandbox.enter(MEMORY_BYTES, keep=(descriptor,))
    except sandbox.SandboxUnavailable as error:
        frames.write_frame(descriptor, json.dumps({"unavailable": str(error)}).encode())
        return
    while True:
        try:
            text, data = frames.read_frame(descriptor, MOST_TEXT, MOST_BYTES)
        except EOFError:
            return
        # An operator that has no end takes this child with it, and nothing else.
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        answer = _answered(judge, text, data)
        signal.setitimer(signal.ITIMER_REAL, 0)
        frames.write_frame(descriptor, json.dumps(answer).encode())


def _answered(judge: References, text: Any, data: Any) -> Any:
    try:
        question = json.loads(text)
        return judge.answer(question, _buffers(question, data))
    except NotImplementedError as error:
        return {"error": str(error)[:2000], "is_missing": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def _buffers(question: Any, data: Any) -> Any:
    sizes = question.get("sizes") if isinstance(question, dict) else None
    if not isinstance(sizes, list) or not _are_sizes(sizes) or sum(sizes) != len(data):
        raise BadQuestion("the sizes of its buffers are not those of what came")
    buffers, at = [], 0
    for size in sizes:
        buffers.append(bytearray(data[at : at + size]) if size else bytearray(1))
        at += size
    return buffers


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, list) and len(sizes) <= 256 and all(type(each) is int and each >= 0 for each in sizes)


def _warm(torch: Any) -> None:
    """Have torch open now what it opens at first use: a closed process can open nothing."""
    square = torch.eye(3, dtype=torch.float64) * 2
    for each in (square, square.to(torch.float32), square.to(torch.complex64), square.to(torch.complex128)):
        _ = each @ each, torch.linalg.inv(each), torch.linalg.qr(each), torch.linalg.cholesky(each)
    _ = torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)), torch.fft.fft(torch.ones(4))
    image = torch.ones(1, 1, 3, 3, requires_grad=True)
    torch.autograd.grad(image * 2, image, torch.ones(1, 1, 3, 3))  # imports torch.fx with its first gradient
    _ = torch.ones(2, dtype=torch.bfloat16) @ torch.ones(2, dtype=torch.bfloat16), repr(torch.ones(1))


def main() -> None:
    """Import torch in namespaces of its own, and answer."""
    fork_server.isolate()
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with open(sys.argv[2], encoding="utf-8") as file:
        judge = References(json.load(file))
    _warm(torch)
    gc.freeze()
    sandbox.prove()
    fork_server.serve(sys.argv[1], lambda connection: begin(judge, connection))


if __name__ == "__main__":
    fork_server.run(sys.argv[1], main)
