"""Profiles that are saved together, in real git repositories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from perun.profile.factory import Profile
from perun.repository.init import init
from perun.repository.registering import SaveRequest, save_together
from perun.repository.repository import open_repository
from perun.store import Store


def test_profiles_that_are_dated_back_have_names_of_their_own(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    local = git.path / ".perun" / "local.yml"
    local.write_text("vcs: {type: git, url: ..}\nformat: {output_profile_template: fixed}\n")
    repo = open_repository(git.path, os.environ)
    head, now = repo.vcs.get_minor_head(), int(time.time())
    for age in (60, 30, 10):  # as sessions of one comparison, which are all saved at its end
        header = {"type": "time", "cmd": "app", "args": "", "workload": "", "units": {"time": "ms"}}
        profile = Profile({"header": header, "collector_info": {"name": "time", "params": {}}})
        profile.update_resources([{"uid": "f", "type": "time", "amount": age}])
        save_together(repo, [SaveRequest(profile, head, registers=True, moment=now - age)])
    names = [entry.path for entry in repo.store.indexes.read(head)]
    assert sorted(names) == ["fixed(1).perf", "fixed(2).perf", "fixed.perf"]


def test_a_store_alone_has_the_limit_of_the_configuration(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    assert Store(git.path).limit == open_repository(git.path, os.environ).store.limit
