"""What exporters share: call stacks with all that they took, and the samples of benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.plugin.params import param
from perun.profile.amounts import TIMES, common_unit, larger_is_better, units
from perun.profile.factory import Profile
from perun.profile.sampled import SAMPLED
from perun.profile.stacks import Stack, stacks_of
from perun.profile.uid import flatten

Note = Callable[[str], None]
_PREFIX: Final = f"{SAMPLED} ("


@dataclass(frozen=True)
class StackParams:
    """Which number of the call stacks is written."""

    of: str = param("", help="The number of the resources; by default all that were sampled, or the amount.")


class StackValues(NamedTuple):
    """Call stacks, the outermost call first.

    :param units: of each value, by its name. :param amounts: of each stack, in the order of `units`.
    """

    units: dict[str, str]
    amounts: dict[Stack, list[float]]


def stack_values(profile: Profile, of: str, note: Note) -> StackValues:
    """The call stacks of the profile, with all that was sampled.

    :param of: the only number that is wanted; empty for all.
    :raises ProfileError: where there are no call stacks.
    """
    unit_of = units(profile)
    traced = next((one for one in profile.groups() if "trace" in one.constants), None)
    constants: Mapping[str, Any] = traced.constants if traced is not None else {}
    kind, subtype = str(constants.get("type", profile.type)), str(constants.get("subtype", ""))
    name = subtype or kind
    header = profile.get("header", {}).get("units", {})
    sampled = [one[len(_PREFIX) : -1] for one in header if one.startswith(_PREFIX)]
    keys = [of] if of else [key if key != name else "amount" for key in sampled] or ["amount"]
    found = StackValues({}, {})
    for place, key in enumerate(keys):
        own = name if key in ("", "amount") else key
        found.units[own] = unit_of(kind, subtype if own == name else own)
        try:
            stacks = stacks_of(profile, key)
        except ProfileError:
            if place or len(keys) == 1:
                raise
            continue
        if stacks.left_out:
            note(f"{stacks.left_out} resources are left out, whose {key} is negative or no number")
        for stack, amount in stacks.amounts.items():
            found.amounts.setdefault(stack, [0] * len(keys))[place] = amount
    return found


def nanoseconds(unit: str) -> float | None:
    """How many nanoseconds a unit has; None where it is none of time."""
    return TIMES[unit] * 1e9 if unit in TIMES else None


class BenchmarkSeries(NamedTuple):
    """The samples of one metric of a benchmark, in the common unit of its kind."""

    name: str
    parameters: str
    type: str
    subtype: str
    unit: str
    samples: list[float]
    larger_is_better: bool

    @property
    def is_time(self) -> bool:
        """Whether it is the time of the benchmark."""
        return self.type == "time" and self.subtype in ("", "real")


def series_of(profile: Profile) -> Iterator[BenchmarkSeries]:
    """What the profile has of benchmarks or commands.

    :raises ProfileError: where it has call stacks, which are no samples of anything.
    """
    header, unit_of = profile.get("header", {}), units(profile)
    better = larger_is_better(profile)
    gathered: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for group in profile.groups():
        if "trace" in group.constants or "timestamp" in group.columns or "amount" not in group.columns:
            raise ProfileError(
                "the profile has no samples of benchmarks",
                "export it as pprof, firefox, speedscope or folded",
            )
        constants = group.constants
        key = (str(flatten(constants.get("uid", ""))), str(constants.get("type", "")),
               str(constants.get("subtype", "")))  # fmt: skip
        order: Any = group.columns.get("order") or range(group.size)
        gathered.setdefault(key, []).extend(zip(order, group.columns["amount"], strict=True))
    if not gathered:
        raise ProfileError("the profile has no resources", "collect or import one")
    name = str(header.get("args") or header.get("cmd") or "benchmark")
    several = len({uid for uid, _, _ in gathered}) > 1
    for (uid, kind, subtype), found in gathered.items():
        factor, unit = common_unit(unit_of(kind, subtype))
        samples = [amount * factor for _, amount in sorted(found)]
        yield BenchmarkSeries(
            uid if several else name, str(header.get("workload", "")), kind, subtype, unit, samples,
            bool({uid, kind, subtype} & better),
        )  # fmt: skip


def program_of(profile: Profile) -> str:
    """The command of the profile with its arguments and workload."""
    header = profile.get("header", {})
    return " ".join(filter(None, (str(header.get(key, "")) for key in ("cmd", "args", "workload"))))
