"""Every public object of the tool has a docstring that says something, and every option has a help text."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator

import pytest
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.parser import module_of
from repository import PACKAGE, source_trees

Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the public functions, classes and methods of a module; a method of a private class is private."""
    for node in body:
        if isinstance(node, Node) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{prefix}{node.name}.")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()))


def faults(name: str, docstring: str | None) -> str | None:
    """Return what is wrong with a docstring: there is none, or it holds only the words of the name."""
    if not docstring:
        return "has no docstring"
    said = words(docstring) - words(name.replace("_", " ").replace(".", " "))
    return None if said - {"a", "the", "return", "returns", "of", "this", "is"} else "only repeats its name"


def test_every_public_object_has_a_docstring() -> None:
    lacking = []
    for path, tree in source_trees().items():
        where = path.relative_to(PACKAGE)
        if not ast.get_docstring(tree):
            lacking.append(f"{where}: has no docstring")
        for name, node in public(tree.body):
            if fault := faults(name, ast.get_docstring(node)):
                lacking.append(f"{where}:{node.lineno} {name} {fault}")

    assert not lacking, "\n".join([f"{len(lacking)}:", *lacking])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text(command: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    module_of(command).add_arguments(parser)

    lacking = [action.dest for action in parser._actions if not action.help or len(action.help) < 4]

    assert not lacking


@pytest.mark.parametrize(
    ("name", "docstring", "fault"),
    [
        ("Workspace.logs", None, "has no docstring"),
        ("read_receipt", "Read the receipt.", "only repeats its name"),
        ("MachO.cpuName", "Return the CPU name of this Mach-O.", "only repeats its name"),
        ("read_receipt", "Return what a step left.", None),
    ],
)
def test_the_search_finds_what_says_nothing(name: str, docstring: str | None, fault: str | None) -> None:
    assert faults(name, docstring) == fault
