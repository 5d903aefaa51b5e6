"""Profiles that are saved together, in real git repositories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from perun.profile.factory import Profile
from perun.repository.init import init
from perun.repository.registering import SaveRequest, register_all, save, save_together
from perun.repository.repository import open_repository
from perun.store import Store
from perun.store.pending import link


def _profile(args: str = "", amount: int = 1) -> Profile:
    header = {"type": "time", "cmd": "app", "args": args, "workload": "", "units": {"time": "ms"}}
    profile = Profile({"header": header, "collector_info": {"name": "time", "params": {}}})
    profile.update_resources([{"uid": "f", "type": "time", "amount": amount}])
    return profile


def test_profiles_that_are_dated_back_have_names_of_their_own(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    local = git.path / ".perun" / "local.yml"
    local.write_text("vcs: {type: git, url: ..}\nformat: {output_profile_template: fixed}\n")
    repo = open_repository(git.path, os.environ)
    head, now = repo.vcs.get_minor_head(), int(time.time())
    for age in (60, 30, 10):  # as sessions of one comparison, which are all saved at its end
        save_together(repo, [SaveRequest(_profile(amount=age), head, registers=True, moment=now - age)])
    names = [entry.path for entry in repo.store.indexes.read(head)]
    assert sorted(names) == ["fixed(1).perf", "fixed(2).perf", "fixed.perf"]


def test_many_profiles_of_several_versions(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=2)
    init(git.path, os.environ)
    repo = open_repository(git.path, os.environ)
    first, second = repo.version("HEAD~1"), repo.version("HEAD")
    wanted = [
        SaveRequest(_profile(args=str(number)), version, version == first, 1_700_000_000)
        for number in range(3)
        for version in (first, second)
    ]
    paths = save_together(repo, wanted)
    assert len(set(paths)) == 6
    registered, pending = repo.store.indexes.read(first), repo.store.pending.list()
    assert {one.path for one in registered} == {path.name for path in paths[::2]}
    assert {one.source for one in pending} == {path.name for path in paths[1::2]}
    assert {one.time for one in [*registered, *pending]} == {1_700_000_000}
    assert sorted(repo.store.objects.get(one.checksum)["header"]["args"] for one in registered) == list("012")
    assert repo.store.indexes.read(second) == []


def test_a_name_that_was_taken_meanwhile(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    repo = open_repository(git.path, os.environ)
    profiles = {save(repo, _profile(args=name), git.head, name=name): _profile(args=name)
                for name in ("one", "other")}  # fmt: skip
    path = next(iter(profiles))
    link(repo.store, git.head, [(_profile(args="theirs"), path.name, path.stat().st_mtime)])
    names = register_all(repo, profiles, git.head)
    assert list(names.values()) == ["one(1).perf", "other.perf"]
    known = {one.path: one.head.args for one in repo.store.indexes.read(git.head)}
    assert known == {"one.perf": "theirs", "one(1).perf": "one", "other.perf": "other"}
    assert repo.store.pending.list() == []


def test_a_store_alone_has_the_limit_of_the_configuration(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    assert Store(git.path).limit == open_repository(git.path, os.environ).store.limit
