"""A fleet on paper: builds handed out as machines fall free, tests as their wheel is there."""

from __future__ import annotations

import heapq
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import simpy

from .costs import Costs

MOST_MACS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is to be done (commits x pythons, each tested on so many macOS), and by how many machines."""

    commits: int
    pythons: int
    macos: int
    builders: int
    testers: int

    @property
    def builds(self) -> int:
        """Wheels to build: one for each commit and Python."""
        return self.commits * self.pythons

    @property
    def tests(self) -> int:
        """Verifications to run: each wheel on each macOS."""
        return self.builds * self.macos

    def testers_of(self, macos: int) -> tuple[int, ...]:
        """Return the testers that run one macOS: a Mac has one macOS at a time, unless there are too few Macs."""
        if self.testers >= self.macos:
            return tuple(tester for tester in range(self.testers) if tester % self.macos == macos)
        return (macos % self.testers,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a shape needs: minutes, and core-minutes of the builders.

    Attributes:
        build_minutes: until the last wheel, builds handed out in order to whoever is free.
        test_minutes: the busiest tester's work, as if every wheel lay ready.
        whole_minutes: until the last test, from the discrete-event run: followers wait for the cold
            build that fills the cache, tests wait for their wheel.
    """

    shape: Shape
    build_minutes: float
    test_minutes: float
    whole_minutes: float
    core_minutes: float
    uncached_core_minutes: float

    @property
    def bottleneck(self) -> str:
        """Which kind of Mac the fleet waits for."""
        return "testers" if self.test_minutes > self.build_minutes else "builders"


def plan(shape: Shape, costs: Costs) -> Plan:
    """Return what the shape needs, by arithmetic and by the discrete-event run."""
    minutes = build_times(shape, costs)
    return Plan(
        shape=shape,
        build_minutes=list_makespan(minutes, shape.builders),
        test_minutes=busiest_tester(shape) * costs.test_minutes,
        whole_minutes=run_events(shape, costs),
        core_minutes=sum(minutes) * costs.cores,
        uncached_core_minutes=costs.build_minutes(0.0) * shape.builds * costs.cores,
    )


def build_times(shape: Shape, costs: Costs) -> list[float]:
    """Return each build's minutes in order: the first is cold, then further Pythons and further commits hit."""
    cold, commit = costs.build_minutes(0.0), costs.build_minutes(costs.commit_hits)
    python = costs.build_minutes(costs.python_hits)
    return [
        cold if number == 0 and first else commit if first else python
        for number in range(shape.commits)
        for first in [True, *[False] * (shape.pythons - 1)]
    ]


def list_makespan(minutes: Sequence[float], machines: int) -> float:
    """Return when the last of the jobs ends, each given to the machine that is free first.

    >>> list_makespan([3, 2, 2], 2)
    4
    """
    free: list[float] = [0] * machines
    for each in minutes:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def busiest_tester(shape: Shape) -> int:
    """Return how many tests the busiest tester runs."""
    load = [0] * shape.testers
    for macos in range(shape.macos):
        testers = shape.testers_of(macos)
        for index, tester in enumerate(testers):
            load[tester] += shape.builds // len(testers) + (index < shape.builds % len(testers))
    return max(load)


def run_events(shape: Shape, costs: Costs) -> float:
    """Return when the last test ends, in minutes, from a run over events.

    One cold build first, then all others: else all Pythons of the first commit would miss together.
    A wheel's tests queue at the testers of each macOS in the order the wheels come.
    """
    minutes = build_times(shape, costs)
    world = simpy.Environment()
    builders = simpy.Resource(world, shape.builders)
    groups = {shape.testers_of(macos) for macos in range(shape.macos)}
    testers = {group: simpy.Resource(world, len(group)) for group in groups}
    warm = world.event()

    def build(number: int) -> Generator[simpy.Event, Any, None]:
        if number:
            yield warm
        with builders.request() as builder:
            yield builder
            yield world.timeout(minutes[number])
        if not number:
            warm.succeed()
        for macos in range(shape.macos):
            world.process(test(shape.testers_of(macos)))

    def test(group: tuple[int, ...]) -> Generator[simpy.Event, Any, None]:
        with testers[group].request() as tester:
            yield tester
            yield world.timeout(costs.test_minutes)

    for number in range(len(minutes)):
        world.process(build(number))
    world.run()
    return float(world.now)


def best_shape(shape: Shape, costs: Costs) -> Plan:
    """Return the plan that ends first with the same number of Macs; of equals, the one with more testers."""
    machines = shape.builders + shape.testers
    plans = [
        plan(replace(shape, builders=builders, testers=machines - builders), costs) for builders in range(1, machines)
    ]
    return min(plans, key=lambda each: (round(each.whole_minutes, 6), each.shape.builders))


def one_python_tested(shape: Shape, costs: Costs, *, smoke_minutes: float = 1.0) -> float:
    """Return the whole minutes if one Python of each commit gets the full test, the others an import and a smoke test.

    The tests are alike for all Pythons but for the binding; on average a wheel's test is then so much shorter.
    """
    mean = (costs.test_minutes + (shape.pythons - 1) * smoke_minutes) / shape.pythons
    return run_events(shape, replace(costs, test_minutes=mean))


def macs_needed(shape: Shape, costs: Costs, *, minutes: float) -> Plan | None:
    """Return the plan with the fewest Macs that builds and tests all of it in so many minutes.

    None if `MOST_MACS` do not: a chain of builds or tests is longer than that, or there is too much of it.
    """
    # No fleet is faster than its work spread evenly: fewer Macs of either kind need not be tried.
    builders = max(1, math.ceil(sum(build_times(shape, costs)) / minutes))
    testers = max(1, math.ceil(shape.tests * costs.test_minutes / minutes))
    for machines in range(builders + testers, MOST_MACS + 1):
        plans = (
            plan(replace(shape, builders=each, testers=machines - each), costs)
            for each in range(builders, machines - testers + 1)
        )
        if (found := min(plans, key=lambda each: each.whole_minutes)).whole_minutes <= minutes:
            return found
    return None
