"""The scripts of docs/inspect/kernels_large.md, with which a Mac shows what was found: they are right of the CPU."""

from __future__ import annotations

import re
import warnings

import pytest
from mps_build.common.workspace import CHECKOUT

PAGE = (CHECKOUT / "docs" / "inspect" / "kernels_large.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("<!-- scripts: large -->")[2].partition("<!-- end: scripts -->")[0]
SCRIPTS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
MOST_LINES = 15


def test_each_is_short_and_says_how_many_elements_it_has() -> None:
    assert len(SCRIPTS) >= 8
    for script in SCRIPTS:
        assert len(script.splitlines()) <= MOST_LINES
        assert len(re.findall(r"^n = 2\*\*\d+ [+-] \d+", script, re.MULTILINE)) == 1
        assert "assert " in script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda text: re.sub(r"\W+", "-", text.splitlines()[-1])[:40])
def test_it_runs_and_holds_on_the_cpu_with_fewer_elements(script: str) -> None:
    torch = pytest.importorskip("torch")
    # 2**32 and 2**26 become 2**12 and 2**6: the calls, their types and what they must give stay.
    small = re.sub(r"^n = 2\*\*(\d+)", lambda match: f"n = 2**{max(int(match[1]) - 20, 6)}", script, flags=re.MULTILINE)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # of sparse tensors, that their invariants are not checked

    exec(compile(small.replace('"mps"', '"cpu"'), "script", "exec"), {})
