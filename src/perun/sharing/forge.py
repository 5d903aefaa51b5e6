"""The programming interfaces of GitHub and GitLab, as far as a gate of continuous integration needs them.

What a request is about is taken from the environment and from the event that the forge has written, never
from what a measuring job left. Answers are bounded in size, redirections are followed without the token only,
and what the forge refuses is told by name, with what to do.
"""

from __future__ import annotations

import http.client
import io
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

from perun.core.errors import RemoteError, UsageError
from perun.core.regular import read_regular
from perun.core.wording import plural, without_secrets
from perun.sharing.gate import LARGEST

TRIES: Final = 4
PATIENCE: Final = 60.0
"""Seconds that are waited at most where the forge names a time."""
TIMEOUT: Final = 30.0
MOST_BYTES: Final = 8 << 20
"""Of an answer, and of an artifact."""
PAGES: Final = 30
PAGE: Final = 100
ARTIFACT: Final = "perun-ci"
"""How the folder of `perun ci run` is called, and the artifact that it becomes."""
RECENT: Final = 7 * 86_400
"""Seconds for which a merge request of a fork is looked at after its last change."""
REPORT: Final = "gate.json"
"""The file in it that is read."""
NAME: Final = "perun"
"""The name of the check, and of the job of GitLab that measures."""
WRITE, READ, CHECK = "write the comment", "read the comments", "set the check"
FIND, FETCH, PULLS = "find the artifact", "fetch the artifact", "find the pull request"
_SHA: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_ZERO: Final = re.compile(r"0*")
_TWO_HALVES: Final = (
    "a pull request of a fork has no such rights: report it from `workflow_run`, see docs/ci.md"
)
_ENDED: Final = {"success": "success", "failed": "failure", "canceled": "cancelled"}
"""How jobs of GitLab end, and the same of GitHub."""


