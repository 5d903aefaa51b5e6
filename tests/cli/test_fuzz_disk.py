"""`perun fuzz` where the disk becomes full in the middle of a campaign, or a process of it is killed."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from perun.fuzz import results
from perun.fuzz.findings import BEGAN, read

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]

SOURCE = r"""
#include <stdio.h>
int main(int argc, char **argv) {
    static char text[70000];
    FILE *file = fopen(argv[argc - 1], "rb");
    size_t size = fread(text, 1, sizeof text - 1, file);
    volatile long found = 0;
    for (size_t start = 0; start < size; start++)
        for (size_t end = start; end < size && text[end] == ' '; end++)
            found++;
    return 0;
}
"""
OUT_OF_ROOM = 3
"""The exit code where the system refuses."""


@pytest.fixture
def searching(project, command, environment, small_disk, tmp_path):
    """A search that has found something, with its folder on the small disk."""
    (project.path / "slow.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "--coverage", "-o", "slow", "slow.c"], cwd=project.path, check=True)
    (project.path / "words.txt").write_text("one two  three\n" * 20)
    out = tmp_path / "small" / "out"
    small_disk(out.parent, 6)

    def start(*options):
        search = subprocess.Popen(
            [*command, "fuzz", "-b", "./slow", "-w", "words.txt", "-o", out, "-N", "4000", "-t", "600", "-np",
             "--no-minimize", "--seed", "1", *options],
            cwd=project.path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(search)
        while len(entries_of(out)) < 20:
            assert search.poll() is None, search.stderr.read()
            time.sleep(0.05)
        return search, out

    started = []
    yield start
    for search in started:
        search.kill()
        search.communicate()


def entries_of(folder):
    return list(read(folder)) if (folder / "logs" / "campaign.jsonl").exists() else []


def found_in(folder):
    return {entry.member().name for entry in entries_of(folder) if entry.kind == "member"}


def fill(disk: Path) -> Path:
    """Leave no room on a file system, whatever of it is written meanwhile."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


def goes_on(perun, out, before):
    """Whether the campaign is resumed with all that was found."""
    assert perun("fuzz", "-o", str(out), "--resume", "--executions", "1", "--no-minimize").code == 0
    assert before <= found_in(out)
    found = results.load(out)
    assert found.executions > 20
    assert found.of_kind("slow")
    assert all((out / one.file).stat().st_size == one.size for one in found.results)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_disk_that_becomes_full_loses_nothing_of_what_was_found(searching, perun, jobs):
    search, out = searching("--jobs", jobs)
    filler = fill(out.parent)
    _, said = search.communicate(timeout=60)
    assert search.returncode == OUT_OF_ROOM
    assert f"cannot read or write {out / 'logs' / 'campaign.jsonl'}: No space left on device" in said
    assert f"perun fuzz -o {out} --resume goes on" in said
    assert "Traceback" not in said
    assert {path.name for path in out.rglob("*")} == {"logs", "campaign.jsonl"}
    before = found_in(out)
    assert before
    assert BEGAN in {entry.kind for entry in entries_of(out)}
    perun("fuzz", "-o", str(out), "--resume", code=OUT_OF_ROOM, err="No space left on device")
    filler.unlink()
    goes_on(perun, out, before)


def test_a_process_that_is_killed_ends_the_search_and_loses_nothing(searching, perun):
    search, out = searching("--jobs", "2")
    children = Path(f"/proc/{search.pid}/task/{search.pid}/children").read_text().split()
    served = [pid for pid in map(int, children) if b"perun.fuzz.executing" in cmdline(pid)]
    assert len(served) == 2
    os.kill(served[0], signal.SIGKILL)
    _, said = search.communicate(timeout=60)
    assert search.returncode == 8
    assert "a process of --jobs was killed by SIGKILL" in said
    assert f"perun fuzz -o {out} --resume goes on" in said
    goes_on(perun, out, found_in(out))


def cmdline(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()
