"""Which cases of a test with several parameters `make test` runs: each value of each parameter at least once.

A test marked `each_value("a", "b c")` has a case for every combination of the values of a with the pairs
of b and c. All of them run in `make test-all`; all but a few are marked slow. Values are combined as evenly
as they can be, so that the cases that stay lie on diagonals of the table and not in its first row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

import pytest

Case = tuple[Hashable, ...]
"""The value of each parameter."""


def mark_the_rest_slow(items: Iterable[pytest.Item]) -> None:
    """Mark those cases of tests marked `each_value` as slow whose values all are shown by other cases."""
    tests: defaultdict[tuple[str, str], list[tuple[pytest.Item, Case]]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("each_value")
        if marker and not item.get_closest_marker("slow"):
            assert isinstance(item, pytest.Function)
            values = item.callspec.params
            case = tuple(tuple(repr(values[name]) for name in axis.split()) for axis in marker.args)
            tests[item.nodeid.partition("::")[0], item.originalname].append((item, case))
    for cases in tests.values():
        stay = covering([case for _, case in cases])
        for position, (item, _) in enumerate(cases):
            if position not in stay:
                item.add_marker(pytest.mark.slow)


def covering(cases: Sequence[Case]) -> set[int]:
    """Positions of a few cases that hold every value of every parameter, each about equally often."""
    values = [set(enumerate(case)) for case in cases]
    used: Counter[tuple[int, Hashable]] = Counter()
    chosen: set[int] = set()
    while missing := set().union(*values).difference(used):
        best = max(
            set(range(len(cases))) - chosen,
            key=lambda i: (len(missing & values[i]), -sum(used[value] for value in values[i])),
        )
        chosen.add(best)
        used.update(values[best])
    return chosen
