"""The action and the template, whole: what measures, what tells, and the forge between them."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from pipelines import COUNTED, JobResult, Pipeline

from answer_forms import hold_form
from test_check_formats import validate

SLOWER = {"cost": "1300\n"}
MARK = "<!-- perun ci -->"


def test_a_slower_pull_request_of_a_fork_fails_and_is_told_in_one_comment(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    run, measured = pipeline.measure(head=head)
    assert (measured.code, measured.outputs["code"]) == (1, "1")
    assert "### Performance: 1 slower (1 severe)" in measured.summary
    assert forge.asked == []  # it has no rights, and needs none
    files = {name: data.decode() for name, data in pipeline.reports[run].items()}
    assert set(files) == {"gate.json", "comment.md", "badge.svg", "check.json", "perun.sarif", "junit.xml"}
    for name, file in (("sarif", "perun.sarif"), ("junit", "junit.xml"), ("json", "check.json")):
        validate(name, files[file])
    hold_form(json.loads(files["gate.json"]))

    told = pipeline.report(run, head, "failure")
    assert told.code == 0, told.log
    (check,) = forge.checks
    assert (check["head_sha"], check["conclusion"]) == (head, "failure")
    assert check["output"]["title"] == "1 slower (1 severe)"
    (comment,) = forge.comments
    lines = comment["body"].splitlines()
    assert lines[0] == MARK and len(lines) < 10
    assert "**Severe Degradation** `sh run.sh`: `1.00 k` to `1.30 k`, **+30.0 %**" in comment["body"]
    assert f"{head[:10]} beside " in comment["body"] and f"actions/runs/{run})" in comment["body"]
    assert forge.leaked == []

    head = pipeline.pull_request({"cost": "1000\n", "note": "corrected\n"})
    run, measured = pipeline.measure(head=head)
    assert measured.code == 0
    assert pipeline.report(run, head, "success").code == 0
    (comment,) = forge.comments
    assert comment["body"].startswith(f"{MARK}\n### Performance: no change\n")
    assert (forge.checks[-1]["head_sha"], forge.checks[-1]["conclusion"]) == (head, "success")


def test_a_pull_request_that_changes_nothing_gets_a_check_and_no_comment(pipeline: Pipeline) -> None:
    head = pipeline.pull_request({"note": "text\n"})
    run, measured = pipeline.measure(head=head)
    assert measured.code == 0, measured.log
    assert "comment of #7: not needed" in pipeline.report(run, head, "success").log
    assert pipeline.forge.comments == []
    assert pipeline.forge.checks[0]["conclusion"] == "success"


@pytest.mark.parametrize(
    ("level", "code", "conclusion"), [("degradation", 0, "neutral"), ("inconclusive", 12, "failure")]
)
def test_what_is_not_decided_is_told_with_the_command(
    pipeline: Pipeline, level: str, code: int, conclusion: str
) -> None:
    head = pipeline.pull_request(SLOWER)
    run, measured = pipeline.measure(f"{COUNTED} --fail-on {level} --budget 0.000001", head=head)
    assert measured.code == code, measured.log
    assert pipeline.report(run, head, "failure" if code else "success").code == 0
    (comment,) = pipeline.forge.comments
    base = pipeline.git("keeper", "rev-parse", "main")
    assert f"1 not decided; to decide: `perun compare {base[:10]} {head[:10]} --budget " in comment["body"]
    assert pipeline.forge.checks[0]["conclusion"] == conclusion


def test_what_cannot_be_measured_is_no_degradation(pipeline: Pipeline) -> None:
    head = pipeline.pull_request({"build.sh": "echo no compiler >&2; exit 3\n"})
    run, measured = pipeline.measure(head=head)
    assert measured.code == 8, measured.log
    assert pipeline.report(run, head, "failure").code == 0
    (check,) = pipeline.forge.checks
    assert (check["conclusion"], check["output"]["title"]) == ("failure", "could not be measured")
    assert "**Not measured**: " in pipeline.forge.comments[0]["body"]


def test_a_job_with_rights_tells_at_once_and_that_of_a_fork_says_why_not(pipeline: Pipeline) -> None:
    head = pipeline.pull_request(SLOWER)
    for fork, comments in ((True, 0), (False, 1)):
        _, measured = pipeline.measure(head=head, fork=fork)
        assert measured.code == 1
        owner = "stranger" if fork else "owner"
        event = {
            "pull_request": {"number": 7, "head": {"sha": head, "repo": {"full_name": f"{owner}/project"}}}
        }
        where = pipeline.folder / f"job-{pipeline._jobs}"
        told = pipeline.action({"mode": "report"}, "pull_request", event, where)
        assert told.code == 0, told.log
        assert ("workflow_run" in told.log) == fork
        assert len(pipeline.forge.comments) == comments


def test_the_options_are_words_of_a_shell(pipeline: Pipeline) -> None:
    head = pipeline.pull_request(SLOWER)
    _, measured = pipeline.measure(f"{COUNTED} -c 'sh run.sh' --fail-on severe --threshold 50%", head=head)
    assert measured.code == 0, measured.log
    assert "Performance: no change" in measured.summary


def test_a_report_whose_run_failed_is_never_a_success(pipeline: Pipeline) -> None:
    head = pipeline.pull_request({"note": "text\n"})
    run, _ = pipeline.measure(head=head)
    assert pipeline.report(run, head, "failure").code == 0
    assert pipeline.forge.checks[0]["conclusion"] == "failure"
    assert "its run ended with: failure" in pipeline.forge.comments[0]["body"]


def test_a_missing_right_is_named_and_the_check_is_set_all_the_same(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    run, _ = pipeline.measure(head=head)
    forge.trouble("POST", "comments", 403, message="Resource not accessible by integration")
    told = pipeline.report(run, head, "failure")
    assert told.code == 14
    assert (
        "cannot write the comment: the token may not (403: Resource not accessible by integration)"
        in told.log
    )
    assert "permissions: pull-requests: write" in told.log
    assert len(forge.checks) == 1

    forge.trouble("POST", "check-runs", 403)
    told = pipeline.report(run, head, "failure")
    assert told.code == 14 and "permissions: checks: write" in told.log
    assert len(forge.comments) == 1


def test_a_rate_limit_is_waited_for_or_named(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    run, _ = pipeline.measure(head=head)
    reset = str(int(time.time()) + 3000)
    forge.trouble("POST", "check-runs", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset})
    forge.trouble("POST", "comments", 429, {"Retry-After": "1"})
    told = pipeline.report(run, head, "failure")
    assert told.code == 14
    until = time.strftime("%H:%M UTC", time.gmtime(int(reset)))
    assert f"cannot set the check: the rate limit of the API is used up until {until}" in told.log
    assert len(forge.comments) == 1


def test_a_forge_that_is_down_for_a_moment_gets_one_comment(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    run, _ = pipeline.measure(head=head)
    forge.trouble("GET", "pulls", 502)
    forge.trouble("POST", "comments", 502, done=True)  # it was written, and the answer is lost
    told = pipeline.report(run, head, "failure")
    assert told.code == 0, told.log
    assert len(forge.comments) == 1
    forge.trouble("GET", "/user", 503, times=9)
    told = pipeline.report(run, head, "failure")
    assert told.code == 14 and "the forge is down (503), asked 4 times" in told.log


def test_a_wrong_token_and_a_forge_that_is_not_there_are_told(pipeline: Pipeline) -> None:
    head = pipeline.pull_request(SLOWER)
    run, _ = pipeline.measure(head=head)
    told = pipeline.report(run, head, "failure", PERUN_TOKEN="another")
    assert told.code == 14 and "the token is not accepted (401: Bad credentials)" in told.log
    told = pipeline.report(run, head, "failure", GITHUB_API_URL="file:///etc")
    assert told.code == 2 and "is no URL of an API" in told.log


def test_a_notification_gets_the_report_and_its_failure_fails_nothing(pipeline: Pipeline) -> None:
    head = pipeline.pull_request(SLOWER)
    told = pipeline.folder / "told.json"
    run, measured = pipeline.measure(f"{COUNTED} --notify 'cat >{told}; echo trouble >&2; exit 5'", head=head)
    assert measured.code == 1
    assert "--notify: it ended with 5: trouble" in measured.log
    assert json.loads(told.read_text())["title"] == "1 slower (1 severe)"
    pipeline.report(run, head, "failure", f"--notify 'cat >{told}'")
    found = json.loads(told.read_text())
    assert (found["pull_request"], found["commit"], found["conclusion"]) == (7, head, "failure")


def test_gitlab_gets_a_note_and_the_status_of_the_commit(pipeline: Pipeline) -> None:
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    base = pipeline.git("keeper", "rev-parse", "main")
    where = pipeline.checkout(head)
    env = {
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_COMMIT_SHA": head,
        "CI_PIPELINE_URL": "https://gitlab.com/owner/project/-/pipelines/9",
    }
    measured = pipeline.gitlab("perun", COUNTED, where, env)
    assert measured.code == 1
    assert "<failure " in (where / "perun-ci" / "junit.xml").read_text()
    for _ in range(2):
        told = pipeline.gitlab("perun-report", "", where, {**env, "PERUN_TOKEN": "the-token"})
        assert told.code == 0, told.log
    (note,) = forge.comments
    assert "**Severe Degradation** `sh run.sh`" in note["body"] and "pipelines/9)" in note["body"]
    check = forge.checks[0]
    assert (check["head_sha"], check["state"], check["description"]) == (
        head,
        "failed",
        "1 slower (1 severe)",
    )
    told = pipeline.gitlab("perun-report", "", where, env)
    assert told.code == 2 and "the variable PERUN_TOKEN" in told.log


@pytest.fixture
def fork(pipeline: Pipeline) -> str:
    """A merge request of a fork of GitLab, whose pipeline has measured it: its head."""
    forge = pipeline.forge
    head = pipeline.pull_request(SLOWER)
    base = pipeline.git("keeper", "rev-parse", "main")
    where = pipeline.checkout(head)
    env = {
        "CI_PROJECT_ID": "8", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8", "CI_MERGE_REQUEST_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_COMMIT_SHA": head,
    }  # fmt: skip
    assert pipeline.gitlab("perun", COUNTED, where, env).code == 1
    told = pipeline.gitlab("perun-report", "", where, env)
    assert told.code == 0 and "a scheduled pipeline of the project does; see docs/ci.md" in told.log
    assert forge.asked == []  # it has no rights, and needs none
    forge.artifacts[901] = (where / "perun-ci" / "gate.json").read_bytes()
    url = "https://gitlab.com/stranger/project/-/jobs/901"
    jobs = [
        {"id": 900, "name": "build", "status": "success"},
        {"id": 901, "name": "perun", "status": "failed", "web_url": url},
    ]
    forge.pulls[:] = [
        {"iid": 6, "sha": "0" * 40, "source_project_id": 5, "target_project_id": 5},
        {"iid": 7, "sha": head, "source_project_id": 8, "target_project_id": 5},
    ]
    old = {"id": 89, "project_id": 8, "sha": base, "jobs": []}
    forge.pipelines[:] = [{"id": 90, "project_id": 8, "sha": head, "jobs": jobs}, old]
    return head


def scheduled(pipeline: Pipeline, options: str = "") -> JobResult:
    """The job of a scheduled pipeline of the project that forks were made of, in an empty folder."""
    where = pipeline.folder / "scheduled"
    where.mkdir(exist_ok=True)
    env = {"CI_PIPELINE_SOURCE": "schedule", "PERUN_TOKEN": "the-token", "CI_COMMIT_SHA": "a" * 40}
    return pipeline.gitlab("perun-forks", "", where, env, options)


def test_a_scheduled_pipeline_of_gitlab_reports_what_forks_have_measured(
    pipeline: Pipeline, fork: str
) -> None:
    forge = pipeline.forge
    told = pipeline.folder / "told"
    notify = f" --notify 'cat >>{told}'"
    assert "comment of #7: created" in scheduled(pipeline, notify).log
    (note,) = forge.comments
    assert note["body"].startswith(f"{MARK}\n### Performance: 1 slower (1 severe)\n")
    assert f"{fork[:10]} beside " in note["body"] and "stranger/project/-/jobs/901)" in note["body"]
    assert forge.checks == []  # the pipeline of the fork is the check: GitLab lets nobody else set one
    assert "comment of #7: unchanged" in scheduled(pipeline, notify).log
    assert json.loads(told.read_text())["pull_request"] == 7  # once

    written = json.loads(forge.artifacts[901])
    written |= {"code": 0, "slower": 0, "severe": 0, "changes": []}
    forge.artifacts[901] = json.dumps(written).encode()
    assert "comment of #7: updated" in scheduled(pipeline).log
    assert "its run ended with: failure" in note["body"]
    for data in (b'{"schema": "perun.ci/1", "mail": "@all"}', b" " * (9 << 20), None):
        forge.artifacts[901] = data  # type: ignore[assignment]
        done = scheduled(pipeline)
        assert done.code == 0 and "could not be measured" in note["body"], done.log
    assert len(forge.comments) == 1


def test_merge_requests_of_forks_that_have_no_report_are_passed_over_by_name(
    pipeline: Pipeline, fork: str
) -> None:
    forge = pipeline.forge
    newest = forge.pipelines[0]
    job = newest["jobs"][1]
    job["status"] = "running"
    assert "#7 is not reported: the job perun of the fork has not ended" in scheduled(pipeline).log
    newest["jobs"] = []
    assert "#7 is not reported: the pipeline of the fork has no job perun" in scheduled(pipeline).log
    newest["project_id"] = 5  # of the project itself, where somebody has run it for the fork
    assert "#7 is not reported: no pipeline of the fork has its head" in scheduled(pipeline).log
    newest.update(project_id=8, jobs=[job])
    forge.trouble("GET", "/projects/8/pipelines", 404, message="404 Project Not Found")
    told = scheduled(pipeline)
    assert told.code == 0 and "is the fork public, with its pipelines? cannot find the artifact" in told.log
    forge.trouble("GET", "/projects/5/merge_requests", 403, message="insufficient_scope")
    told = scheduled(pipeline)
    assert told.code == 14 and "cannot find the pull request: the token may not (403" in told.log
    assert forge.comments == []


def test_a_fresh_clone_is_made_a_repository_by_a_file_of_the_project(pipeline: Pipeline) -> None:
    config = "vcs: {type: git, url: ..}\ncmds: [sh run.sh]\ncollectors: [{name: time}]\n"
    keeper = pipeline.folder / "keeper"
    pipeline.git("keeper", "rm", "--quiet", "-r", ".perun")
    shutil.rmtree(keeper / ".perun", ignore_errors=True)
    pipeline.push("keeper", "main", {"perf/perun.yml": config})
    pipeline.git("stranger", "fetch", "--quiet", "origin")
    pipeline.git("stranger", "reset", "--quiet", "--hard", "origin/main")
    head = pipeline.pull_request({})  # all files are equal, so that no clock is needed
    _, measured = pipeline.measure("--config perf/perun.yml", head=head)
    assert measured.code == 0, measured.log
    assert "Performance: no change" in measured.summary


SUM = (
    "int main(void) {{ volatile long s = 0;\n  for (long i = 0; i < {0}; i++)\n    s += i;\n  return 0; }}\n"
)
CONFIG = """\
vcs: {type: git, url: ..}
cmds: [./sum]
collectors: [{name: instructions}]
execute: {pre_run: [cc -g -O1 -o sum sum.c]}
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind, which counts instructions")
def test_the_comment_says_why_and_the_check_marks_the_line(pipeline: Pipeline) -> None:
    pipeline.push("keeper", "main", {".perun/local.yml": CONFIG, "sum.c": SUM.format(200_000)})
    pipeline.git("stranger", "pull", "--quiet", "origin", "main")
    head = pipeline.pull_request({"sum.c": SUM.format(300_000)})
    run, measured = pipeline.measure("--metric instructions --explain", head=head)
    assert measured.code == 1, measured.log
    assert "\n::error file=sum.c,line=" in measured.log and "title=perun::main() executes 1." in measured.log
    (run_,) = json.loads(pipeline.reports[run]["perun.sarif"])["runs"]
    (place,) = {json.dumps(one["locations"][0]["physicalLocation"]) for one in run_["results"]}
    line = int(measured.log.partition("file=sum.c,line=")[2].partition(",")[0])
    assert json.loads(place) == {"artifactLocation": {"uri": "sum.c"}, "region": {"startLine": line}}
    assert pipeline.report(run, head, "failure").code == 0
    (comment,) = pipeline.forge.comments
    assert "**Why**\n\n- `main() executes 1." in comment["body"]
    (mark,) = pipeline.forge.checks[0]["output"]["annotations"]
    assert (mark["path"], mark["annotation_level"]) == ("sum.c", "failure")
    assert mark["start_line"] >= 1 and mark["message"].startswith("main() executes 1.")
