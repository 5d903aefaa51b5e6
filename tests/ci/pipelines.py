"""A project with a pull request: a bare repository, clones of two people, and jobs that run the action."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forge_server import REPOSITORY, TOKEN, FakeForge
from ruamel.yaml import YAML

from shared import conftest_of

COLLECTOR = conftest_of("compare").COLLECTOR
ROOT = Path(__file__).parents[2]
COUNTED = "--metric counter"
"""Options with which nothing depends on a clock."""
CONFIG = """\
vcs: {type: git, url: ..}
cmds: [sh run.sh]
collectors: [{name: counter}]
execute: {pre_run: [sh build.sh]}
"""


@dataclass(frozen=True)
class JobResult:
    """How a job ended, all that it printed, and its summary."""

    code: int
    log: str
    summary: str
    outputs: dict[str, str]


@dataclass
class Pipeline:
    """The repository of a project, a forge, and the jobs of it."""

    folder: Path
    forge: FakeForge
    environ: dict[str, str]
    runs: int = 40
    _jobs: int = 0
    reports: dict[int, dict[str, bytes]] = field(default_factory=dict)

    def git(self, where: str, *words: str) -> str:
        """Run git in one of the clones."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder / where,
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def clone(self, name: str) -> None:
        """The clone of somebody."""
        self.git(".", "clone", "--quiet", "origin.git", name)

    def push(self, who: str, branch: str, files: Mapping[str, str]) -> str:
        """Commit and push; the checksum."""
        self.git(who, "checkout", "--quiet", "-B", branch)
        for name, text in files.items():
            path = self.folder / who / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git(who, "add", "--force", "--all")
        self.git(
            who, "commit", "--quiet", "--allow-empty", "--message", f"Change {', '.join(files) or 'nothing'}"
        )
        self.git(who, "push", "--quiet", "--force", "origin", branch)
        return self.git(who, "rev-parse", "HEAD")

    def pull_request(self, files: Mapping[str, str]) -> str:
        """A stranger changes files in a pull request, which the forge merges; the checksum of its head."""
        head = self.push("stranger", "change", files)
        self.git("stranger", "checkout", "--quiet", "--detach", "origin/main")
        self.git("stranger", "merge", "--quiet", "--no-ff", "--message", "Merge", head)
        self.git("stranger", "push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge")
        self.forge.pulls[:] = [{"number": 7, "label": "stranger:change", "head": {"sha": head}}]
        return head

    def checkout(self, ref: str = "refs/pull/7/merge") -> Path:
        """What a job begins with."""
        self._jobs += 1
        name = f"job-{self._jobs}"
        self.clone(name)
        self.git(name, "fetch", "--quiet", "origin", ref)
        self.git(name, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return self.folder / name

    def measure(self, args: str = COUNTED, *, head: str, fork: bool = True) -> tuple[int, JobResult]:
        """The first half: the number of its run, and how it ended."""
        self.runs += 1
        where = self.checkout()
        owner = "stranger/project" if fork else REPOSITORY
        event = {"pull_request": {"number": 7, "head": {"sha": head, "repo": {"full_name": owner}}}}
        sha = self.git(where.name, "rev-parse", "HEAD")
        done = self.action({"args": args}, "pull_request", event, where, {"GITHUB_SHA": sha})
        return self.runs, done

    def report(self, run: int, head: str, concluded: str, args: str = "", **env: str) -> JobResult:
        """The second half, in an empty folder."""
        event = {
            "workflow_run": {
                "id": run,
                "event": "pull_request",
                "head_sha": head,
                "head_branch": "change",
                "head_repository": {"owner": {"login": "stranger"}},
                "conclusion": concluded,
                "html_url": f"https://github.com/{REPOSITORY}/actions/runs/{run}",
            }
        }
        self._jobs += 1
        where = self.folder / f"job-{self._jobs}"
        where.mkdir()
        return self.action({"args": args, "mode": "report"}, "workflow_run", event, where, env)

    def action(
        self,
        inputs: Mapping[str, str],
        name: str,
        event: Mapping[str, Any],
        where: Path,
        env: Mapping[str, str] | None = None,
    ) -> JobResult:
        """Run the steps of action.yml as a runner does, but for what installs Perun."""
        action = YAML(typ="safe").load(ROOT / "action.yml")
        given = {key: str(one.get("default", "")) for key, one in action["inputs"].items()} | dict(inputs)
        temporary = self.folder / f"runner-{where.name}"
        temporary.mkdir(exist_ok=True)
        (temporary / "event.json").write_text(json.dumps(event))
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.forge.url,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(temporary / "event.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_OUTPUT": str(temporary / "output"),
            "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
            "RUNNER_TEMP": str(temporary),
            **(env or {}),
        }
        code, log = 0, ""
        for step in action["runs"]["steps"]:
            wanted = _means(str(step.get("if", "")), given, failed=bool(code))
            if step.get("id") == "install" or not wanted:
                continue
            if "uses" in step:
                assert step["uses"].startswith("actions/upload-artifact@")
                self._keep(where / step["with"]["path"])
                continue
            own = {key: _filled(str(value), given) for key, value in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=where, env=self.environ | runner | own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=240
            )  # fmt: skip
            code, log = code or done.returncode, log + done.stdout
        assert "Traceback" not in log, log
        summary, output = temporary / "summary", temporary / "output"
        lines = output.read_text().splitlines() if output.exists() else []
        told = summary.read_text() if summary.exists() else ""
        return JobResult(code, log, told, dict(line.split("=", 1) for line in lines))

    def _keep(self, folder: Path) -> None:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.reports[self.runs] = files
        self.forge.keep(self.runs, files)

    def gitlab(
        self, job: str, args: str, where: Path, env: Mapping[str, str], options: str = ""
    ) -> JobResult:
        """Run the script of a job of the template, but for what installs Perun, with these options behind."""
        _, jobs = YAML(typ="safe").load_all(ROOT / "templates" / "perun.yml")
        lines = [
            str(line) for line in jobs[job]["script"] if "pip install" not in line and "venv" not in line
        ]
        script = "\n".join(lines).replace("$[[ inputs.args ]]", args).replace("/tmp/perun/bin/perun", "perun")
        variables = {key: str(value) for key, value in jobs[job].get("variables", {}).items()}
        gitlab = {"GITLAB_CI": "true", "CI_API_V4_URL": self.forge.url, "CI_PROJECT_ID": "5"}
        done = subprocess.run(
            ["bash", "-e", "-c", script + options],
            cwd=where, env=self.environ | variables | gitlab | dict(env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )  # fmt: skip
        assert "Traceback" not in done.stdout, done.stdout
        return JobResult(done.returncode, done.stdout, "", {})


def _filled(text: str, inputs: Mapping[str, str]) -> str:
    """The text with its expressions evaluated."""
    known = {"github.token": TOKEN, "github.action_path": str(ROOT)}
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    for _ in range(2):  # the default of an input may be one
        text = re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)
    return text


def _means(condition: str, inputs: Mapping[str, str], *, failed: bool) -> bool:
    """Whether a step with the condition is run."""
    parts = [part.strip() for part in condition.split("&&")] if condition else []
    always = "always()" in parts
    wanted = [part for part in parts if part != "always()"]
    for part in wanted:
        left, right = part.split(" == ")
        if inputs[left.removeprefix("inputs.")] != right.strip("'"):
            return False
    return always or not failed
