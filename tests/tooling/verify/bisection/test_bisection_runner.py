"""The search for the first bad one: always the right one, in few steps, whatever lies in its way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.verify.bisection.runner import Answer, Bisection, CannotTest, Prepared
from mps_build.verify.bisection.search import Span, Standing, majority, next_probe, standing, steps_at_most
from mps_build.verify.bisection.state import Probe, State, load_state, write_state


def span_of(count: int, **fields: object) -> Span:
    return Span(old="old", new="new", candidates=tuple(map(str, range(count))), **fields)  # type: ignore[arg-type]


@dataclass
class FakeRunner:
    """Answers by the number of the subject: bad from `cause` on; what is in `gaps` cannot be had."""

    cause: int
    gaps: frozenset[str] = frozenset()
    sometimes: dict[str, list[str]] = field(default_factory=dict)
    stop_after: int | None = None
    tested: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    def prepare(self, subject: str) -> Prepared:
        if subject in self.gaps:
            raise CannotTest("no build")
        return Prepared(subject=subject)

    def ask(self, prepared: Prepared) -> Answer:
        if self.stop_after is not None and len(self.tested) >= self.stop_after:
            raise KeyboardInterrupt
        subject = prepared.subject
        self.tested.append(subject)
        if self.sometimes.get(subject):
            return Answer(word=self.sometimes[subject].pop(0))  # type: ignore[arg-type]
        number = {"old": -1, "new": 10**6}.get(subject)
        return Answer(word="bad" if (int(subject) if number is None else number) >= self.cause else "good")

    def release(self, prepared: Prepared) -> None:
        self.released.append(prepared.subject)


def search(span: Span, runner: FakeRunner, state: State | None = None) -> tuple[Standing, State]:
    state = state or State(question={}, good="old", bad="new")
    bisection = Bisection(state=state, runner=runner, save=lambda grown: None)
    bisection.verify_ends(span)
    return bisection.search(span), state


def probes(state: State) -> int:
    return len([subject for subject in state.probes if subject not in ("old", "new")])


# The pure search.


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 40, 85])
def test_every_cause_is_found_within_the_steps_announced(count: int) -> None:
    for cause in range(count + 1):
        found, state = search(span_of(count), FakeRunner(cause))

        assert found.exact
        assert found.first_new == (str(cause) if cause < count else "new")
        assert probes(state) <= steps_at_most(count)


@pytest.mark.parametrize("favoured", [range(0, 200, 10), range(20), range(180, 200), (100,)])
def test_likely_ones_come_first_and_cost_an_unlikely_cause_one_step_at_most(favoured: tuple[int, ...]) -> None:
    likely = frozenset(map(str, favoured))
    most = {True: 0, False: 0}
    for cause in range(0, 201, 3):
        found, state = search(span_of(200, favoured=likely), FakeRunner(cause))

        assert found.exact
        assert found.first_new == (str(cause) if cause < 200 else "new")
        most[str(cause) in likely] = max(most[str(cause) in likely], probes(state))

    assert max(most.values()) <= math.ceil(math.log2(201)) + 1
    assert most[True] <= 7  # plain halving needs 8


def test_two_gaps_of_forty_cost_at_most_their_own_probes() -> None:
    limit = math.floor(math.log2(40) + 3)
    for cause in range(41):
        for first in range(0, 40, 3):
            gaps = frozenset(str(gap) for gap in (first, first + 1) if gap not in (cause, cause - 1) and gap < 40)
            found, state = search(span_of(40), FakeRunner(cause, gaps))

            assert found.exact
            assert found.first_new == (str(cause) if cause < 40 else "new")
            assert probes(state) <= limit, (cause, gaps)


def test_a_run_of_gaps_is_left_by_growing_strides() -> None:
    gaps = frozenset(map(str, range(12, 28)))

    found, state = search(span_of(40), FakeRunner(33, gaps))

    assert (found.first_new, found.exact) == ("33", True)
    assert sum(probe.verdict == "skip" for probe in state.probes.values()) <= 5


def test_gaps_beside_the_cause_leave_all_of_them_as_suspects() -> None:
    found, _ = search(span_of(40), FakeRunner(20, frozenset({"18", "19", "20"})))

    assert not found.exact
    assert found.suspects == ("18", "19", "20", "21")
    assert (found.last_old, found.first_new) == ("17", "21")


def test_all_gaps_leave_everything() -> None:
    found, _ = search(span_of(5), FakeRunner(2, frozenset(map(str, range(5)))))

    assert found.suspects == ("0", "1", "2", "3", "4", "new")


def test_the_repair_is_found_when_the_older_end_is_bad() -> None:
    verdicts: dict[str, str] = {}
    span = span_of(40, seek="good")
    while (subject := next_probe(span, verdicts)) is not None:  # type: ignore[arg-type]
        verdicts[subject] = "good" if int(subject) >= 29 else "bad"

    assert standing(span, verdicts).first_new == "29"  # type: ignore[arg-type]


# Votes.


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (["good"], None),
        (["good", "good"], "good"),
        (["bad", "good", "bad"], "bad"),
        (["bad", "skip", "good"], "flaky"),
        (["skip"], "skip"),
        (["bad", "skip", "skip"], "skip"),
    ],
)
def test_the_majority_of_three_decides(words: list[str], verdict: str | None) -> None:
    assert majority(words, 3) == verdict  # type: ignore[arg-type]


def test_a_flaky_one_does_not_lead_astray() -> None:
    for cause in (3, 19, 20, 21, 33):
        sometimes = {str(each): ["bad", "good", "good"] for each in range(cause)}
        sometimes |= {str(each): ["good", "bad", "bad"] for each in range(cause, 40)}

        found, state = search(span_of(40), FakeRunner(cause, sometimes=sometimes))

        assert found.first_new == str(cause)
        assert probes(state) <= math.log2(40) + 3


def test_one_without_a_majority_is_gone_round() -> None:
    words = {"20": ["bad", "skip", "good"], "19": ["good", "skip", "bad"]}

    found, state = search(span_of(40), FakeRunner(30, sometimes=words))

    assert found.first_new == "30"
    assert "flaky" in [probe.verdict for probe in state.probes.values()]


def test_a_timeout_is_bad_unless_the_good_end_times_out_too() -> None:
    slow = {"19": ["timeout", "timeout"]}
    _, state = search(span_of(40), FakeRunner(30, sometimes=slow))
    assert state.probes["19"].verdict == "bad"

    slow = {"19": ["timeout", "timeout"], "old": ["timeout", "good", "good"]}
    state = State(question={}, good="old", bad="new")
    state.probes["old"] = Probe(words=["bad", "good", "good"], verdict="good", timeouts=1)
    found, state = search(span_of(40), FakeRunner(30, sometimes=slow), state)
    assert (state.probes["19"].verdict, found.first_new) == ("skip", "30")


# The ends.


@pytest.mark.parametrize(
    ("cause", "words"),
    [(-5, "are both bad"), (10**7, "are both good")],
)
def test_ends_that_do_not_differ_are_named_before_anything_else_is_tested(cause: int, words: str) -> None:
    runner = FakeRunner(cause)

    with pytest.raises(UsageError, match=words):
        search(span_of(40), runner)

    assert set(runner.tested) == {"old", "new"}


def test_ends_the_wrong_way_round_are_said() -> None:
    runner = FakeRunner(0, sometimes={"old": ["bad"] * 2, "new": ["good"] * 2})

    with pytest.raises(UsageError, match="ends are swapped"):
        search(span_of(4), runner)


def test_an_end_that_cannot_be_had_is_said_with_its_reason() -> None:
    with pytest.raises(UsageError, match="old cannot be tested: no build"):
        search(span_of(4), FakeRunner(1, frozenset({"old"})))


# The memory.


def test_an_interrupted_search_goes_on_and_asks_nothing_again(tmp_path: Path) -> None:
    path, span, total = tmp_path / "state.json", span_of(200), FakeRunner(123)
    search(span, total)
    tested: list[str] = []
    found = None
    for _ in range(30):
        state = load_state(path) or State(question={}, good="old", bad="new")
        runner = FakeRunner(123, stop_after=2)
        bisection = Bisection(state=state, runner=runner, save=lambda grown: write_state(grown, path))
        try:
            bisection.verify_ends(span)
            found = bisection.search(span)
        except KeyboardInterrupt:
            tested += runner.tested
            continue
        tested += runner.tested
        break

    assert found is not None
    assert found.first_new == "123"
    assert tested == total.tested


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "mps-build/bisection/9"}'])
def test_a_damaged_state_is_said_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)

    with pytest.raises(UsageError, match="is not the state of a bisection"):
        load_state(path)

    assert path.read_text() == text
