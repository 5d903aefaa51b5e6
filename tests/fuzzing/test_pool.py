"""What is said where a process of `--jobs` ends by itself, or has a defect."""

import os
from functools import partial

import pytest
from in_process import InProcess, ends, is_killed, is_wrong

from perun.core.errors import JobFailed
from perun.fuzz.executing import InputTask, Pool

pytestmark = pytest.mark.filterwarnings("error")


def answers_of(counting):
    pool = Pool([partial(InProcess, counting)], os.environ)
    try:
        return list(pool.run([InputTask(number, b"some text", 1.0) for number in range(6)]))
    finally:
        pool.close()


@pytest.mark.parametrize(("counting", "message", "hint"), [
    (is_killed, "a process of --jobs was killed by SIGKILL (Killed)", "with fewer jobs"),
    (ends, "a process of --jobs exited with status 3", "go on with --resume"),
])  # fmt: skip
def test_a_process_that_ends_is_told_with_how_it_ended(counting, message, hint):
    with pytest.raises(JobFailed) as caught:
        answers_of(counting)
    assert caught.value.message == message and hint in caught.value.hint


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_defect_in_a_process_is_raised_here_with_where_it_is(is_gone):
    pool = Pool([partial(InProcess, is_wrong)], os.environ)
    try:
        pool.begin(InputTask(0, b"some text", 1.0))
        if is_gone:  # before it gets more to do
            pool._workers[0]._process.wait(60)
        with pytest.raises(ValueError, match="no number") as caught:
            list(pool.run([InputTask(number, b"some text", 1.0) for number in range(1, 6)]))
    finally:
        pool.close()
    assert "in is_wrong" in "".join(caught.value.__notes__)
