"""The profiles of a trial: one of each side, or one of each run of a collector, marked as one session.

They are saved together: there are both sides or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perun.porcelain import saving
from perun.porcelain.compare.instruments import Reading
from perun.porcelain.compare.metrics import PEAK, clock
from perun.porcelain.compare.plan import Case, Side
from perun.porcelain.compare.trial import Trial
from perun.porcelain.repository import Repository
from perun.porcelain.timed_runs import time_profile
from perun.profile import session
from perun.profile.factory import Profile
from perun.profile.head import Head
from perun.profile.helpers import ProfileInfo


class _Made(NamedTuple):
    """A profile of a side, and its number among those of that side."""

    side: Side
    profile: Profile
    number: int


class Stored(NamedTuple):
    """The newest profile of each side, and how many `profiles` there are of both."""

    base: ProfileInfo
    head: ProfileInfo
    profiles: int


def profiles_of(
    repo: Repository, case: Case, trial: Trial, side: Side, machine_state: Mapping[str, Any]
) -> list[Profile]:
    """What was measured of one side: the profiles of a collector, one for each run; or one of the times of
    all runs, and before it one of their peaks of memory where these were measured."""
    readings = trial.readings(side.name)
    collected = [reading.profile for reading in readings if reading.profile is not None]
    if collected:
        return collected
    samples = [reading.sample for reading in readings if reading.sample is not None]
    times = time_profile(repo, case.job, samples, machine_state, warmup=1)
    return [*_peaks(times, readings, case), times]


def _peaks(times: Profile, readings: Sequence[Reading], case: Case) -> Iterator[Profile]:
    """A profile of the peaks, apart from that of the times: not every comparison measures them."""
    peak = clock(case.job.cmd, PEAK)
    if not all(peak in reading.values for reading in readings):
        return
    header = {**times["header"], "type": peak.type, "units": {peak.type: peak.unit}}
    info = {"name": PEAK, "params": {"repeat": len(readings)}}
    same = {key: times[key] for key in ("machine", "workload_generator") if key in times}
    profile = Profile({"header": header, "collector_info": info, "postprocessors": [], **same})
    common = {"type": peak.type, "subtype": peak.subtype, "uid": peak.uid}
    profile.update_resources(
        [
            {"amount": int(reading.values[peak]), **common, "order": order}
            for order, reading in enumerate(readings, 1)
        ]
    )
    yield profile


def store(
    repo: Repository,
    sides: Sequence[Side],
    made: Mapping[str, Sequence[Profile]],
    about: Mapping[str, Any],
    last: int,
) -> Stored:
    """Store the profiles of both sides, and register those of versions; those of uncommitted changes are
    pending.

    :param made: the profiles by the name of the side. :param about: what the header of each says of the
        session, its `id` among it. :param last: the time of the newest profile of each side.
    :raises PerunError: where the store refuses; then nothing is left.
    """
    marked = [_marked(side, profile, number, about) for side in sides
              for number, profile in enumerate(made[side.name])]  # fmt: skip
    # A second apart, so that those of both sides are listed in the order of measuring.
    moments = [last - len(made[one.side.name]) + 1 + one.number for one in marked]
    paths = saving.save_together(
        repo,
        [
            saving.Wanted(one.profile, one.side.version.checksum, not one.side.uncommitted, moment)
            for one, moment in zip(marked, moments, strict=True)
        ],
    )
    newest = {
        one.side.name: ProfileInfo(path.name, str(path), Head.of(one.profile), moment)
        for one, path, moment in zip(marked, paths, moments, strict=True)
    }
    return Stored(newest["base"], newest["head"], len(marked))


def _marked(side: Side, profile: Profile, number: int, about: Mapping[str, Any]) -> _Made:
    """Marked as of the session."""
    session.mark(profile, session.Session(about["id"], side.name, runs_are_rounds=True))
    details = {**about, **profile["header"][session.KEY], "uncommitted": bool(side.uncommitted)}
    profile["header"] = {**profile["header"], session.KEY: details}
    return _Made(side, profile, number)
