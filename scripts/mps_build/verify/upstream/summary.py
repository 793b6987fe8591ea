"""What a run of PyTorch's own tests came to: counts by class, why tests fail, and the page that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from mps_build.common import strict_yaml
from mps_build.common.known_issues import HostLine, Range, Text, within
from mps_build.common.plain_text import Markdown, markdown_table

from .outcomes import BAD, GOOD, UpstreamOutcome

FILE = Path(__file__).parent / "explanations.yaml"
KINDS = ("bug", "limit", "mac", "test")


class UpstreamExplanation(BaseModel):
    """One reason, and the tests that fail by it.

    `kind`: `bug` of the release's host code or kernels (a public link, or lines of its tree), `limit` of the
    simulation, `mac`: it needs what only a Mac has, `test`: the test's own fault, or its surroundings'. `tests` are
    patterns of ids; `message`: a part of what the test must say, for it to be this reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    kind: Literal["bug", "limit", "mac", "test"]
    reason: Text
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    macos: Range | None = None
    lines: tuple[HostLine, ...] = ()
    message: Text | None = None
    tests: tuple[Text, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_evidence(self) -> UpstreamExplanation:
        if self.kind == "bug" and not (self.link or self.lines):
            raise ValueError("a bug needs a public link, or lines of the host code")
        return self

    def explains(self, test: UpstreamOutcome) -> bool:
        """Whether this test fails by it."""
        is_said = self.message is None or self.message in test.reason
        return test.outcome in BAD and is_said and any(fnmatchcase(test.id, pattern) for pattern in self.tests)


class UpstreamExplanations(BaseModel):
    """The whole of explanations.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    explanations: tuple[UpstreamExplanation, ...]

    @model_validator(mode="after")
    def _check_ids(self) -> UpstreamExplanations:
        ids = [row.id for row in self.explanations]
        if repeated := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"more than one row has the id {', '.join(repeated)}")
        return self


def load_upstream_explanations(path: Path = FILE) -> tuple[UpstreamExplanation, ...]:
    """Return every row.

    Raises:
        UsageError: it lists every fault with its line.
    """
    return strict_yaml.load(path, UpstreamExplanations).explanations


def explained(
    tests: Iterable[UpstreamOutcome], rows: Sequence[UpstreamExplanation], *, macos: str
) -> dict[str, UpstreamExplanation | None]:
    """Return the row of each failing test by its id; None where no row explains it."""
    active = [row for row in rows if within(macos, row.macos)]
    return {test.id: next((row for row in active if row.explains(test)), None) for test in tests if test.outcome in BAD}


class Group(BaseModel):
    """A class of tests; `failed` is by kind, `new` those that no row explains. Skipped tests were not run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    name: str
    passed: int
    skipped: int
    failed: dict[str, int]
    new: int

    @property
    def ran(self) -> int:
        """How many were run."""
        return self.passed + self.new + sum(self.failed.values())


class Summary(BaseModel):
    """The outcomes of a run; `failing` has the id of the row of each test, or an empty text.

    `tests`: how many there are in these files, of which a part may have been run. `ran_on`: the machine, in words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    release: str
    macos: str
    date: str
    tests: int
    ran_on: str = ""
    groups: tuple[Group, ...]
    failing: dict[str, str]

    @property
    def ran(self) -> int:
        """How many tests were run."""
        return sum(group.ran for group in self.groups)

    @property
    def passed(self) -> int:
        """How many ended as upstream expects, expected failures included."""
        return sum(group.passed for group in self.groups)

    @property
    def skipped(self) -> int:
        """How many were not run, by their own choice."""
        return sum(group.skipped for group in self.groups)

    @property
    def unknown(self) -> int:
        """How many of the files' tests have no outcome yet."""
        return self.tests - self.ran - self.skipped

    @property
    def new(self) -> int:
        """How many fail without an explanation."""
        return sum(group.new for group in self.groups)


def summed_up(
    tests: Iterable[UpstreamOutcome],
    rows: Sequence[UpstreamExplanation],
    sizes: Mapping[str, int],
    *,
    release: str,
    macos: str,
    date: str,
    ran_on: str = "",
) -> Summary:
    """Return the summary of outcomes; `sizes` says how many tests each file has."""
    listed = sorted(tests, key=lambda test: test.id)
    found = explained(listed, rows, macos=macos)
    groups = []
    for file, name in dict.fromkeys((test.file, test.group) for test in listed):
        mine = [test for test in listed if (test.file, test.group) == (file, name)]
        kinds = [row.kind if (row := found[test.id]) else "" for test in mine if test.id in found]
        groups.append(
            Group(
                file=file,
                name=name,
                passed=sum(test.outcome in GOOD for test in mine),
                skipped=sum(test.outcome == "skipped" for test in mine),
                failed={kind: kinds.count(kind) for kind in KINDS if kind in kinds},
                new=kinds.count(""),
            )
        )
    failing = {test_id: row.id if row else "" for test_id, row in found.items()}
    total = sum(max(sizes.get(file, 0), count) for file, count in Counter(test.file for test in listed).items())
    return Summary(
        release=release,
        macos=macos,
        date=date,
        tests=total,
        ran_on=ran_on,
        groups=tuple(groups),
        failing=failing,
    )


_HEAD = """\
# PyTorch's own tests on the simulated device

<!-- generated by `regenerate` from benchmarks/upstream_*.json and explanations.yaml: do not edit -->

```sh
nox -s benchmark -- upstream_tests                              # all of them; an interrupted run goes on where it ended
nox -s benchmark -- upstream_tests --only '*::test_conv*'       # those that fit a pattern
nox -s benchmark -- upstream_tests --part 0/8 --jobs 2          # an eighth, by two processes
nox -s benchmark -- upstream_tests --recipe torch==2.15.0       # an official wheel's own database of samples
```

The files that `test/run_test.py --mps` of the release runs, and `test_optim.py`, unchanged, on
[Linux](simulated.md); nothing of this was run on a Mac. A test may fail as it expects to (`xfail`): that counts as
passed. Skipped tests were not run. `test_ops.py` does not run on mps in this release.

A failure is a **bug** of the release, a **limit** of the simulation, needs what only a **mac** has, or is the
**test**'s own fault; *new* has no explanation.
"""
_TREE = "aten/src/ATen/native/mps/"


_WHEELS = """\
## Official wheels

A wheel carries PyTorch's samples of each operator, with the tolerances and failures that upstream expects of them on
mps (`op_db`, `common_mps`), but not the test that uses them. `benchmarks/consistency/test` is that test: each operator
and dtype, forward and first gradient, mps against the wheel's own CPU, with [the wheel's own code](official_wheel.md).
What upstream's test file says of tolerances is taken from older ones. Four rules were found from what the lists expect,
after first runs: operators without a gradient are tested forward alone; whole numbers that the CPU refuses are refused,
but histc's; random results keep their dtype; a short dtype's answer is rounded before it is compared. So the shares say
less than a run of upstream's own file would. A part is each N-th test of their sorted list.
"""


def upstream_page(summary: Summary, rows: Sequence[UpstreamExplanation], wheels: Sequence[Summary] = ()) -> str:
    """Return the page in Markdown; `wheels` are the sweeps over official wheels."""
    parts = [_HEAD, *_outcomes(summary, rows)]
    if wheels:
        parts.append(_WHEELS)
        parts += [line for each in wheels for line in (f"### {each.release}", "", *_outcomes(each, rows, "####"))]
    return "\n".join(parts)


def _outcomes(summary: Summary, rows: Sequence[UpstreamExplanation], level: str = "##") -> list[str]:
    """Return what came of a run, as lines: in words, by class, and why tests fail."""
    share = summary.passed / max(summary.ran, 1)
    said = f"PyTorch {summary.release} as macOS {summary.macos}, {summary.date}: "
    said += f"{summary.passed} of {summary.ran} tests passed ({share:.1%}), {summary.new} fail without a reason.\n"
    said += f"{summary.skipped} leave themselves out. These are {summary.ran + summary.skipped} of the files' "
    said += f"{summary.tests} tests for mps; {summary.unknown} have no outcome yet."
    said += f"\nThey ran on {summary.ran_on}." if summary.ran_on else ""
    table = [
        (
            group.file,
            group.name,
            *(str(number) for number in (group.ran, group.passed)),
            *(str(group.failed.get(kind, 0) or "") for kind in KINDS),
            str(group.new or ""),
            str(group.skipped),
        )
        for group in summary.groups
    ]
    columns = ("file", "class", "run", "passed", *KINDS, "new", "skipped")
    lines = [said, "", *markdown_table(columns, table), "", f"{level} Why tests fail", ""]
    counts = list(summary.failing.values())
    cells = [
        (row.id, row.kind, str(counts.count(row.id)), _reason(row), Markdown(", ".join(map(_short, row.lines))))
        for row in rows
        if row.id in counts
    ]
    return [*lines, *markdown_table(("id", "kind", "tests", "why", "where"), cells), ""]


def _reason(row: UpstreamExplanation) -> Markdown:
    text = row.reason.strip().replace("\n", " ")
    return Markdown(f"{text} ([report]({row.link}))" if row.link else text)


def _short(line: str) -> str:
    return f"`{line.removeprefix(_TREE).removeprefix('operations/')}`"
