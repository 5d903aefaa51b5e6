"""Who makes a version, in a system that has no configuration to say so."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

DATE: Final = "%Y-%m-%d %H:%M:%S"
"""How a version tells its date, in UTC."""


class Person(NamedTuple):
    """The author of a version."""

    name: str
    email: str


def current(environ: Mapping[str, str]) -> Person:
    """The user as the system knows them; `EMAIL` in the environment says how to write to them."""
    try:
        account = pwd.getpwuid(os.getuid())
        login, name = account.pw_name, account.pw_gecos.partition(",")[0]
    except KeyError:  # a container with a user of no name
        login = name = ""
    login = login or environ.get("USER") or "unknown"
    address = environ.get("EMAIL", "")
    return Person(name or login, address if "@" in address else f"{login}@{os.uname().nodename}")


def now() -> str:
    """Now, as a version tells its date: `YYYY-MM-DD HH:MM:SS` in UTC."""
    return time.strftime(DATE, time.gmtime())
