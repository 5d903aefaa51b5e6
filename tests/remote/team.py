"""People of a team, each a process: `team.py URL FOLDER`.

Each line of its standard input, `VERB FOLDER`, starts one of them, with the `.perun` of that folder, and is
answered with the number of the process; `wait NUMBER` is answered with the exit code of that one. They are
forked, which takes a hundredth of what starting Python takes, by a program that has used no remote itself:
connections and threads do not survive that.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from perun.running import cleaning as gc
from perun.sharing import transfer
from perun.store import Store
from perun.store.remote import cleaning
from perun.store.remote.contract import Remote
from perun.store.remote.opening import opened

Verb = Callable[[Any, Remote], object]


def push(repo: Any, remote: Remote) -> None:
    assert not transfer.push(repo, remote).refused


def push_by_version(repo: Any, remote: Remote) -> None:
    for minor in repo.store.indexes.minors():
        assert not transfer.push(repo, remote, [minor]).refused


def pull(repo: Any, remote: Remote) -> None:
    assert not transfer.pull(repo, remote).refused


def clean(repo: Any, remote: Remote) -> None:
    gc.collect_remote(repo, remote, gc.RetentionPolicy(), grace=0, now=time.time())


VERBS: dict[str, Verb] = {one.__name__: one for one in (push, push_by_version, pull, clean)}


def work(verb: str, url: str, folder: Path) -> int:
    """Do it; the exit code."""
    try:
        repo = SimpleNamespace(store=Store(folder / ".perun"))
        scratch = folder / ".perun/cache/remotes"
        with opened(url, folder=folder, environ=dict(os.environ), scratch=scratch) as remote:
            VERBS[verb](repo, remote)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main(url: str, folder: str) -> None:
    vars(cleaning).update(REGISTERS=4, SMALL_PACKS=4)  # so that pieces are put together all the time
    opened(url, folder=Path(folder)).close()  # load what takes a second, for all at once
    for line in sys.stdin:
        verb, _, what = line.strip().partition(" ")
        if verb == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(int(what), 0)[1])
        elif answer := os.fork():
            os.setpgid(answer, answer)
        else:
            os.setpgid(0, 0)
            os._exit(work(verb, url, Path(what)))
        print(answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
