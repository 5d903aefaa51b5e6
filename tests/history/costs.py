"""Histories of commits whose cost is a number in a file, which a collector reads and notes."""

import os
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perun.repository import trust
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.bisect.bisect import bisect
from perun.running.bisect.data import BisectRequest, BisectResult

COLLECTOR = '''
import random
import time
from pathlib import Path

from perun.core.errors import JobFailed
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile
from dataclasses import dataclass


@dataclass(frozen=True)
class Params:
    noise: float = param(0.0, help="Standard deviation of the logarithm.")


class Counter:
    """Tells what the file `cost` of the version says, of `main` half of it, and notes the run in RECORD."""

    name = "counter"
    help = "Counts what a file says."
    Params = Params

    def collect(self, run, params, ctx):
        amount = float((run.cwd / "cost").read_text())
        with open(run.environ["RECORD"], "a+") as file:
            file.seek(0)
            number = len(file.readlines())
            file.write(f"{run.minor_version[:12]}\\n")
        stop = Path(run.environ["RECORD"] + ".stop-runs")
        if stop.exists() and stop.read_text() == str(number + 1):
            Path(run.environ["RECORD"] + ".stopped").touch()
            time.sleep(600)
        if amount < 0:
            raise JobFailed("it crashes")
        kind = "mixed" if params.noise else "instructions"
        if params.noise:
            amount *= random.Random(number).lognormvariate(0, params.noise)
        header = {"type": kind, "units": {kind: ""}, "cmd": run.cmd, "args": run.args}
        profile = Profile({
            "header": {**header, "workload": run.workload},
            "collector_info": {"name": self.name, "params": to_mapping(params)},
            "postprocessors": [],
        })
        profile.update_resources([
            {"amount": amount / 2, "type": kind, "subtype": "exclusive", "uid": uid}
            for uid in ("main", "sort")
            if amount or uid == "main"
        ])
        return profile


PLUGIN = Counter
'''


@dataclass
class History:
    """A repository, and its commits along first parents, the oldest first."""

    path: Path
    record: Path
    commits: Sequence[str]
    environ: Mapping[str, str]
    run: Callable[..., Any]

    @property
    def repository(self) -> Repository:
        return open_repository(self.path, self.environ)

    def bisect(
        self, good: int | str | None = None, bad: int | str | None = None, **asked: Any
    ) -> BisectResult:
        resume = asked.pop("resume", False)
        ends = [self.commits[one] if isinstance(one, int) else one for one in (good, bad)]
        if not resume and not asked.get("script"):
            asked.setdefault("metric", "counter")
        return bisect(self.repository, BisectRequest(*ends, **asked), resume=resume, rng=random.Random(1))

    @property
    def runs(self) -> list[int]:
        """The number of the commit of each run of the collector."""
        numbers = {checksum[:12]: number for number, checksum in enumerate(self.commits)}
        lines = self.record.read_text().split() if self.record.exists() else []
        return [numbers[line] for line in lines]

    @property
    def leftovers(self) -> list[str]:
        """What a bisection needs while it runs."""
        journals = self.path / ".perun/bisections"
        return [*self.leftovers_but_journals, *(one.name for one in journals.iterdir() if journals.exists())]

    @property
    def leftovers_but_journals(self) -> list[str]:
        """The working copies and temporary files that are there."""
        listed = self.git("worktree", "list", "--porcelain").split("\n\n")[1:]
        return [*(one.name for one in (self.path / ".perun/tmp").iterdir()), *listed]

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def perun(self, *arguments: str) -> Any:
        """Run the command; it may fail."""
        return self.run(*arguments, cwd=self.path, env={"RECORD": str(self.record)}, check=False)


def make_history(
    base: Path, perun: Callable[..., Any], costs: Sequence[float | None], *, noise: float = 0.0
) -> History:
    """A history of costs: one of None is that of a commit that does not build, a negative one crashes.

    :param base: the folder that gets it, and the record of all runs.
    :param perun: runs the command.
    """
    folder = base / "history"
    folder.mkdir()
    environ = {**os.environ, "RECORD": str(base / "record")}
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=folder, check=True)
    stream = "".join(
        f"commit refs/heads/main\nmark :{number + 1}\n"
        f"committer Jane Doe <j@example.org> {1_800_000_000 + 60 * number} +0000\n"
        f"data <<E\nCommit {number}\nE\n"
        f"M 100644 inline cost\ndata <<E\n{0 if cost is None else cost}\nE\n"
        f"M 100644 inline build.sh\ndata <<E\nexit {int(cost is None)}\nE\n\n"
        for number, cost in enumerate(costs)
    )
    importing = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(importing, cwd=folder, input=stream, text=True, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "main"], cwd=folder, check=True)
    params = f", params: {{noise: {noise}}}" if noise else ""
    text = f"cmds: [sh build.sh]\ncollectors: [{{name: counter{params}}}]\n"
    text += "execute: {pre_run: [sh build.sh]}\n"
    found = History(folder, base / "record", (), environ, perun)
    configure(found, text)
    return History(folder, found.record, found.git("rev-list", "--reverse", "main").split(), environ, perun)


def configure(history: History, text: str) -> None:
    """Begin Perun in it, with the collector and this configuration."""
    init(history.path, history.environ, vcs_type="git")
    plugins = history.path / ".perun/plugins/collect"
    plugins.mkdir(parents=True)
    (plugins / "counter.py").write_text(COLLECTOR)
    (history.path / ".perun/local.yml").write_text(f"vcs: {{type: git, url: ..}}\n{text}")
    repo = history.repository
    trust.grant(repo.root, repo.config, repo.environ)