class ForgeError(RemoteError):
    """The forge cannot be reached, or refuses. :ivar status: that of HTTP; 0 where there was no answer."""

    def __init__(self, message: str, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


class Subject(NamedTuple):
    """What a report is about.

    :param head: checksum of the commit that gets the check. :param number: of the pull request, or merge
        request, that gets the comment; None where there is none. :param url: where the run is shown.
    :param concluded: how the job that measured ended, if that is known: `success`, `failure`, `cancelled` ...
    :param untold: whether nothing is told here: `why` says where, or when, it is.
    :param why: why there is no pull request, where there should be one.
    :param artifact: where in the API the report is that a job of a fork has left. Its commit gets no check:
        that of a fork is the pipeline of the fork.
    """

    head: str
    number: int | None
    url: str
    concluded: str = ""
    untold: bool = False
    why: str = ""
    artifact: str = ""


class Annotation(NamedTuple):
    """A remark at a line of a file of the repository. :param level: `failure` or `warning`."""

    path: str
    line: int
    level: str
    message: str


class CheckResult(NamedTuple):
    """What the check says. :param conclusion: `success`, `failure` or `neutral`."""

    conclusion: str
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()


class Forge(Protocol):
    """What GitHub and GitLab do alike."""

    def base(self, current: str) -> str:
        """What `current`, which is checked out, is compared with; empty where that is not known."""

    def subjects(self, *, in_folder: bool) -> Iterator[Subject]:
        """What reports are about: the one of this job, or those that jobs of forks have left.

        :param in_folder: whether the report is in a folder of this job.
        """

    def artifact(self, subject: Subject) -> bytes | None:
        """The report that another job has left; None where this one has it in a folder.

        :raises PerunError: where there is none, or it cannot be read.
        """

    def comment(self, subject: Subject, body: str, mark: str, *, create: bool) -> str:
        """Write the one comment that begins with `mark`, or its new text; what was done, in a word.

        :param create: whether it is made where there is none.
        """

    def check(self, subject: Subject, result: CheckResult) -> None:
        """Set the check on the head commit."""


def of(environ: Mapping[str, str]) -> Forge | None:
    """The forge that runs this job; None where none does."""
    if environ.get("GITHUB_ACTIONS") or environ.get("GITHUB_EVENT_PATH"):
        return GitHub(environ)
    return GitLab(environ) if environ.get("GITLAB_CI") else None


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """The token must not follow to another host."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """None: a redirection is an answer."""


class _Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content or b"null")
        except ValueError:
            raise ForgeError(
                "the forge answers with what is no JSON", "is the URL of its API right?"
            ) from None


class ForgeApi:
    """Requests to one API.

    :param rights: by the beginning of what is done, the right that it takes, for messages.
    """

    def __init__(self, root: str, headers: Mapping[str, str], how_to_allow: Mapping[str, str]) -> None:
        if not re.match(r"https?://[^\s]+\Z", root):
            raise UsageError(f"{root!r} is no URL of an API", "set GITHUB_API_URL, or CI_API_V4_URL")
        self._root = root.rstrip("/")
        self._headers = {"User-Agent": "perun", **headers}
        self._how_to_allow = how_to_allow
        self._opener = urllib.request.build_opener(_Unredirected)

    def ask(
        self, doing: str, method: str, path: str, data: Mapping[str, Any] | None = None, *, safe: bool = True
    ) -> _Response:
        """Send a request, and again where the forge is busy.

        :param doing: what this is, for messages: `write the comment`.
        :param path: below the API, with its query; or another URL, which gets no token.
        :param safe: whether it may be sent twice where it is not known whether it was done.
        :raises ForgeError: where it fails.
        """
        for number in range(1, TRIES + 1):
            try:
                answer = self._once(method, path, data)
            except (OSError, http.client.HTTPException) as problem:
                reason = without_secrets(str(getattr(problem, "reason", problem)))
                if number == TRIES or not safe:
                    raise ForgeError(
                        f"cannot {doing}: {self._root} cannot be reached: {reason}",
                        "is the network there, and the URL of the API right? run the job again",
                    ) from None
                time.sleep(0.5 * 2**number)
                continue
            if answer.status < 300 or (answer.status < 400 and doing == FETCH):
                return answer
            if answer.status < 400:
                raise ForgeError(
                    f"cannot {doing}: the forge redirects to another place ({answer.status})",
                    "was the project renamed? the token does not follow there",
                    answer.status,
                )
            pause = _pause(answer)
            if pause is None and answer.status >= 500 and safe:
                pause = 0.5 * 2**number
            if pause is None or pause > PATIENCE or number == TRIES:
                raise self._refusal(doing, answer, number)
            time.sleep(pause)
        raise AssertionError

    def pages(self, doing: str, path: str) -> Iterator[Any]:
        """The items of a list, page by page."""
        joint = "&" if "?" in path else "?"
        for page in range(1, PAGES + 1):
            found = self.ask(doing, "GET", f"{path}{joint}per_page={PAGE}&page={page}").json()
            if not isinstance(found, list):
                raise ForgeError(f"cannot {doing}: the forge answers with no list")
            yield from (one for one in found if isinstance(one, dict))
            if len(found) < PAGE:
                return

    def content(self, path: str) -> bytes:
        """What lies there, or where the forge redirects to, which gets no token."""
        answer = self.ask(FETCH, "GET", path)
        if answer.status >= 300:
            answer = self.ask(FETCH, "GET", _redirection(answer, path))
        return answer.content

    def _once(self, method: str, path: str, data: Mapping[str, Any] | None) -> _Response:
        own = path.startswith("/")
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(
            f"{self._root}{path}" if own else path,
            body,
            self._headers | {"Content-Type": "application/json"} if own else {"User-Agent": "perun"},
            method=method,
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                content = answer.read(MOST_BYTES + 1)
                status, headers = answer.status, answer.headers
        except urllib.error.HTTPError as problem:
            with problem:
                content, status, headers = problem.read(MOST_BYTES + 1), problem.code, problem.headers
        if len(content) > MOST_BYTES:
            raise ForgeError(f"the answer has more than {MOST_BYTES >> 20} MiB", "it is refused")
        return _Response(status, {name.lower(): value for name, value in headers.items()}, content)

    def _refusal(self, doing: str, answer: _Response, tries: int) -> ForgeError:
        status, said = answer.status, _said(answer.content)
        if _is_limit(answer):
            reset = _reset(answer)
            until = time.strftime(" until %H:%M UTC", time.gmtime(reset)) if reset else ""
            message = f"cannot {doing}: the rate limit of the API is used up{until}"
            hint = "run the job again after that; a token of an app, or of its own, has a limit of its own"
        elif status == 401:
            message = f"cannot {doing}: the token is not accepted (401{said})"
            hint = self._how_to_allow["token"]
        elif status == 403:
            message = f"cannot {doing}: the token may not (403{said})"
            hint = self._how_to_allow.get(doing, self._how_to_allow["token"])
        elif status == 404:
            message = f"cannot {doing}: there is no such thing, or the token may not see it (404{said})"
            hint = self._how_to_allow.get(doing, self._how_to_allow["token"])
        elif status >= 500:
            message = f"cannot {doing}: the forge is down ({status}), asked {plural(tries, 'time')}"
            hint = "run the job again later; what was measured is in its artifact"
        else:
            message, hint = f"cannot {doing}: the forge refuses ({status}{said})", ""
        return ForgeError(message, hint, status)


def _said(content: bytes) -> str:
    try:
        told = json.loads(content)
        text = str(told.get("message") or told.get("error") or "") if isinstance(told, dict) else ""
    except ValueError:
        text = ""
    return f": {without_secrets(text)[:200]}" if text else ""


def _is_limit(answer: _Response) -> bool:
    if answer.status == 429:
        return True
    left = answer.headers.get("x-ratelimit-remaining")
    return answer.status == 403 and (left == "0" or "retry-after" in answer.headers)


def _pause(answer: _Response) -> float | None:
    """Seconds after which the forge wants to be asked again; None where it does not say so."""
    if not _is_limit(answer):
        return None
    after = _number(answer.headers.get("retry-after"))
    if after is not None:
        return after
    reset = _reset(answer)
    return max(reset - time.time(), 0) + 1 if reset is not None else PATIENCE


def _reset(answer: _Response) -> float | None:
    """When the rate limit ends, in seconds since 1970; None where the forge does not say so."""
    return _number(answer.headers.get("x-ratelimit-reset") or answer.headers.get("ratelimit-reset"))


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,12}", text) else None


def _put(
    api: ForgeApi, find: Callable[[], Any], folder: str, method: str, new: str, body: str, create: bool
) -> str:
    """Write a comment: its new text by `method` in `folder` where `find` finds it, else by POST to `new`."""
    for last in (False, True):
        found = find()
        if found is None and not create:
            return "not needed"
        if found is not None and found["body"] == body:
            return "unchanged"
        if found is not None:
            api.ask(WRITE, method, f"{folder}/{_int(found, 'id')}", {"body": body})
            return "updated"
        try:
            api.ask(WRITE, "POST", new, {"body": body}, safe=False)
        except ForgeError as problem:
            if last or 0 < problem.status < 500:
                raise
            continue  # it may have been written all the same: look again
        return "created"
    raise AssertionError


class GitHub:
    """GitHub, or its enterprise server, from within a job of GitHub Actions."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._repository = environ.get("GITHUB_REPOSITORY", "")

    @cached_property
    def _event(self) -> Mapping[str, Any]:
        path = self._environ.get("GITHUB_EVENT_PATH", "")
        try:
            found = json.loads(read_regular(path, MOST_BYTES)) if path else {}
        except (OSError, ValueError) as problem:
            raise UsageError(
                f"the event of the workflow cannot be read: {problem}", "see GITHUB_EVENT_PATH"
            ) from None
        return found if isinstance(found, dict) else {}

    @cached_property
    def _api(self) -> ForgeApi:
        token = self._environ.get("PERUN_TOKEN") or self._environ.get("GITHUB_TOKEN")
        if not token:
            raise UsageError(
                "there is no token for GitHub", "add to the step: env: GITHUB_TOKEN: ${{ github.token }}"
            )
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self._repository):
            raise UsageError(f"GITHUB_REPOSITORY is {self._repository!r}", "it is OWNER/NAME")
        return ForgeApi(
            self._environ.get("GITHUB_API_URL") or "https://api.github.com",
            {
                "Authorization": f"Bearer {token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            {
                "token": "env: GITHUB_TOKEN: ${{ github.token }}, and permissions: what it may do",
                WRITE: f"permissions: pull-requests: write; {_TWO_HALVES}",
                READ: f"permissions: pull-requests: write; {_TWO_HALVES}",
                CHECK: f"permissions: checks: write; {_TWO_HALVES}",
                FIND: "permissions: actions: read",
                FETCH: "permissions: actions: read",
                PULLS: "permissions: pull-requests: write",
            },
        )

    def base(self, current: str) -> str:
        """The first parent of the merge that is checked out for a pull request; else the branch that it goes
        to, or what the branch was before."""
        event = self._event
        if "pull_request" in event:
            if current == self._environ.get("GITHUB_SHA") != _in(event, "pull_request", "head", "sha"):
                return f"{current}^1"
            return _sha_in(event, "pull_request", "base", "sha")
        return _sha_in(event, "merge_group", "base_sha") or _sha_in(event, "before")

    def subjects(self, *, in_folder: bool) -> Iterator[Subject]:
        """Of `workflow_run` the run that has ended: the commit is that of the event, and the pull request the
        open one of that branch whose head is this commit. Of others the commit and number of the event."""
        yield self._subject()

    def _subject(self) -> Subject:
        event, environ = self._event, self._environ
        server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
        if "workflow_run" in event:
            return self._of_run(event["workflow_run"])
        url = f"{server}/{self._repository}/actions/runs/{environ.get('GITHUB_RUN_ID', '')}"
        if "pull_request" not in event:
            return Subject(_checked(environ.get("GITHUB_SHA")), None, url)
        head = _checked(_in(event, "pull_request", "head", "sha"))
        fork = _in(event, "pull_request", "head", "repo", "full_name") != self._repository
        why = "the job of a fork may not comment; a workflow of the event workflow_run does" if fork else ""
        return Subject(head, _int(event, "pull_request", "number"), url, untold=fork, why=why)

    def _of_run(self, run: Any) -> Subject:
        head, url = _checked(_in(run, "head_sha")), str(_in(run, "html_url"))
        concluded = str(_in(run, "conclusion"))
        if _in(run, "event") != "pull_request":
            return Subject(head, None, url, concluded)
        whose = f"{_in(run, 'head_repository', 'owner', 'login')}:{_in(run, 'head_branch')}"
        query = urllib.parse.urlencode({"state": "open", "head": whose})
        for one in self._api.pages(PULLS, f"/repos/{self._repository}/pulls?{query}"):
            if _in(one, "head", "sha") == head:
                return Subject(head, _int(one, "number"), url, concluded)
        return Subject(head, None, url, concluded, why="no open pull request has this commit as its head")

    def artifact(self, subject: Subject) -> bytes | None:
        """The report in the artifact of the run that has ended; it is not unpacked to the disk."""
        run = self._event.get("workflow_run")
        if run is None:
            return None
        api = self._api
        actions = f"/repos/{self._repository}/actions"
        path = f"{actions}/runs/{_int(run, 'id')}/artifacts?name={ARTIFACT}&per_page={PAGE}"
        listed = _in(api.ask(FIND, "GET", path).json(), "artifacts")
        found = [
            one
            for one in (listed if isinstance(listed, list) else ())
            if _in(one, "name") == ARTIFACT and not _in(one, "expired")
        ]
        if not found:
            raise ForgeError(
                f"the run has left no artifact {ARTIFACT}",
                "its log says why: it ended before perun ci run did",
            )
        newest = max(found, key=lambda one: _int(one, "id"))
        if _int(newest, "size_in_bytes") > MOST_BYTES:
            raise ForgeError(f"the artifact has more than {MOST_BYTES >> 20} MiB", "it is refused")
        where = f"{actions}/artifacts/{_int(newest, 'id')}/zip"
        return _unpacked(api.content(where))

    def comment(self, subject: Subject, body: str, mark: str, *, create: bool) -> str:
        """See :class:`Forge`. A comment is Perun's where the account of the token, or a bot, has written it:
        what a stranger wrote with the same mark is left alone."""
        api, issue = self._api, f"/repos/{self._repository}/issues/{subject.number}"
        login = self._login(api)

        def find() -> Any:
            for one in api.pages(READ, f"{issue}/comments"):
                own = _in(one, "user", "login") == login if login else _in(one, "user", "type") == "Bot"
                if own and str(_in(one, "body")).startswith(mark):
                    return one
            return None

        folder = f"/repos/{self._repository}/issues/comments"
        return _put(api, find, folder, "PATCH", f"{issue}/comments", body, create)

    def _login(self, api: ForgeApi) -> str:
        """The account of the token; empty of the one that GitHub Actions makes, which has none."""
        try:
            return str(_in(api.ask("read the account", "GET", "/user").json(), "login"))
        except ForgeError as problem:
            if problem.status in (403, 404):
                return ""
            raise

    def check(self, subject: Subject, result: CheckResult) -> None:
        """A check run, with its annotations."""
        remarks = [
            {
                "path": one.path,
                "start_line": one.line,
                "end_line": one.line,
                "annotation_level": one.level,
                "message": one.message,
            }
            for one in result.annotations
        ]
        output = {"title": result.title[:250], "summary": result.summary, "annotations": remarks}
        data = {
            "name": NAME,
            "head_sha": subject.head,
            "status": "completed",
            "conclusion": result.conclusion,
        }
        if subject.url:
            data["details_url"] = subject.url
        self._api.ask(CHECK, "POST", f"/repos/{self._repository}/check-runs", data | {"output": output})


