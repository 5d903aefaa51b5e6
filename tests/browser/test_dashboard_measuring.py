"""The dashboard while a real program is measured: the progress of a batch, and graphs of real stacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PERUN = (sys.executable, "-m", "perun")
# It waits for the file that the test makes once the page has told that it is measured.
PROGRAM = """\
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static void fill(long size)
{
    char *all = malloc(size);
    memset(all, 1, size);
    free(all);
}
__attribute__((noinline)) static void work(long size) { fill(size); }
int main(int count, char **given)
{
    while (count > 1 && access(given[1], F_OK))
        usleep(20000);
    work(SIZE);
    return 0;
}
"""

SETTINGS = """\
cmds: [./app]
workloads: ["{go}"]
collectors: [{{name: memory}}]
execute: {{pre_run: [cc -g -O0 -o app app.c]}}
profiles: {{register_after_run: true}}
"""


class Project(NamedTuple):
    """A project with two versions. :param go: the file that its program waits for."""

    path: Path
    go: Path
    environ: dict[str, str]

    def run(self, *command: str) -> str:
        made = subprocess.run(command, cwd=self.path, env=self.environ, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    path = tmp_path / "project"
    path.mkdir()
    environ = {**os.environ, "PERUN_TRUST": "1"}
    made = Project(path, tmp_path / "go", environ)
    made.run("git", "init", "-q", "-b", "main")
    for size in (1 << 16, 1 << 20):
        (path / "app.c").write_text(f"#define SIZE {size}\n{PROGRAM}")
        made.run("git", "add", "app.c")
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        made.run("git", *who, "commit", "-q", "-m", f"Fill {size} bytes")
    made.run(*PERUN, "init", "--vcs-type", "git")
    with open(path / ".perun" / "local.yml", "a") as file:
        file.write(SETTINGS.format(go=made.go))
    return made


@pytest.fixture
def address(project: Project) -> Iterator[str]:
    """Where the dashboard of the project is served."""
    server = subprocess.Popen(
        [*PERUN, "web", "serve", "--no-open"], cwd=project.path, env=project.environ, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert "http" in line
            yield f"http{line.partition('http')[2].partition('#')[0]}"
        finally:
            server.terminate()


@pytest.mark.slow
def test_a_batch_tells_how_far_it_is_and_its_stacks_are_drawn(
    browser: Browser, project: Project, address: str
) -> None:
    context = browser.new_context(locale="en-US")
    measuring = subprocess.Popen(
        [*PERUN, "run", "--crawl-parents", "matrix"], cwd=project.path, env=project.environ,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}index.html")
        page.locator("#running", has_text="measuring").wait_for()
        assert " 0 of " in page.locator("#running").inner_text()
        project.go.write_text("")
        assert measuring.wait(300) == 0, measuring.stderr and measuring.stderr.read()
        # It ends, and what it stored shows by itself.
        page.locator("#running").wait_for(state="detached")
        page.wait_for_function("() => document.querySelector('#made').textContent.startsWith('2 measured')")
        first = project.run("git", "rev-parse", "HEAD~1").strip()
        page.goto(f"{address}compare.html?a={first}&b=HEAD")
        page.locator("iframe").first.scroll_into_view_if_needed()
        page.frame_locator("iframe").first.locator("html[data-drawn]").wait_for()
        drawn = page.frames[1].content()
        assert "fill" in drawn and "work" in drawn
    finally:
        measuring.kill()
        measuring.communicate()
        context.close()
