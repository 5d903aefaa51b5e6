"""Layered configuration: `local.yml` of each instance, `shared.yml`, and the built-in defaults (manual 11).

:mod:`perun.core.config.edit` and :mod:`perun.core.config.templates` write files; they are imported by who
    needs them.
"""

from perun.core.config.layers import (
    LOCAL_FILE,
    MISSING,
    SHARED_FILE,
    Config,
    Layer,
    load,
    read_file,
    refresh_cache,
)
from perun.core.config.schema import KEYS, ConfigKey, KeyKind, Scope, is_true

__all__ = [
    "KEYS",
    "LOCAL_FILE",
    "MISSING",
    "SHARED_FILE",
    "Config",
    "ConfigKey",
    "KeyKind",
    "Layer",
    "Scope",
    "is_true",
    "load",
    "read_file",
    "refresh_cache",
]
