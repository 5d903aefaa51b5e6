"""Named tuples of `perun.core.annotations` are those of `typing`, in all that is used of them."""

from __future__ import annotations

import copy
import json
import pickle
import typing
from types import SimpleNamespace

import pytest

from perun.core import annotations

SOURCE = '''
class Point(NamedTuple):
    """A point."""
    x: int
    y: "list[int]" = ()
    unit: str = "ms"
    @property
    def double(self): return 2 * self.x

class Named(Point):
    def __new__(cls, x): return super().__new__(cls, x, unit="s")

class Empty(NamedTuple):
    pass
'''


def classes(module: object) -> SimpleNamespace:
    scope = {"NamedTuple": vars(module)["NamedTuple"], "__name__": __name__}
    exec(SOURCE, scope)
    return SimpleNamespace(**scope)


OURS, THEIRS = classes(annotations), classes(typing)
Point = OURS.Point


@pytest.mark.parametrize(
    "use",
    [
        lambda of: repr(of.Point(1)),
        lambda of: repr(of.Point(unit="s", x=1)),
        lambda of: of.Point(2, [1]).double,
        lambda of: of.Point(2)._replace(y=3) == (2, 3, "ms"),
        lambda of: list(of.Point(2)._asdict().items()),
        lambda of: of.Point._make([1, 2, 3]).unit,
        lambda of: (of.Point._fields, of.Point._field_defaults, of.Point.__match_args__, of.Point.__doc__),
        lambda of: (repr(of.Named(4)), of.Named(4)._fields, isinstance(of.Named(4), of.Point)),
        lambda of: (of.Empty(), of.Empty._fields),
        lambda of: json.dumps({"a": of.Point(1)}),
        lambda of: (hash(of.Point(1)), of.Point(1) < of.Point(2), [*of.Point(1)]),
        lambda of: copy.deepcopy(of.Point(1)),
        lambda of: hasattr(of.Point(1), "__dict__"),
    ],
)
def test_they_are_those_of_typing(use: typing.Any) -> None:
    assert use(OURS) == use(THEIRS)


@pytest.mark.parametrize(
    "use",
    [
        lambda of: of.Point(),
        lambda of: of.Point(1, 2, 3, 4),
        lambda of: of.Point(1, z=2),
        lambda of: of.Point._make([1]),
        lambda of: of.Point(1)._replace(z=1),
        lambda of: of.Empty(1),
        lambda of: setattr(of.Point(1), "x", 2),
    ],
)
def test_they_refuse_what_those_of_typing_refuse(use: typing.Any) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as theirs:
        use(THEIRS)
    with pytest.raises(theirs.type):
        use(OURS)


def test_they_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Point(1, [2]))) == Point(1, [2])
