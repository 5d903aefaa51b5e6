"""What the environment of a job says of it, and what a forge answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forge_server import REPOSITORY, TOKEN, FakeForge
from pipelines import COUNTED, Pipeline

from perun.core.errors import PerunError
from perun.sharing import forge as forges
from perun.sharing.forge import CheckResult, ForgeError, GitHub, GitLab

SHAS = {name: name * 40 for name in "abcd"}
NONE = "0" * 40


def github(tmp_path: Path, event: Any, url: str = "https://api.github.test", **env: str) -> GitHub:
    """A job with this event."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    named = {"GITHUB_EVENT_PATH": str(path), "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": url}
    return GitHub({**named, "GITHUB_TOKEN": TOKEN, **env})


PULL = {"pull_request": {"number": 7, "head": {"sha": SHAS["a"]}, "base": {"sha": SHAS["b"]}}}


@pytest.mark.parametrize(
    ("event", "checked_out", "base"),
    [
        (PULL, "c", SHAS["c"] + "^1"),  # the merge that the forge has made
        (PULL, "a", SHAS["b"]),  # the head itself
        ({"merge_group": {"base_sha": SHAS["d"]}, "before": SHAS["a"]}, "c", SHAS["d"]),
        ({"before": SHAS["b"]}, "c", SHAS["b"]),
        ({"before": NONE}, "c", ""),  # a new branch
        ({"before": "HEAD; rm"}, "c", ""),
        ([], "c", ""),
    ],
)
def test_the_base_of_a_job_of_github(tmp_path: Path, event: Any, checked_out: str, base: str) -> None:
    assert github(tmp_path, event, GITHUB_SHA=SHAS["c"]).base(SHAS[checked_out]) == base


@pytest.mark.parametrize(
    ("env", "base"),
    [
        ({"CI_MERGE_REQUEST_DIFF_BASE_SHA": SHAS["a"], "CI_COMMIT_BEFORE_SHA": NONE}, SHAS["a"]),
        (
            {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": SHAS["b"], "CI_MERGE_REQUEST_DIFF_BASE_SHA": SHAS["a"]},
            SHAS["b"],
        ),
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "", "CI_COMMIT_BEFORE_SHA": SHAS["c"]}, SHAS["c"]),
        ({"CI_COMMIT_BEFORE_SHA": NONE}, ""),
    ],
)
def test_the_base_of_a_job_of_gitlab(env: dict[str, str], base: str) -> None:
    assert GitLab(env).base(SHAS["d"]) == base


def test_a_merge_request_of_a_fork_has_no_rights_without_a_token() -> None:
    env = {
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8",
        "CI_MERGE_REQUEST_PROJECT_ID": "5",
        "CI_COMMIT_SHA": SHAS["a"],
    }
    own = {**env, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "5"}
    for found, untold in ((env, True), ({**env, "PERUN_TOKEN": TOKEN}, False), (own, False)):
        (subject,) = GitLab(found).subjects(in_folder=True)
        assert subject.untold == untold == bool(subject.why)


@pytest.mark.parametrize(
    "event",
    [
        {"pull_request": {"number": 7, "head": {"sha": "main"}}},
        {"pull_request": {"number": "7/../8", "head": {"sha": SHAS["a"]}}},
        {"workflow_run": {"head_sha": f"{SHAS['a']}/../x", "event": "push"}},
        {"workflow_run": []},
        {},
    ],
)
def test_an_event_that_names_no_commit_is_refused(tmp_path: Path, event: Any) -> None:
    with pytest.raises(PerunError):
        [*github(tmp_path, event).subjects(in_folder=False)]


def test_a_job_of_neither_is_none() -> None:
    assert forges.of({}) is None
    assert isinstance(forges.of({"GITLAB_CI": "true"}), GitLab)
    assert isinstance(forges.of({"GITHUB_ACTIONS": "true"}), GitHub)


def test_the_token_follows_no_redirection(tmp_path: Path, forge: FakeForge) -> None:
    job = github(tmp_path, {}, forge.url, GITHUB_SHA=SHAS["a"])
    forge.trouble("POST", "check-runs", 301, {"Location": f"{forge.url}/blob/1"})
    with pytest.raises(ForgeError, match="redirects to another place"):
        job.check(*job.subjects(in_folder=False), CheckResult("success", "no change", ""))
    assert forge.leaked == [] and forge.asked == [f"POST /repos/{REPOSITORY}/check-runs"]


def test_secrets_are_in_no_message(tmp_path: Path, forge: FakeForge) -> None:
    job = github(tmp_path, {}, forge.url, GITHUB_SHA=SHAS["a"], PERUN_TOKEN="very-secret")
    with pytest.raises(ForgeError) as raised:
        job.check(*job.subjects(in_folder=False), CheckResult("success", "no change", ""))
    assert "very-secret" not in raised.value.message + raised.value.hint


def test_a_clone_without_its_history_says_how_to_get_it(pipeline: Pipeline) -> None:
    head = pipeline.pull_request({"cost": "1300\n"})
    where = pipeline.folder / "shallow"
    origin = f"file://{pipeline.folder / 'origin.git'}"
    pipeline.git(".", "clone", "--quiet", "--depth", "1", origin, "shallow")
    pipeline.git("shallow", "fetch", "--quiet", "--depth", "1", "origin", "refs/pull/7/merge")
    pipeline.git("shallow", "checkout", "--quiet", "--detach", "FETCH_HEAD")
    event = {"pull_request": {"number": 7, "head": {"sha": head}, "base": {"sha": "f" * 40}}}
    sha = pipeline.git("shallow", "rev-parse", "HEAD")
    done = pipeline.action({"args": COUNTED}, "pull_request", event, where, {"GITHUB_SHA": sha})
    assert done.code == 4
    assert "fetch-depth: 0" in done.log and "fetch-depth: 0" in done.summary
