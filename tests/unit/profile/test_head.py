"""The shortest names of benchmarks."""

from __future__ import annotations

import pytest

from perun.profile.head import Configuration, shortest


def named(*commands: str, collector: str = "time") -> list[str]:
    """The names of benchmarks that are written as command, arguments and workload with `|` between."""
    texts = [(one + "||").split("|")[:3] for one in commands]
    found = [Configuration(collector, *text, ()) for text in texts]
    names = shortest(found)
    return [names[one] for one in found]


@pytest.mark.parametrize(
    ("commands", "names"),
    [
        (["./app|-n 5|big.txt"], ["./app"]),
        (["/opt/build/bin/app|-n 5"], ["app"]),
        (["old/app", "new/app"], ["old/app", "new/app"]),
        (["./app|-n 5|big.txt", "./app|-n 5|small.txt"], ["./app big.txt", "./app small.txt"]),
        (["./app|-n 5 -v", "./app|-n 6 -v", "./app|-v"], ["./app -n 5", "./app -n 6", "./app"]),
        (["./app|--fast", "./app", "./other|x"], ["./app --fast", "./app", "./other"]),
        (["python3|bench/sort.py 10", "python3|bench/sort.py 20"], ["sort.py 10", "sort.py 20"]),
        (["python3|-m app 10"], ["python3"]),
        (["./app 10", "./app||10"], ["./app 10", "./app (workload 10)"]),
        (["./app|10|", "./app||10"], ["./app (arguments 10)", "./app (workload 10)"]),
        ([""], ["time"]),
    ],
)
def test_the_program_and_what_differs(commands: list[str], names: list[str]) -> None:
    assert named(*commands) == names


def test_what_else_is_seen_decides() -> None:
    one = Configuration("time", "./app", "", "10", ())
    assert shortest([one, one]) == {one: "./app"}
    other = one._replace(collector="memory")
    assert shortest([one, other]) == {one: "./app", other: "./app"}, "the collector is said beside it"
