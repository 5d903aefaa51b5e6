"""The process of one job on a machine: `python -m perun.running.pool.job`, with what to do as JSON on its
input.

It has a session of its own, so that neither the end of its worker nor Ctrl-C at the client ends it by chance:
it leaves its result for who asks next. SIGTERM ends it, with what it measures.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from perun.core.errors import PerunError, Terminated
from perun.running.pool import measuring, orders, places


def main() -> int:
    """Do what standard input says; the answer is a file, but that of a calibration."""
    signal.signal(signal.SIGTERM, _end)
    told = json.loads(sys.stdin.read())
    environ = dict(os.environ)
    try:
        if told["verb"] == "measure":
            measuring.carry_out(orders.read(told["order"]), environ)
        else:
            sys.stdout.write(json.dumps(places.measure(environ)._asdict()))
    except PerunError as problem:
        sys.stderr.write(f"{problem.message}\n{problem.hint}\n")
        return problem.exit_code
    return 0


def _end(*_given: Any) -> None:
    raise Terminated(143)


if __name__ == "__main__":
    sys.exit(main())
