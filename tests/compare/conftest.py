"""A project whose program costs what a file says, counted by a collector: verdicts without clocks."""

import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from made_suite import COSTS, made_suite
from perun.history.check.report import Comparison
from perun.repository import trust
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.compare.compare import CompareOutcome, compare
from perun.running.compare.plan import CompareOptions, plan
from shared import conftest_of, folder_of_run, made_once

_cli = conftest_of("cli")
command, environment, perun = _cli.command, _cli.environment, _cli.perun

COLLECTOR = '''
from perun.profile.factory import Profile
from perun.plugin.params import NoParams, to_mapping


class Counter:
    """Counts what the file `cost` of the version says, and notes each run in the file RECORD."""

    name = "counter"
    help = "Counts what a file says."
    Params = NoParams

    def collect(self, run, params, ctx):
        amount = int((run.cwd / "cost").read_text())
        with open(run.environ["RECORD"], "a") as file:
            file.write(f"{amount}\\n")
        header = {"type": "instructions", "units": {"instructions": ""}, "cmd": run.cmd, "args": run.args}
        profile = Profile({
            "header": {**header, "workload": run.workload},
            "collector_info": {"name": self.name, "params": to_mapping(params)},
            "postprocessors": [],
        })
        profile.update_resources([{"amount": amount, "type": "instructions", "uid": "main"}])
        return profile


PLUGIN = Counter
'''


@dataclass
class Project:
    """A git repository with Perun, and the answers of `perun compare` in it."""

    git: Any
    record: Path
    run: Callable[..., Any]
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.git.path)

    @property
    def repository(self) -> Repository:
        """Opened anew, with the current configuration."""
        return open_repository(self.path, self.environ)

    def configure(self, text: str) -> None:
        """Write the local configuration, which the user trusts."""
        (self.path / ".perun/local.yml").write_text(f"vcs: {{type: git, url: ..}}\n{text}")
        self.trust()

    def trust(self) -> None:
        """Trust what the repository runs."""
        repo = self.repository
        trust.grant(repo.root, repo.config, repo.environ)

    def compare(self, base: str | None = None, head: str | None = None, **options: Any) -> CompareOutcome:
        """What `perun compare` answers."""
        repo = self.repository
        wanted = CompareOptions(base, head, **options)
        return compare(repo, plan(repo, wanted), wanted, rng=random.Random(1))

    def only(self, base: str | None = None, head: str | None = None, **options: Any) -> Comparison:
        """The only comparison of the answer."""
        (found,) = self.compare(base, head, **options).report.comparisons
        return found

    @property
    def leftovers(self) -> list[str]:
        """What there is for the time of a run only: working copies and scratch folders."""
        temporary = self.path / ".perun/tmp"
        left = [one.name for one in temporary.iterdir()] if temporary.exists() else []
        listed = self.git.git("worktree", "list", "--porcelain").split("\n\n")[1:]
        return [*left, *listed]

    def registered(self, version: str) -> list[dict[str, Any]]:
        """The profiles of a version, as they are stored."""
        objects = self.repository.store.objects
        return [dict(objects.get(entry.checksum)) for entry in self.entries(version)]

    def entries(self, version: str) -> list[Any]:
        """What the index of a version lists."""
        return list(self.repository.store.indexes.read(self.git.git("rev-parse", version)))

    @property
    def pending(self) -> list[dict[str, Any]]:
        """The pending profiles."""
        store = self.repository.store.pending
        return [dict(store.load(info.realpath)) for info in store.list()]

    def perun(self, *arguments: str) -> Any:
        """Run the command; it may fail."""
        return self.run(*arguments, cwd=self.path, env={"RECORD": str(self.record)}, check=False)


@pytest.fixture(scope="session")
def _compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_run(tmp_path_factory) / "compared"


@pytest.fixture
def project(git_repository, tmp_path, perun, _compared) -> Project:
    """Three versions whose costs are 1000, 1000 and 1100; the matrix counts them."""

    def make(folder: Path) -> None:
        made = git_repository("template")
        for number, cost in enumerate((1000, 1000, 1100), 1):
            made.commit(f"Version {number}", {"cost": f"{cost}\n", "run.sh": "exit 0\n", "n": str(number)})
        init(made.path, os.environ, vcs_type="git")
        plugins = made.path / ".perun/plugins/collect"
        plugins.mkdir(parents=True)
        (plugins / "counter.py").write_text(COLLECTOR)
        shutil.move(made.path, folder / "project")

    repository = git_repository(commits=3, template=made_once(_compared, make) / "project")
    record = tmp_path / "record"
    found = Project(repository, record, perun, {**os.environ, "RECORD": str(record)})
    found.configure("cmds: [sh run.sh]\ncollectors: [{name: counter}]\n")
    return found


@pytest.fixture
def suite(project: Any) -> Any:
    """Two versions: `parse` has become 5 % slower, `old` went, and `new` came."""
    later = {name: cost for name, cost in COSTS.items() if name != "old"} | {"parse": 1.05, "new": 1.0}
    return made_suite(project, (COSTS, later))
