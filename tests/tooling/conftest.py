"""What the tests of the tool have in common: a compiler that most sessions do not install."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs zig where it is missing, but not in the session that is there to run it."""
    if item.get_closest_marker("zig") is None or find_spec("ziglang") is not None:
        return
    if os.environ.get("MPS_BUILD_TESTS_NEED_ZIG"):
        pytest.fail("ziglang is missing, and this session is the one that runs this test")
    pytest.skip("needs ziglang (400 MB): nox -s tests_slow")
