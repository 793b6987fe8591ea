"""Whether a process can be closed here; the tests that need it are skipped by name where it cannot."""

from __future__ import annotations

import pytest
from mps_build.kernels.execution import sandbox


def why_not() -> str:
    """Return why no process can be closed here; nothing if one can."""
    try:
        sandbox.prove()
    except sandbox.SandboxUnavailable as error:
        return str(error)
    return ""


WHY_NOT = why_not()
needs_sandbox = pytest.mark.skipif(bool(WHY_NOT), reason=f"no process can be closed here: {WHY_NOT}")
