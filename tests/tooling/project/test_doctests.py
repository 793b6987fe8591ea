"""Every example in a docstring holds."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import mps_build


def modules() -> list[str]:
    """Return the modules' names; importing __main__ runs the tool, and a torch's Python has judge and references."""
    found = sorted(module.name for module in pkgutil.walk_packages(mps_build.__path__, "mps_build."))
    return [
        name
        for name in found
        if not name.endswith(("__main__", ".judge", ".references")) and ".judge.server." not in name
    ]


def failures(module: ModuleType) -> int:
    """Run a module's examples; return how many do not hold."""
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        if test.examples:  # each run looks at every file that a traceback ever showed: most docstrings need none
            runner.run(test)
    return runner.failures


def test_the_examples_of_every_module_hold() -> None:
    found = {name: failures(importlib.import_module(name)) for name in modules()}

    assert len(found) > 300
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_examples_that_do_not_hold_are_counted() -> None:
    wrong = ModuleType("wrong", ">>> 1 + 1\n3\n>>> 2 + 2\n4\n>>> 1 / 0\n0")
    assert failures(wrong) == 2
