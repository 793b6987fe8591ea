"""Since which macOS things exist: the form of availability.yaml, what it must have, and the table made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mps_build.simulation.availability import OLDEST_MACOS, Availability, Entry, read_availability, table_source
from mps_build.simulation.builder import build
from mps_build.simulation.builder.ninja_file import own_sources
from mps_build.simulation.ledger import graph_rules
from mps_build.simulation.releases import find_release
from mps_build.wheel_build.objc.model import load_frameworks, version
from pydantic import ValidationError

_SENT: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "recorded" / "selectors.json").read_text(encoding="utf-8")
)
_KNOWN = read_availability()


def _known(*entries: dict[str, Any]) -> Availability:
    checked = {"release": "2.6.0", "selectors": 1, "not_found": []}
    return Availability.model_validate({"schema_version": 1, "checked": checked, "entries": entries})


def _is_late(since: str | None) -> bool:
    return since is not None and version(since) > OLDEST_MACOS


def _entry(**facts: Any) -> dict[str, Any]:
    return {"of": "MPSGraph", "since": "14.0", "source": "header", "where": "x.h", **facts}


def test_each_method_is_one_that_a_release_sends_or_the_simulation_has() -> None:
    ours = graph_rules() | set(_SENT["2.6.0"])

    assert [name for each in _KNOWN.entries for name in each.methods if name not in ours] == []
    assert set(_KNOWN.checked.not_found) < set(_SENT[_KNOWN.checked.release])
    assert _KNOWN.checked.selectors == len(_SENT[_KNOWN.checked.release])


def test_it_says_what_the_declarations_say_and_leaves_nothing_out() -> None:
    ours = "".join(path.read_text(encoding="utf-8") for path in own_sources())
    classes = set(re.findall(r"^@implementation (\w+)", ours, re.MULTILINE))
    selectors = graph_rules() | set(_SENT["2.6.0"])
    declared: dict[tuple[str, str], str | None] = {}
    for interface in (each for framework in load_frameworks() for each in (*framework.protocols, *framework.classes)):
        if _is_late(interface.since):
            declared |= {(interface.name, ""): interface.since} if interface.name in classes else {}
            continue
        late = (each for each in interface.methods if each.selector in selectors and _is_late(each.since))
        declared |= {(interface.name, each.selector): each.since for each in late}

    stated = {(each.of, name): each.since for each in _KNOWN.entries if not each.constants for name in each.names}
    assert len(declared) > 40
    assert stated == declared


def test_constants_are_of_their_enum() -> None:
    enums = {each.name: each for framework in load_frameworks() for each in framework.enums}

    for each in (entry for entry in _KNOWN.entries if entry.constants):
        assert set(each.constants) <= set(enums[each.of].constants)
        assert [enums[each.of].newer.get(name) for name in each.constants] == [each.since] * len(each.constants)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"methods": ["a:"], "constants": ["B"]}, "a class has methods, an enum has constants"),
        ({"since": "12.3"}, "exists on every macOS with MPS"),
        ({"since": "14"}, "String should match pattern"),
        ({"methods": ["-[MPSGraph a]"]}, "String should match pattern"),
        ({"source": "hearsay"}, "Input should be 'header'"),
    ],
)
def test_a_row_that_is_not_a_fact_is_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Entry.model_validate(_entry(**facts))


def test_rows_are_in_order_and_said_once() -> None:
    with pytest.raises(ValidationError, match="not in the order of their versions"):
        _known(_entry(since="15.0"), _entry(of="MPSNDArray", since="14.0"))
    with pytest.raises(ValidationError, match="stated more than once: MPSGraph a:"):
        _known(_entry(methods=["a:"]), _entry(methods=["a:"], since="15.0"))


def test_the_table_has_each_row() -> None:
    source = table_source(_known(_entry(methods=["a:b:"]), _entry(of="MPSNDArrayIdentity", since="15.1")))

    assert '{"MPSGraph", "a:b:", 14, 0},\n' in source
    assert '{"MPSNDArrayIdentity", "", 15, 1},\n' in source
    assert table_source(_KNOWN).count('{"') == len(list(_KNOWN.rows()))


def test_a_library_is_made_anew_where_the_facts_change() -> None:
    assert {"availability.py", "availability.yaml"} <= {name for name, _ in build._ours(find_release("2.6.0"))}
