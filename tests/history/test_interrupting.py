"""`perun bisect` that is interrupted, or killed, at several moments: it goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from costs import History

COSTS = [1.0] * 4 + [2.0] * 4
STOPPING = """\
cmds: [sh build.sh]
collectors: [{name: counter}]
execute:
  pre_run: [sh stop.sh builds, sh build.sh]
"""
SCRIPT = """\
echo >> "$RECORD.$1"
if [ "$(wc -l < "$RECORD.$1")" = "$(cat "$RECORD.stop-$1" 2> /dev/null)" ]; then
  touch "$RECORD.stopped"
  exec sleep 600
fi
"""
"""Stops for ever at the call whose number a file has, and says so."""


@pytest.fixture
def history(make: Callable[..., History], tmp_path: Path) -> History:
    """Of 8 commits, whose builds and runs can be stopped."""
    script = tmp_path / "stop.sh"
    script.write_text(SCRIPT)
    made = make(COSTS)
    local = made.path / ".perun" / "local.yml"
    local.write_text(f"vcs: {{type: git, url: ..}}\n{STOPPING.replace('stop.sh', str(script))}")
    made.perun("trust")
    return made


def stopped(history: History, what: str, number: int) -> subprocess.Popen[str]:
    """A bisection that stands still in that build, or run of the collector, in a process group of its own."""
    (history.record.parent / f"record.stop-{what}").write_text(str(number))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "perun", "bisect", "HEAD~7", "--metric", "counter"],
        cwd=history.path, env=dict(history.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    mark = history.record.parent / "record.stopped"
    while not mark.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


MOMENTS = [
    *(("builds", 4), ("runs", 6)),
    *(
        pytest.param(*one, marks=pytest.mark.slow)
        for one in (("builds", 1), ("builds", 3), ("runs", 1), ("runs", 12), ("runs", 14))
    ),
]
"""A build of a version between the ends; a run in the pairs of the ends. The slow ones: a build of the first
end; another build of a version between; a run of an end, of a version between, and of the confirmation."""


@pytest.mark.each_value("what number", "how")
@pytest.mark.parametrize(("what", "number"), MOMENTS)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
def test_it_goes_on(history: History, what: str, number: int, how: signal.Signals) -> None:
    process = stopped(history, what, number)
    before = history.runs
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert not out
    if how is signal.SIGINT:
        assert process.returncode == 130, err
        assert "go on with: perun bisect --resume" in err
        assert history.leftovers_but_journals == []
    assert "Traceback" not in err
    status = history.perun("status")
    assert "note: a bisection is not finished: " in status.err
    assert "counter; go on with: perun bisect --resume" in status.err
    for name in ("builds", "runs"):
        (history.record.parent / f"record.stop-{name}").unlink(missing_ok=True)
    done = history.perun("bisect", "--resume")
    assert done.code == 0, done.err
    assert f"first slow commit: {history.commits[4][:7]} Commit 4" in done.out
    assert history.leftovers == []
    # What was there in the journal was not measured again: a version between the ends is run once, or twice
    # where the first time did not come to its end.
    between = [one for one in history.runs if 0 < one < 7]
    assert all(between.count(one) <= 1 + (before[-1:] == [one]) for one in between), history.runs
    assert "bisection" not in history.perun("status").err


def test_a_bisection_is_forgotten(history: History) -> None:
    process = stopped(history, "runs", 1)
    running = history.perun("bisect", "--reset")
    assert running.code == 2  # it is not interrupted, but at work
    assert "there is no interrupted bisection to forget" in running.err
    assert "bisection" not in history.perun("status").err
    process.kill()
    process.communicate()
    answer = history.perun("status", "--json").out
    assert '"bisection": "' in answer
    both = history.perun("bisect", "--reset", "HEAD~7")
    assert both.code == 2 and "--reset forgets a bisection, and does nothing else" in both.err
    assert history.perun("bisect", "--reset").out == "1 bisection forgotten; what was measured stays stored\n"
    assert '"bisection": null' in history.perun("status", "--json").out
    assert "no interrupted bisection to resume" in history.perun("bisect", "--resume").err
