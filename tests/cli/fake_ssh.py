"""What stands for `ssh` in the tests of pools: it runs the command here, and its tunnels are real.

The name of the host becomes that of the machine. A host `refused` refuses.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading


def serve(forward: str) -> None:
    """Pass on what comes to one port to the other: `ADDRESS:PORT:ADDRESS:PORT`."""
    here, port, there, target = forward.split(":")
    listening = socket.create_server((here, int(port)))
    threading.Thread(target=accept, args=(listening, (there, int(target))), daemon=True).start()


def accept(listening: socket.socket, target: tuple[str, int]) -> None:
    """Connect each that comes with the target."""
    while True:
        one, _ = listening.accept()
        try:
            other = socket.create_connection(target)
        except OSError:
            one.close()
            continue
        for source, goal in ((one, other), (other, one)):
            threading.Thread(target=copy, args=(source, goal), daemon=True).start()


def copy(source: socket.socket, goal: socket.socket) -> None:
    """Pass on what comes until one side ends."""
    try:
        while data := source.recv(1 << 16):
            goal.sendall(data)
    except OSError:
        pass
    for one in (source, goal):
        one.close()


def main(words: list[str]) -> int:
    """Do what ssh would: `-R` and `-L` forward, what stands behind the host is run by a shell."""
    separator = words.index("--")
    options, (host, command) = words[:separator], words[separator + 1 :]
    if host == "refused":
        sys.stderr.write("Permission denied (publickey).\n")
        return 255
    for option, value in itertools.pairwise(options):
        if option in ("-R", "-L"):
            serve(value)
    return subprocess.call(["sh", "-c", command], env={**os.environ, "PERUN_POOL_MACHINE": host})


sys.exit(main(sys.argv[1:]))
