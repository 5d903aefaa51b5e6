"""The noise of real runs of the built-in program, counted by a clock of the test."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from perun.cli.commands.doctor import noise_data, noise_lines
from perun.core.errors import UsageError
from perun.running import doctor


@pytest.fixture(scope="module")
def measured() -> doctor.Noise:
    """Each look at the clock takes a second, two of them a pair."""
    ticks = itertools.count()
    return doctor.measure(
        dict(os.environ), 41, 0.001, rng=random.Random(1), clock=lambda: float(next(ticks))
    )


def test_pairs_are_measured_until_the_budget_is_spent(measured: doctor.Noise) -> None:
    assert 15 <= measured.pairs <= 25
    assert 0 <= measured.disturbed <= measured.pairs
    wall, cpu = measured.clocks
    assert (wall.name, cpu.name) == ("wall", "cpu")
    for clock in measured.clocks:
        assert clock.median > 0
        assert clock.ratio.sizes == (measured.pairs, measured.pairs)
        assert clock.ratio.low <= clock.ratio.estimate <= clock.ratio.high
        needed = [effect.pairs or 1000 for effect in clock.effects]
        assert needed == sorted(needed, reverse=True), "larger changes need fewer pairs"


def test_ten_pairs_are_measured_whatever_the_budget() -> None:
    seen: list[tuple[str, int, int]] = []
    found = doctor.measure(dict(os.environ), 1e-6, 0.001, report=lambda *step: seen.append(step))
    assert found.pairs == 10
    assert [done for _, done, _ in seen] == list(range(11))


def test_a_run_that_takes_no_time_is_refused() -> None:
    with pytest.raises(UsageError, match="--length"):
        doctor.measure({}, 1, 0)


def test_the_answers_have_all_of_it(measured: doctor.Noise) -> None:
    data = noise_data(measured)
    assert (data["schema"], data["pairs"], len(data["clocks"])) == ("perun.noise/1", measured.pairs, 2)
    assert [effect["share"] for effect in data["clocks"][0]["effects"]] == list(doctor.EFFECTS)
    text = "\n".join(noise_lines(measured))
    assert f"{measured.pairs} pairs of runs of the same program" in text
    assert "    1%   wall: " in text and "   25%   wall: " in text
    for condition in measured.conditions:
        assert condition.message in text
