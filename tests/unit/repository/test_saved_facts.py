"""Profiles that are saved together."""

from __future__ import annotations

import os
from typing import Any

from perun.profile.factory import Profile
from perun.repository import registering
from perun.repository.init import init
from perun.repository.repository import open_repository
from perun.store.summaries import key_of


def test_facts_know_a_pending_profile_by_the_time_that_it_is_given(git_repository: Any) -> None:
    git = git_repository("saved", commits=1)
    init(git.path, os.environ)
    repo = open_repository(git.path, os.environ)
    header = {"type": "time", "cmd": "./app", "args": "", "workload": "in", "units": {"time": "s"}}
    info = {"name": "time", "params": {}}
    profile = Profile({"header": header, "collector_info": info, "postprocessors": []})
    profile.update_resources([{"amount": 1.5, "uid": "./app", "type": "time", "subtype": "real"}])
    (path,) = registering.save_together(
        repo, [registering.SaveRequest(profile, git.head, False, 1_700_000_000)]
    )
    (pending,) = repo.store.pending.list()
    assert pending.time == 1_700_000_000
    assert pending.source == path.name
    assert repo.store.profile_summaries.of([key_of(pending)])[key_of(pending)].headline is not None
