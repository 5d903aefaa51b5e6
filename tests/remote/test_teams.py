"""Teams that use a remote at once, and are killed while they do: nothing is lost, nothing is half done."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from members import here, measure, member

from perun.sharing.remotes import fsck
from perun.store.remote.contract import Remote
from perun.store.remote.pack import FOLDER
from perun.store.remote.reading import RemoteReader

TEAM = Path(__file__).with_name("team.py")
KILLS = 40
"""With each kind of remote; 200 in all."""


class Team:
    """Starts people and waits for them; `members` are their folders."""

    def __init__(self, url: str, room: Path) -> None:
        self.url = url
        self._room = room
        self._profiles = 0
        command = [sys.executable, str(TEAM), url, str(room)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def member(self, name: str) -> SimpleNamespace:
        """A new one, who has no profiles."""
        return member(self._room / name)

    def measure(self, who: SimpleNamespace, count: int) -> None:
        """Register so many new profiles of this member, in all versions in turn."""
        for _ in range(count):
            measure(who, self._profiles)
            self._profiles += 1

    def start(self, verb: str, who: SimpleNamespace) -> int:
        """The number of a process that does it."""
        return self._asked(f"{verb} {who.folder}")

    def wait(self, process: int) -> int:
        """The exit code of the process."""
        return self._asked(f"wait {process}")

    def do(self, verb: str, who: SimpleNamespace) -> None:
        """Do it, and wait for the end."""
        assert self.wait(self.start(verb, who)) == 0

    def _asked(self, line: str) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@contextmanager
def team_of(url: str, room: Path) -> Iterator[Team]:
    team = Team(url, room)
    with team.process:
        yield team


def severities(who: Any, remote: Remote) -> set[str]:
    """Those of what `perun fsck` finds at the remote."""
    return {finding.severity for finding in fsck(who, remote)}


@pytest.mark.slow
def test_eight_who_push_fifty_profiles_each_at_once(url: str, remote: Remote, tmp_path: Path) -> None:
    with team_of(url, tmp_path) as team:
        writers = [team.member(f"writer{number}") for number in range(8)]
        for writer in writers:
            team.measure(writer, 50)
        processes = [team.start("push_by_version", writer) for writer in writers]
        assert [team.wait(one) for one in processes] == 8 * [0]
        reader = team.member("reader")
        team.do("pull", reader)
        assert here(reader) == here(*writers) and len(here(reader)) == 400
        assert severities(reader, remote) == set()


@pytest.mark.slow
def test_killed_members_lose_nothing(url: str, remote: Remote, tmp_path: Path) -> None:
    """Two push, one pulls and one cleans up, always several at once, each killed at a random moment."""
    rng = random.Random(20261123)
    with team_of(url, tmp_path) as team:
        first, second, reader, cleaner = map(team.member, ("first", "second", "reader", "cleaner"))
        team.measure(first, 3)
        began = time.monotonic()
        for verb, who in (("push", first), ("pull", reader), ("clean", cleaner)):
            team.do(verb, who)
        longest = time.monotonic() - began
        told = here(first)
        seen = RemoteReader(remote)
        killed = rounds = 0
        while killed < KILLS:
            rounds += 1
            assert rounds < 10 * KILLS
            team.measure(first, 1)
            team.measure(second, 1)
            jobs = [("push", first), ("pull", reader), rng.choice([("push", second), ("clean", cleaner)])]
            rng.shuffle(jobs)
            running = [(verb, who, team.start(verb, who)) for verb, who in jobs]
            for _verb, _who, process in running:
                time.sleep(rng.uniform(0, longest / 2))
                # Alone, so that git goes on for a while, or with the processes of git that it has started.
                rng.choice([os.kill, os.killpg])(process, signal.SIGKILL)
            for _verb, _who, process in running:
                os.killpg(process, signal.SIGKILL)
            before = set(told)
            codes = [team.wait(process) for _verb, _who, process in running]
            for (verb, who, _process), code in zip(running, codes, strict=True):
                assert code in (0, -signal.SIGKILL)
                killed += code != 0
                if verb == "push" and code == 0:
                    told |= here(who)
                if verb == "pull" and code == 0:
                    assert before <= here(who)
            longest *= 0.9 if 0 in codes else 1.1
            assert told <= {one.entry for one in seen.refresh()}
            assert here(reader) <= here(first, second)
            assert {finding.severity for finding in reader.store.fsck()} <= {"info"}
            if rounds % 10 == 0:
                assert severities(reader, remote) <= {"info"}
        for verb, who in (("push", first), ("push", second), ("clean", cleaner), ("pull", reader)):
            team.do(verb, who)
        assert here(reader) == here(first, second)
        assert severities(reader, remote) == set()
        assert {finding.severity for finding in reader.store.fsck()} <= {"info"}  # caches that are old
        union = RemoteReader(remote).refresh()
        left = {one.key.removeprefix(FOLDER) for one in remote.list(FOLDER)}
        assert left == union.needed().keys() == union.sizes().keys()
        assert not list(tmp_path.glob("remote/**/.tmp-*"))
