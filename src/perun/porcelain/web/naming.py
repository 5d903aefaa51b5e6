"""How series are named for people, and identified in addresses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from perun.porcelain.changes.data import SeriesKey
from perun.porcelain.trend import text_of
from perun.profile.head import Configuration

_DIGITS: Final = 12
_TIMES: Final[Mapping[str, str]] = MappingProxyType(
    {"real": "real time", "user": "user time", "sys": "system time", "cpu": "processor time"}
)


def identity(key: SeriesKey) -> str:
    """What stands for the series, on whatever machine, in addresses: 12 hexadecimal digits."""
    text = json.dumps(key._replace(machine=""))
    return hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()


def metric_of(key: SeriesKey) -> str:
    """What is measured at the location: `real`, `peak`, `total`, `instructions` ..."""
    name, bracket, rest = key.location.rpartition(" [")
    if bracket and name and rest.endswith("]"):
        return rest[:-1]
    return key.subtype or key.type


def is_whole(key: SeriesKey) -> bool:
    """Whether it is of the whole program, and not of a function of it."""
    return _place(key) in (key.configuration.cmd, text_of(key.configuration))


def title_of(key: SeriesKey) -> str:
    """`real time of ./app big.txt`, `insert [total] in ./app big.txt`."""
    command = text_of(key.configuration)
    if is_whole(key):
        return f"{words_of(key)} of {command}"
    return f"{key.location} in {command}" if command else key.location


def words_of(key: SeriesKey) -> str:
    """What of a whole program is measured, in words: `real time`, `peak`."""
    metric = metric_of(key)
    return _TIMES.get(metric, metric) if key.type == "time" else metric


def name_of(key: SeriesKey, short: Mapping[Configuration, str]) -> str:
    """The title in few words. :param short: the :func:`~perun.profile.head.shortest` names."""
    if is_whole(key):
        return f"{short[key.configuration]} [{metric_of(key)}]"
    return f"{key.location} in {short[key.configuration]}" if len(short) > 1 else key.location


def _place(key: SeriesKey) -> str:
    """The location without what is measured there."""
    name, bracket, _ = key.location.rpartition(" [")
    return name if bracket else key.location