class GitLab:
    """GitLab, from within a job of its continuous integration."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @cached_property
    def _api(self) -> ForgeApi:
        token = self._environ.get("PERUN_TOKEN")
        if not token:
            raise UsageError(
                "there is no token for GitLab",
                "make an access token of the project with the scope api, as the variable PERUN_TOKEN",
            )
        root = self._environ.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
        hint = "PERUN_TOKEN is an access token of the project with the scope api, of a Reporter at least"
        status = f"{hint}; for the status of a protected branch of a Maintainer"
        return ForgeApi(root, {"PRIVATE-TOKEN": token}, {"token": hint, CHECK: status})

    @property
    def _project(self) -> str:
        return f"/projects/{int(self._environ.get('CI_PROJECT_ID') or 0)}"

    def base(self, current: str) -> str:
        """What the merge request would be merged into; or what the branch was before."""
        names = "CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_COMMIT_BEFORE_SHA"
        found = (self._environ.get(name, "") for name in names)
        return next((one for one in found if _SHA.fullmatch(one) and not _ZERO.fullmatch(one)), "")

    def subjects(self, *, in_folder: bool) -> Iterator[Subject]:
        """The merge request of the pipeline, and the commit that its source branch has; in a scheduled
        pipeline the open merge requests of forks, whose own pipelines have no rights here."""
        if in_folder or self._environ.get("CI_PIPELINE_SOURCE") != "schedule":
            yield self._subject()
            return
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - RECENT))
        query = urllib.parse.urlencode({"state": "opened", "scope": "all", "updated_after": since})
        for one in self._api.pages(PULLS, f"{self._project}/merge_requests?{query}"):
            source = _in(one, "source_project_id")
            if isinstance(source, int) and source != _in(one, "target_project_id"):
                yield self._of_fork(source, _sha_in(one, "sha"), _int(one, "iid"))

    def _of_fork(self, source: int, head: str, number: int) -> Subject:
        """What the newest pipeline of the fork is about whose commit is the head of the merge request."""
        untold = Subject(head, number, "", untold=True)
        api = self._api
        try:
            pipelines = api.pages(FIND, f"{self._project}/merge_requests/{number}/pipelines")
            own = [one for one in pipelines if (_in(one, "project_id"), _in(one, "sha")) == (source, head)]
            if not own:
                return untold._replace(why="no pipeline of the fork has its head")
            newest = max(_int(one, "id") for one in own)
            jobs = api.pages(FIND, f"/projects/{source}/pipelines/{newest}/jobs")
            job = next((one for one in jobs if _in(one, "name") == NAME), None)
        except ForgeError as problem:
            if problem.status not in (401, 403, 404):
                raise
            return untold._replace(why=f"is the fork public, with its pipelines? {problem.message}")
        if job is None:
            return untold._replace(why=f"the pipeline of the fork has no job {NAME}")
        concluded = _ENDED.get(str(_in(job, "status")))
        if concluded is None:
            return untold._replace(why=f"the job {NAME} of the fork has not ended")
        where = f"/projects/{source}/jobs/{_int(job, 'id')}/artifacts/{ARTIFACT}/{REPORT}"
        return Subject(head, number, str(_in(job, "web_url")), concluded, artifact=where)

    def _subject(self) -> Subject:
        get = self._environ.get
        number = get("CI_MERGE_REQUEST_IID")
        head = _checked(get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or get("CI_COMMIT_SHA"))
        fork = get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != get("CI_MERGE_REQUEST_PROJECT_ID")
        url = get("CI_PIPELINE_URL") or get("CI_JOB_URL") or ""
        untold = fork and not get("PERUN_TOKEN")
        why = "the job of a fork may not comment; a scheduled pipeline of the project does" if untold else ""
        return Subject(head, int(number) if number else None, url, untold=untold, why=why)

    def artifact(self, subject: Subject) -> bytes | None:
        """The report that the job of a fork has left; of others none, which are in the folder of the job."""
        return self._api.content(subject.artifact) if subject.artifact else None

    @cached_property
    def _account(self) -> Any:
        return _in(self._api.ask("read the account", "GET", "/user").json(), "id")

    def comment(self, subject: Subject, body: str, mark: str, *, create: bool) -> str:
        """See :class:`Forge`; a note of the merge request, found by its author."""
        api, notes = self._api, f"{self._project}/merge_requests/{subject.number}/notes"
        own = self._account

        def find() -> Any:
            for one in api.pages(READ, f"{notes}?sort=asc"):
                if _in(one, "author", "id") == own and str(_in(one, "body")).startswith(mark):
                    return one
            return None

        return _put(api, find, notes, "PUT", notes, body, create)

    def check(self, subject: Subject, result: CheckResult) -> None:
        """The status of an external job, which has no annotations."""
        state = "failed" if result.conclusion == "failure" else "success"
        data = {"state": state, "name": NAME, "description": result.title[:250], "target_url": subject.url}
        self._api.ask(CHECK, "POST", f"{self._project}/statuses/{subject.head}", data)


def _in(found: Any, *keys: str) -> Any:
    """What stands below these keys; None where one is not there."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _sha_in(found: Any, *keys: str) -> str:
    text = str(_in(found, *keys))
    return text if _SHA.fullmatch(text) and not _ZERO.fullmatch(text) else ""


def _int(found: Any, *keys: str) -> int:
    number = _in(found, *keys)
    if not isinstance(number, int):
        raise ForgeError(f"the forge does not say {'.'.join(keys)}")
    return number


def _checked(text: Any) -> str:
    """The checksum.

    :raises UsageError: where it is none.
    """
    if not isinstance(text, str) or not _SHA.fullmatch(text):
        raise UsageError(
            f"the forge names no commit: {text!r}", "run it in a job of a pull request, or of a push"
        )
    return text


def _redirection(answer: _Response, path: str) -> str:
    where = answer.headers.get("location", "")
    if not re.match(r"https?://", where):
        raise ForgeError(f"the forge redirects {path} to nowhere")
    return where


def _unpacked(data: bytes) -> bytes:
    """The report in a packed artifact.

    :raises ForgeError: where it is not there, or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(REPORT) as file:
            return file.read(LARGEST + 1)
    except (
        KeyError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        zlib.error,
    ) as problem:
        raise ForgeError(
            f"the artifact {ARTIFACT} holds no {REPORT} that can be read: {problem}",
            "let the job that measures run again",
        ) from None
