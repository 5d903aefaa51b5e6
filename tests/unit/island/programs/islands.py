"""A program with islands inside: checks of them, each a function. It tells what became of each, as JSON.

islands.py native|python FOLDER
"""

from __future__ import annotations

import builtins
import io
import json
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from perun.island.island import Island, record_here
from perun.island.layout import APIS

WRITE = "with open(path, 'w') as file:\n    for _ in range(count): file.write('12345678')\n"


def amounts(island: Island) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in island.usage:
        if row.resource:
            found[row.subtype] = found.get(row.subtype, 0) + row.amount
    return found


def context(tmp_path: Path, name: str, count: int) -> dict[str, Any]:
    return {"path": str(tmp_path / name), "count": count}


def test_the_context_is_that_of_the_code(tmp_path: Path) -> None:
    given = {"x": 20}
    found = Island("y = x * 2 + 2", "answer").evaluate(given)
    assert found is given
    assert found["y"] == 42


def test_contexts_a_b_and_a_again_are_wrapped_once(tmp_path: Path) -> None:
    one, two = Island(WRITE, "A"), Island(WRITE, "B")
    a, b = context(tmp_path, "a", 3), context(tmp_path, "b", 5)
    one.evaluate(a)
    wrapped = (builtins.open, io.open, io.TextIOWrapper.write, threading.Thread.start)
    two.evaluate(b)
    one.evaluate(a)
    assert (builtins.open, io.open, io.TextIOWrapper.write, threading.Thread.start) == wrapped
    assert (amounts(one)["filewrite"], amounts(one)["filesopened"]) == (48, 2)
    assert (amounts(two)["filewrite"], amounts(two)["filesopened"]) == (40, 1)
    assert len([call for call in one.calls() if APIS[call.api].name == "file.write"]) == 6
    assert (tmp_path / "a").read_text() == "12345678" * 3


def test_what_runs_outside_is_not_of_the_island(tmp_path: Path) -> None:
    island = Island(WRITE, "A")
    island.evaluate(context(tmp_path, "a", 1))
    with open(tmp_path / "outside", "w") as file:
        file.write("x" * 100)
    assert amounts(island)["filewrite"] == 8


def test_an_island_in_an_island_counts_for_itself(tmp_path: Path) -> None:
    inner = Island(WRITE, "inner")
    outer = Island("run(inside)\nwith open(path, 'w') as file: file.write('1')", "outer")
    outer.evaluate({"run": inner.evaluate, "inside": context(tmp_path, "a", 2), "path": str(tmp_path / "b")})
    assert amounts(inner)["filewrite"] == 16
    assert amounts(outer)["filewrite"] == 1


def test_threads_belong_to_the_island_that_started_them(tmp_path: Path) -> None:
    code = (
        "import threading\n"
        "def work(n):\n"
        "    with open(f'{path}{n}', 'w') as file:\n"
        "        for _ in range(25): file.write('12345678')\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "for one in threads: one.start()\n"
    )
    island = Island(code, "A")
    made = island.evaluate(context(tmp_path, "a", 0))
    Island("for one in threads: one.join()", "B").evaluate(made)
    assert amounts(island)["filewrite"] == 800
    assert len({row.thread for row in island.usage if row.subtype == "filewrite"}) == 4


def test_what_the_code_raises_passes_through_and_ends_the_evaluation(tmp_path: Path) -> None:
    island = Island(WRITE + "1 / 0", "A")
    try:
        island.evaluate(context(tmp_path, "a", 2))
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("it raised nothing")
    (tmp_path / "b").write_text("x" * 100)
    assert amounts(island)["filewrite"] == 16


def test_two_islands_of_one_name_are_two(tmp_path: Path) -> None:
    one, two = Island(WRITE, "A"), Island(WRITE, "A")
    one.evaluate(context(tmp_path, "a", 1))
    two.evaluate(context(tmp_path, "a", 2))
    assert (amounts(one)["filewrite"], amounts(two)["filewrite"]) == (8, 16)


def test_time_of_an_island_is_what_its_evaluations_took(tmp_path: Path) -> None:
    island = Island("import time\ntime.sleep(0.02)\nsum(range(100_000))", "A")
    island.evaluate({})
    island.evaluate({})
    (everything,) = island.consumption[-1:]
    assert everything.seconds["sleep"] >= 0.04
    assert everything.seconds["cpu"] > 0
    before = everything.live
    sum(range(100_000))
    assert round(island.consumption[-1].live, 9) == round(before, 9), "time goes on outside"


def test_an_island_that_was_not_evaluated_used_nothing(tmp_path: Path) -> None:
    island = Island("pass", "A")
    assert (island.usage, list(island.calls())) == ([], [])
    assert [one.live for one in island.consumption] == [0]


def main() -> None:
    native, folder = sys.argv[1:]
    record_here(native=None if native == "native" else False)
    told = {}
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            place = Path(folder) / name
            place.mkdir()
            try:
                check(place)
                told[name] = ""
            except BaseException:
                told[name] = traceback.format_exc()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
