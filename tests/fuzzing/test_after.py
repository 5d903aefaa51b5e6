"""What is done with results after the search."""

import math
import os
from dataclasses import replace
from itertools import count
from pathlib import Path

import campaigns
import in_process as programs
import pytest

from perun.fuzz import findings, growth, results
from perun.fuzz.after import MinimizationProgress, keeps_cost, minimize, understand
from perun.fuzz.growth import CostGrowth, RunInput
from perun.fuzz.patterns import candidates, name_of, runs, smallest_period
from perun.fuzz.results import FAULT, HANG, SLOW, Campaign, Confirmation, Result
from perun.models.record import NoModel
from perun.running.fuzz.replay import judged


def test_the_best_results_get_their_smallest_form_and_their_growth(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    campaign = campaigns.understood(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    assert slow.minimized == "minimized/slow-main.c"
    assert set((tmp_path / slow.minimized).read_bytes()) == {ord(" ")}
    assert slow.growth is not None and slow.growth["text"].startswith("quadratic in the number of spaces")
    assert slow.growth["minimizing"]["before"] == len(campaigns.SLOW_INPUT)
    assert results.load(tmp_path) == campaign


def test_where_all_parts_cost_the_smallest_form_is_that_of_the_pattern(tmp_path: Path) -> None:
    """Leaving out words of it makes the program faster, as each of them costs something."""
    campaign = campaigns.folder_of(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    words = b"".join(b"%d, " % number for number in range(800)) + b"<" * 40
    (tmp_path / slow.file).write_bytes(words)
    runs = 0

    def brackets(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        nonlocal runs
        runs += 1
        return programs.Ran("ok", 100 + 10 * len(data) + data.count(b"<") ** 2, 1e-3)

    understood = understand(
        tmp_path, replace(campaign, results=(slow,)), brackets, max_size=5000, hang_timeout=1, seconds=1e9
    )
    (one,) = understood.results
    small = (tmp_path / one.minimized).read_bytes()
    least = 0.9 * brackets(words, 1).total
    assert small == b"<" * len(small)
    assert 0.85 * least < (len(small) ** 2 + 10 * len(small)) < 1.05 * least
    assert one.growth is not None and one.growth["minimizing"]["after"] == len(small)
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
        tmp_path, replace(campaign, results=tuple(found)), programs.trim, best=2, max_size=500,
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
    assert programs.trim((tmp_path / one.minimized).read_bytes(), 1).outcome == "hang"
    assert one.growth is not None and one.growth["text"].startswith("quadratic in the number of spaces")
    assert "the program hangs from 1,7" in one.growth["text"]


def test_an_interruption_leaves_the_results_that_are_done(tmp_path: Path) -> None:
    campaigns.folder_of(tmp_path)
    kept: list[Campaign] = []

    def run(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        if kept:
            raise KeyboardInterrupt
        return programs.trim(data, timeout)

    with pytest.raises(KeyboardInterrupt):
        understand(
            tmp_path,
            results.load(tmp_path),
            run,
            max_size=3000,
            hang_timeout=1,
            keep=kept.append,
            seconds=1e9,
        )
    assert [bool(one.growth) for one in kept[-1].results] == [True, False, False]
    assert sorted(path.name for path in (tmp_path / "minimized").iterdir()) == ["slow-main.c"]


def test_no_result_is_touched_where_none_is_wanted_or_the_time_is_over(tmp_path: Path) -> None:
    campaign = campaigns.folder_of(tmp_path)
    for best, seconds in ((0, 60.0), (10, 0.0)):
        same = understand(
            tmp_path, campaign, programs.trim,
            best=best, max_size=3000, hang_timeout=1, seconds=seconds,
        )  # fmt: skip
        assert same == campaign
    assert not (tmp_path / "minimized").exists()


# -- Which part of an input the cost grows with, and in which order ----------------------------------


def grown(data: bytes, program: RunInput, size: int = 3000) -> CostGrowth:
    found = growth.find(data, program, max_size=size, hang_timeout=1, seconds=1e9)
    assert isinstance(found, CostGrowth)
    return found


def test_it_says_quadratic_in_the_number_of_spaces() -> None:
    found = grown(b"int x;" + b" " * 80 + b"y", programs.trim)
    assert found.text.startswith("quadratic in the number of spaces: exponent 2.00")
    order = found.orders[0]
    assert order.low is not None and order.high is not None and order.low <= 2 <= order.high
    assert order.r_square is not None and order.r_square > 0.999
    times = [point.times for point in found.points]
    assert times[:5] == [1, 2, 3, 4, 6] and times[-1] > 1500
    assert [point.cost for point in found.points] == [
        programs.trim(found.pattern.input(number), 1).total for number in times
    ]


def test_it_says_exponential_and_from_where_on_the_program_hangs() -> None:
    found = grown(b"aaaa0aaaaaaa", programs.email)
    assert found.orders[0].name == "exponential"
    assert found.orders[0].b == pytest.approx(2, abs=0.05) and found.ends == "hang"
    hangs = programs.email(found.pattern.input(found.ends_at), 1)
    assert hangs.outcome == "hang" and "the program hangs from" in found.text
    assert len(found.points) >= 8


def test_different_words_matter_where_the_same_ones_do_not() -> None:
    words = b" ".join(b"w%d" % number for number in range(40))
    found = grown(words, programs.hash_table)
    assert found.orders[0].name == "quadratic"
    assert found.pattern.kind in ("different", "ascending", "descending")


@pytest.mark.parametrize(("data", "name"), [
    (b"one\ntwo\nsix\n", "different lines"),
    (b"one two six\n", "different words"),
    (b"a=1;b=2;c=3;d\n", 'different words between ";"'),
    (b"31\n22\n13\n", "numbers in descending order, one a line"),
])  # fmt: skip
def test_what_is_between_words_is_a_part_of_their_name(data: bytes, name: str) -> None:
    assert name in {pattern.text for pattern in candidates(data)}


def test_no_order_below_1_explains_what_costs_a_hundred_times() -> None:
    """Beside something that explodes, and is not seen, blanks matter little."""

    def run(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        return programs.Ran("ok", 10 + int(900 * data.count(b" ") ** 0.5), 1e-3)

    some, all_of_it = (
        growth.find(b" " * 12, run, max_size=1024, hang_timeout=1, ratio=ratio, seconds=1e9)
        for ratio in (4.0, 50_000.0)
    )
    assert isinstance(some, CostGrowth) and some.text.startswith("polynomial of degree 0.5")
    assert isinstance(all_of_it, CostGrowth) and all_of_it.text.startswith("no growth is known with")


def test_a_slow_result_is_explained_by_a_quick_one(tmp_path: Path) -> None:
    """Each run of what takes seconds would take those of hundreds of quick ones."""
    campaign = campaigns.folder_of(tmp_path)
    slow = campaign.of_kind(SLOW)[0]
    spent = 0.0

    def explodes(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        nonlocal spent
        cost = 10 + 2 ** data.count(b"(")
        seconds = cost * 1e-6
        spent += min(seconds, timeout)
        return programs.Ran("ok" if seconds < timeout else "hang", cost, seconds)

    found = []
    for name, data in (("large", b"x(" * 21 + b"y"), ("small", b"z(" * 12 + b"xy")):
        (tmp_path / name).write_bytes(data)
        ran = explodes(data, 10)
        found.append(replace(slow, file=name, lines=ran.total, ratio=ran.total / 12, seconds=ran.seconds))
    spent = 0.0
    understood = understand(
        tmp_path, replace(campaign, results=tuple(found)), explodes, best=1, max_size=100, hang_timeout=10,
        seconds=1e9, report=None, clock=lambda: spent,
    )  # fmt: skip
    large = understood.results[0]
    assert large.growth is not None and large.growth["text"].startswith("exponential in the number of")
    assert "(" in large.growth["pattern"]["unit"] and "the program hangs from" in large.growth["text"]
    assert (tmp_path / large.minimized).read_bytes() == b"(" * 21
    assert spent < 120


def test_the_order_of_values_matters_where_it_does() -> None:
    assert grown(b"9 8 7 6 5 4 3 2 1 0", programs.insertion_sort).orders[0].name == "quadratic"
    sorted_already = growth.find(
        b"0 1 2 3 4 5", programs.insertion_sort, max_size=3000, hang_timeout=1, seconds=1e9
    )
    assert isinstance(sorted_already, CostGrowth)
    assert sorted_already.pattern.kind == "descending" or len(sorted_already.pattern.unit) > 2


def test_what_is_steeper_is_named_where_something_linear_costs_more() -> None:
    """Each further 9 passes 400 zeros, which are there already; that is not what explodes."""
    found = grown(b"9 " * 400 + b"0 " * 400 + b"3 1 2\n", programs.insertion_sort, 2000)
    assert found.orders[0].name == "quadratic"


def test_a_part_is_repeated_alone_where_what_is_around_it_hides_the_growth() -> None:
    def quadratic(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        count = data.count(b"0")
        return programs.Ran("ok", 10 + count * count, 1e-7)

    found = grown(b"x" + b"0" * 90 + b"\n" + b"0 0" * 500, quadratic, 1600)
    assert found.orders[0].name == "quadratic" and len(found.pattern.before) + len(found.pattern.after) < 2


def test_a_fault_by_depth_has_the_depth_at_which_it_begins() -> None:
    found = grown(b"((x))", programs.parser)
    assert found.ends == "fault" and found.ends_at == 701
    assert found.text.endswith("; the program fails from 701 on")


def test_it_says_that_nothing_grows() -> None:
    found = growth.find(b"some words here", programs.indifferent, max_size=3000, hang_timeout=1, seconds=1e9)
    assert isinstance(found, NoModel) and "nothing of the input" in found.reason
    empty = growth.find(b"", programs.trim, max_size=3000, hang_timeout=1, seconds=1e9)
    assert isinstance(empty, NoModel)


def test_the_answer_is_json_that_makes_the_inputs_again() -> None:
    import json

    found = grown(b"\xff" + b" " * 40, programs.trim)
    pattern = json.loads(json.dumps(found.as_json(), allow_nan=False))["pattern"]
    made = pattern["before"] + pattern["unit"] * 5 + pattern["after"]
    assert made.encode("latin-1") == found.pattern.input(5)


@pytest.mark.parametrize(("unit", "name"), [
    (b" ", "spaces"),
    (b"\t", "tabs"),
    (b"a", 'letters "a"'),
    (b"7", 'digits "7"'),
    (b"(", 'characters "("'),
    (b"\xfe", "bytes 0xfe"),
    (b"ab", 'repetitions of "ab"'),
    (b"x y\n", 'lines "x y"'),
    (b"  ", "spaces, 2 at a time"),
    (b"\xff\x00", "repetitions of bytes ff 00"),
    ("ž".encode(), 'repetitions of "ž"'),
    (b"\x1b[1m", r'repetitions of "\\x1b[1m"'.replace("\\\\", "\\")),
])  # fmt: skip
def test_parts_are_named_as_people_read_them(unit: bytes, name: str) -> None:
    assert name_of(unit) == name


def test_repetitions_are_found_with_their_smallest_part() -> None:
    found = runs(b"xx" + b"abc" * 20 + b"  y")
    assert (found[0].start, found[0].period, found[0].times) == (2, 3, 20)
    assert smallest_period(b"abab") == 2 and smallest_period(b"aba") == 3


@pytest.mark.parametrize("data", [b"((1))", b"<a><a></a></a>", b"3 1 2 5 9", b"a", b"\0\0\0\0"])
def test_each_candidate_makes_longer_inputs_of_the_size_that_it_says(data: bytes) -> None:
    for pattern in candidates(data):
        sizes = [len(pattern.input(times)) for times in (1, 2, 5, 30)]
        assert sizes == sorted(set(sizes))
        largest = pattern.largest(1000)
        assert len(pattern.input(max(1, largest))) <= max(1000 * 2, sizes[0])


# -- Delta debugging of inputs -----------------------------------------------------------------------


def test_it_leaves_what_the_cost_depends_on_and_nothing_else() -> None:
    data = b"#include <stdio.h>\nint main(void) {\n" + b" " * 300 + b"return 7;\n}\nint other;\n"
    before = programs.trim(data, 1)
    found = minimize(data, keeps_cost(programs.trim, before, 1))
    assert set(found.data) == {ord(" ")}
    assert 0.9 * before.total <= programs.trim(found.data, 1).total <= before.total
    assert found.before == len(data) and found.complete
    assert found.tests == sum(stage.tests for stage in found.stages) < 200


@pytest.mark.parametrize("needle", [b"k7", b"\0\xff\0"])
def test_it_works_with_any_condition(needle: bytes) -> None:
    data = b"some words\nand lines " + needle + b" between others\n\0\x01" * 20
    assert minimize(data, lambda candidate: needle in candidate).data == needle


def test_what_is_left_cannot_lose_a_single_byte() -> None:
    def keeps(data: bytes) -> bool:
        return data.count(b"(") == data.count(b")") and data.count(b"(") >= 3

    found = minimize(b"f(x, g(y), h(1, 2)) + (3 * (4 + 5))", keeps)
    assert len(found.data) <= 8
    for at in range(len(found.data)):
        assert not keeps(found.data[:at] + found.data[at + 1 :])


def test_a_hang_remains_a_hang_and_a_fault_the_same_fault() -> None:
    hang = b"spse1poailcospse1poailcospse1poailco"
    found = minimize(hang, keeps_cost(programs.email, programs.email(hang, 1), 1))
    assert programs.email(found.data, 1).outcome == "hang"
    assert len(found.data) == 22  # 2^22 > 3,000,000
    assert set(found.data) <= set(b"a0")

    fault = b"x" * 50 + b"((" * 400 + b"y" * 50
    found = minimize(fault, keeps_cost(programs.parser, programs.parser(fault, 1), 1))
    assert found.data == b"(" * 701
    assert not keeps_cost(programs.parser, programs.Ran("fault", 0, 0.0, -6), 1)(fault)


def test_runs_and_time_are_limited_and_that_is_said() -> None:
    data = b" ".join(b"w%d" % number for number in range(400))
    before = programs.hash_table(data, 1)
    seen: list[MinimizationProgress] = []
    found = minimize(data, keeps_cost(programs.hash_table, before, 1), tests=40, report=seen.append)
    assert not found.complete and found.tests == len(seen) <= 40
    assert programs.hash_table(found.data, 1).total >= 0.9 * before.total
    assert seen[-1].size == len(found.data)

    ticks = count()
    found = minimize(data, lambda _: False, seconds=50, clock=lambda: float(next(ticks)))
    assert not found.complete and found.data == data


def test_an_empty_input_is_a_possible_answer() -> None:
    assert minimize(b"abc", lambda _: True).data == b"" and minimize(b"", lambda _: True).data == b""


# -- What became of a result, by what measuring it again says ----------------------------------------


BEFORE = Confirmation("Degradation", 1.0, "m", "time", 10.0, 9.0, 11.0, 10)
SLOW_ONE = Result("f", SLOW, "s", "s", (), 9, 9000, 24.0, 0.1, 1.0, 3, confirmation=BEFORE)


def ratio(change: str, middle: float, half: float = 0.5) -> findings.MemberTest:
    said = Confirmation(change, 1.0, "m", "time", middle, middle - half, middle + half, 10)
    return findings.MemberTest("ok", said)


@pytest.mark.parametrize(("tested", "state"), [
    (ratio("NoChange", 1.0), "repaired"),
    (ratio("Optimization", 0.8, 0.1), "repaired"),
    (ratio("MaybeDegradation", 1.1), "unknown"),
    (ratio("Degradation", 5.0), "improved"),
    (ratio("Degradation", 9.5), "remains"),
    (ratio("SevereDegradation", 10.2), "remains"),
    (ratio("SevereDegradation", 20.0), "worse"),
    (findings.MemberTest("hang", ending="did not end within 10 s"), "worse"),
    (findings.MemberTest("fault", ending="was killed by SIGSEGV"), "worse"),
])  # fmt: skip
def test_the_times_of_a_slow_input_decide_by_their_intervals(tested: findings.MemberTest, state: str) -> None:
    assert judged(SLOW_ONE, tested, None)[0] == state


@pytest.mark.parametrize(
    ("lines", "state"), [(1.0, "repaired"), (3.0, "improved"), (24.0, "remains"), (40.0, "worse")]
)
def test_executed_lines_decide_where_no_time_does(lines: float, state: str) -> None:
    unknown = findings.MemberTest("ok", Confirmation("Unknown", 0.0, "m", reason="too few runs"))
    assert judged(replace(SLOW_ONE, confirmation=None), unknown, lines)[0] == state
    assert judged(SLOW_ONE, unknown, None) == ("unknown", "too few runs")
    assert judged(SLOW_ONE, ratio("MaybeDegradation", 900.0), lines)[0] == state


def test_hangs_and_faults_are_repaired_once_the_program_ends() -> None:
    hang, fault = replace(SLOW_ONE, kind=HANG), replace(SLOW_ONE, kind=FAULT)
    assert judged(hang, findings.MemberTest("hang", ending="e"), None) == ("remains", "e")
    assert judged(fault, findings.MemberTest("fault", ending="e"), None) == ("remains", "e")
    assert judged(fault, findings.MemberTest("hang", ending="e"), None)[0] == "worse"
    assert judged(hang, ratio("Degradation", 50.0), None)[0] == "improved"
    assert judged(hang, ratio("NoChange", 1.0), None)[0] == "repaired"
    assert judged(fault, ratio("NoChange", 1.0), None)[0] == "repaired"
