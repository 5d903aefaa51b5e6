"""What is done with results after the search."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import campaigns
import counting_programs
import pytest

from perun.fuzz import results
from perun.fuzz.after import understand
from perun.fuzz.results import FAULT, HANG, SLOW, Campaign


def test_the_best_results_get_their_smallest_form_and_their_growth(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    campaign = campaigns.understood(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    assert slow.minimized == "minimized/slow-main.c"
    assert set((tmp_path / slow.minimized).read_bytes()) == {ord(" ")}
    assert slow.growth is not None
    assert slow.growth["text"].startswith("quadratic in the number of spaces")
    assert slow.growth["minimizing"]["before"] == len(campaigns.SLOW_INPUT)
    assert results.load(tmp_path) == campaign


def test_where_all_parts_cost_the_smallest_form_is_that_of_the_pattern(tmp_path: Path) -> None:
    """Leaving out words of it makes the program faster, as each of them costs something."""
    campaign = campaigns.folder_of(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    words = b"".join(b"%d, " % number for number in range(800)) + b"<" * 40
    (tmp_path / slow.file).write_bytes(words)
    runs = 0

    def brackets(data: bytes, timeout: float, until: float = math.inf) -> counting_programs.Ran:
        nonlocal runs
        runs += 1
        return counting_programs.Ran("ok", 100 + 10 * len(data) + data.count(b"<") ** 2, 1e-3)

    understood = understand(
        tmp_path, replace(campaign, results=(slow,)), brackets, max_size=5000, hang_timeout=1, seconds=1e9
    )
    (one,) = understood.results
    small = (tmp_path / one.minimized).read_bytes()
    least = 0.9 * brackets(words, 1).total
    assert small == b"<" * len(small)
    assert 0.85 * least < (len(small) ** 2 + 10 * len(small)) < 1.05 * least
    assert one.growth is not None
    assert one.growth["minimizing"]["after"] == len(small)
    assert one.growth["minimizing"]["stages"][-1]["name"] == "pattern"
    assert one.growth["minimizing"]["stages"][-1]["tests"] <= 13


def test_one_of_each_family_comes_before_its_relatives(tmp_path: Path) -> None:
    campaign = campaigns.folder_of(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    family = ("T.1", "T.2", "T.3", "T.4")
    found = []
    for name, rules in (("a", family), ("b", (*family, "S.1")), ("c", ("S.2", *family)), ("d", family)):
        (tmp_path / name).write_bytes((tmp_path / slow.file).read_bytes())
        found.append(replace(slow, file=name, rules=rules))
    understood = understand(
        tmp_path, replace(campaign, results=tuple(found)), counting_programs.trim, best=2, max_size=500,
        hang_timeout=1, seconds=1e9,
    )  # fmt: skip
    assert [one.file for one in understood.results if one.growth] == ["a", "c"]


def test_names_of_seeds_need_not_be_utf8(tmp_path: Path) -> None:
    campaign = campaigns.folder_of(tmp_path)
    (seed,) = campaign.seeds
    named = replace(campaign, seeds=(replace(seed, name=os.fsdecode(b"\xff\xfe.c")),))
    results.save(tmp_path, named)
    assert [one.name for one in results.load(tmp_path).seeds] == ["??.c"]


def test_what_does_not_behave_so_again_is_left_as_it_is(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    one = campaigns.understood(tmp_path).of_kind(FAULT)[0]  # the trimming program never faults
    assert one.minimized == ""
    assert one.growth == {"text": "", "reason": "it did not behave so again, so it is left as it is"}


def test_a_hang_says_how_the_cost_grows_until_then(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    one = campaigns.understood(tmp_path).of_kind(HANG)[0]
    assert counting_programs.trim((tmp_path / one.minimized).read_bytes(), 1).outcome == "hang"
    assert one.growth is not None
    assert one.growth["text"].startswith("quadratic in the number of spaces")
    assert "the program hangs from 1,7" in one.growth["text"]


def test_an_interruption_leaves_the_results_that_are_done(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    kept: list[Campaign] = []

    def run(data: bytes, timeout: float, until: float = math.inf) -> counting_programs.Ran:
        if kept:
            raise KeyboardInterrupt
        return counting_programs.trim(data, timeout)

    with pytest.raises(KeyboardInterrupt):
        understand(
            tmp_path, results.load(tmp_path), run, max_size=3000, hang_timeout=1, keep=kept.append,
            seconds=1e9,
        )
    assert [bool(one.growth) for one in kept[-1].results] == [True, False, False]
    assert sorted(path.name for path in (tmp_path / "minimized").iterdir()) == ["slow-main.c"]


def test_no_result_is_touched_where_none_is_wanted_or_the_time_is_over(tmp_path: Path) -> None:
    campaign = campaigns.folder_of(tmp_path)
    for best, seconds in ((0, 60.0), (10, 0.0)):
        same = understand(
            tmp_path, campaign, counting_programs.trim,
            best=best, max_size=3000, hang_timeout=1, seconds=seconds,
        )  # fmt: skip
        assert same == campaign
    assert not (tmp_path / "minimized").exists()
