"""The profiles of a trial: one of each side, or one of each run of a collector, marked as one session.

Both sides are written as pending profiles before one of them is registered, and the signals that interrupt
wait meanwhile. So there are both or none, whatever ends Perun before the first is registered.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.plugin.api import Run
from perun.porcelain import saving
from perun.porcelain.compare.metrics import PEAK, clock
from perun.porcelain.compare.plan import Case, Side
from perun.porcelain.compare.trial import Trial
from perun.porcelain.repository import Repository
from perun.porcelain.run import collecting
from perun.profile import session
from perun.profile.head import Head
from perun.profile.helpers import ProfileInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Made(NamedTuple):
    side: Side
    profile: Profile


class Stored(NamedTuple):
    """The newest profile of each side, and how many `profiles` there are of both."""

    base: ProfileInfo
    head: ProfileInfo
    profiles: int


def profiles_of(
    repo: Repository, case: Case, trial: Trial, side: Side, machine_state: Mapping[str, Any]
) -> list[Profile]:
    """What was measured of one side: a time profile of all runs, or the profiles of the collector."""
    readings = trial.readings(side.name)
    collected = [reading.profile for reading in readings if reading.profile is not None]
    if collected:
        return collected
    collector = repo.registry.get("collect", "time")
    params = collector.Params(warmup=1, repeat=len(readings))
    samples = [reading.sample for reading in readings if reading.sample is not None]
    run = Run(case.job.cmd, case.job.args, case.job.workload)
    profile: Profile = collector.make_profile(run, samples, params)
    peak = clock(case.job.cmd, PEAK)
    if all(peak in reading.values for reading in readings):
        common = {"type": peak.type, "subtype": peak.subtype, "uid": peak.uid}
        amounts = [int(reading.values[peak]) for reading in readings]
        profile.update_resources(
            [{"amount": amount, **common, "order": order} for order, amount in enumerate(amounts, 1)]
        )
        header = profile["header"]
        profile["header"] = {**header, "units": {**header["units"], peak.type: peak.unit}}
    job = replace(case.job, collector=replace(case.job.collector, params=params))
    return [collecting.complete(profile, job, machine_state)]


def store(
    repo: Repository, sides: Sequence[Side], made: Mapping[str, Sequence[Profile]], about: Mapping[str, Any]
) -> Stored:
    """Store the profiles of both sides, and register those of versions; those of uncommitted changes are
    pending.

    :param made: the profiles by the name of the side. :param about: what the header of each says of the
        session, its `id` among it.
    :raises PerunError: where the store refuses; then nothing is left.
    """
    marked = [_marked(side, profile, number, about) for side in sides
              for number, profile in enumerate(made[side.name])]  # fmt: skip
    newest: dict[str, ProfileInfo] = {}
    with _uninterrupted():
        paths: list[Path] = []
        try:
            for one in marked:
                paths.append(saving.save(repo, one.profile, one.side.version.checksum))
        except BaseException:
            repo.store.pending.remove(paths)
            raise
        for one, path in zip(marked, paths, strict=True):
            time = int(path.stat().st_mtime)
            name = path.name
            if not one.side.uncommitted:
                name = saving.register(repo, path, one.profile, one.side.version.checksum)
            newest[one.side.name] = ProfileInfo(name, str(path), Head.of(one.profile), time)
    return Stored(newest["base"], newest["head"], len(marked))


def _marked(side: Side, profile: Profile, number: int, about: Mapping[str, Any]) -> _Made:
    session.mark(profile, about["id"], side.name)
    details = {**profile["header"][session.KEY], **about, "pair": number}
    if side.uncommitted:
        details["uncommitted"] = True
    profile["header"] = {**profile["header"], session.KEY: details}
    return _Made(side, profile)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let interruptions wait until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
