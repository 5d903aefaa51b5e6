"""Processes that use a remote at once: `writers.py count|put|all URL FOLDER WRITERS TIMES`.

They are forked by a program that has used no remote yet, since connections and threads do not survive that.
Its exit code is that of the first that failed.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from perun.store.remote.contract import MissingPiece, Remote
from perun.store.remote.opening import opened


def count_up(remote: Remote, writer: int, times: int) -> None:
    """Add one to a head, so many times."""
    done = 0
    while done < times:
        try:
            before = remote.get("heads/count")
        except MissingPiece:
            before = None
        done += remote.replace("heads/count", b"%d" % (int(before or b"0") + 1), before)


def put(remote: Remote, writer: int, times: int) -> None:
    """Put so many pieces."""
    for number in range(times):
        assert remote.put(f"registers/{writer}-{number}", b"x" * 1000)


def put_same(remote: Remote, writer: int, times: int) -> None:
    """Put pieces that the others put, too, with other content; print the names of those that were new."""
    for number in range(times):
        if remote.put(f"packs/{number}", b"%d" % writer * 1000):
            os.write(1, b"%d %d\n" % (number, writer))


def put_until_killed(remote: Remote, writer: int, times: int) -> None:
    """Put large pieces; print a line after each."""
    for number in range(times):
        remote.put(f"packs/{number}", b"%07d" % number * 30_000)
        os.write(1, b"%d\n" % number)


WORK: dict[str, Callable[[Remote, int, int], None]] = {
    one.__name__: one for one in (count_up, put, put_same, put_until_killed)
}


def main(work: str, url: str, folder: str, writers: str, times: str) -> int:
    opened(url, folder=Path(folder)).close()  # load what takes a second, for all processes at once
    children = []
    for writer in range(int(writers)):
        child = os.fork()
        if not child:
            with opened(url, folder=Path(folder), environ=dict(os.environ)) as remote:
                WORK[work](remote, writer, int(times))
            sys.stdout.flush()
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
