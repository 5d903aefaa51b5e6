"""What tests share that measure versions in folders: what is measured notes where it runs."""

import contextlib
import os
from pathlib import Path
from typing import Any

from shared import wait_for

QUICK = "{name: time, params: {warmup: 0, repeat: 1}}"
MEASURED = "sh -c 'echo $PWD $(git rev-parse HEAD) $(cat file.txt) >>$RECORD'"


def write_config(project: Any, text: str = "", *, cmds: str = MEASURED) -> None:
    """Write the local configuration; one command is measured, which notes its folder and what is there."""
    (project.path / ".perun/local.yml").write_text(
        f"vcs: {{type: git, url: ..}}\ncmds: [{cmds!r}]\ncollectors: [{QUICK}]\n{text}"
    )


def settle(folder: Path) -> None:
    """Wait for what outlives a killed run: git that it has started, and the measured program."""

    def at_work() -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                named = os.fsencode(folder) in (process / "cmdline").read_bytes()
                inside = os.readlink(process / "cwd").startswith(str(folder))
                if (named or inside) and int(process.name) != os.getpid():
                    return True
        return False

    wait_for(lambda: not at_work())
