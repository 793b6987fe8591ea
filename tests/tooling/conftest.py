"""What the tests of the tool have in common: a compiler and a browser that most sessions do not install."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from browser import why_not
from documents import faults
from mps_build.common import json_text
from mps_build.common.cores import with_share
from processes import why_no_sandbox

# What nox, uv, pip, conda, git and virtual environments tell the programs that they start. nox 2026.10 sets UV_PYTHON,
# so that a test queried another Python than it wanted.
_OF_THE_CALLER = ("NOX_", "UV_", "PIP_", "CONDA_", "_CE_", "MAMBA_", "GIT_", "VIRTUAL_ENV", "PYENV_", "PYTHONHOME")
_WAYS_TO_A_NETWORK = ("CERT", "CAINFO", "INDEX", "INDEX_URL", "FIND_LINKS", "PROXY", "TIMEOUT", "TRUSTED_HOST")


def variables_of_the_caller(names: Iterable[str], *, network: bool) -> list[str]:
    """Return the names by which the caller's tools would change a test; with `network`, also the ways to one."""
    found = [name for name in names if name.startswith(_OF_THE_CALLER)]
    return [name for name in found if network or not name.endswith(_WAYS_TO_A_NETWORK)]


def pytest_configure() -> None:
    """Remove the caller's variables before a test module reads them; tell each worker's children their threads."""
    for name in variables_of_the_caller([*os.environ], network=False):
        del os.environ[name]
    if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
        os.environ.update(with_share(os.environ, int(workers)))
    # A shell starts `nox &` with these ignored, which our children would inherit: a test that sends one waited forever.
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _no_variable_of_the_caller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what is left of them, but for the tests that need a network."""
    if not any(request.node.get_closest_marker(name) for name in ("slow", "zig")):
        for name in variables_of_the_caller([*os.environ], network=True):
            monkeypatch.delenv(name)


def pytest_collection() -> None:
    """Collect no garbage among thousands of tests that all stay: it took a third of the collection."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage, and of Hypothesis's for constants.

    It would read all our modules, for seconds in each worker; where the name is gone, it does. `dev -- fuzz` lets it.
    """
    if (providers := sys.modules.get("hypothesis.internal.conjecture.providers")) is not None:
        providers.__dict__.update(is_local_module_file=lambda path: False)
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs zig, a browser or a sandbox where it is missing; a session that is there to run it fails."""
    if item.get_closest_marker("browser") is not None and (missing := why_not()):
        if os.environ.get("MPS_BUILD_TESTS_NEED_BROWSER"):
            pytest.fail(f"{missing}; this session is the one that runs this test")
        pytest.skip(missing)
    if item.get_closest_marker("sandbox") is not None and (missing := why_no_sandbox()):
        pytest.skip(f"no process can be closed here: {missing}")
    if item.get_closest_marker("zig") is None or find_spec("ziglang") is not None:
        return
    if os.environ.get("MPS_BUILD_TESTS_NEED_ZIG"):
        pytest.fail("ziglang is missing, and this session is the one that runs this test")
    pytest.skip("needs ziglang (400 MB): nox -s tests -- --tier slow")


@pytest.fixture(autouse=True)
def _documents_hold_to_their_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold every document that `--json` writes in any test against the schema that it names."""
    written, whole = [], json_text.to_json

    def to_json(document: Any, **more: Any) -> str:
        written.append(document)
        return whole(document, **more)

    monkeypatch.setattr(json_text, "to_json", to_json)
    yield
    found = [fault for document in written if "exit_code" in document for fault in faults(document)]
    assert not found, found
