"""`perun config`: read and change the configuration (manual 3.2.2-3.2.5)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perun.config import edit as editing
from perun.config.layers import MISSING, Config, Layer, read_file
from perun.errors import ConfigError, NotPerunRepository
from perun.porcelain.repository import (
    PERUN_FOLDER,
    Repository,
    enclosing,
    open_repository,
    read_config,
    shared_folder,
)

Scope = Literal["local", "shared", "nearest"]


@dataclass(frozen=True)
class Setting:
    """A key, its value, and the file it stands in (None for a built-in default)."""

    key: str
    value: Any
    source: str | None


def get_value(folder: Path, environ: Mapping[str, str], key: str, scope: Scope = "nearest") -> Setting:
    """The value of `key` in the hierarchy seen from `folder`, or in one of its files alone.

    :raises ConfigError: where the key is unknown, or not set.
    """
    if scope == "local" and next(enclosing(folder), None) is None:
        open_repository(folder, environ)  # says that there is none
    config = read_config(list(enclosing(folder)), environ)
    effective = config.get(key)  # also says where there is no such key
    layer = config.layer(scope)
    value = effective if scope == "nearest" or layer is None else layer.get(key)
    if value is MISSING and scope == "shared":
        layer = config.layer("defaults")  # what the shared configuration holds where nobody wrote one
        value = layer.get(key) if layer else MISSING
    if value is None or value is MISSING:
        where = "" if scope == "nearest" else f" in the {scope} configuration"
        raise ConfigError(f"{key} is not set{where}", f"set it with: perun config set {key} VALUE")
    source = layer if scope != "nearest" else _origin(config, key)
    return Setting(key, value, str(source.path) if source and source.path else None)


def _origin(config: Config, key: str) -> Layer | None:
    try:
        return config.origin(key)
    except ConfigError:
        return None  # a section, which several files may make up


def file_of(folder: Path, environ: Mapping[str, str], scope: Scope) -> Path:
    """The configuration file that `set` and `edit` change: the local one where there is one.

    :raises NotPerunRepository: for scope `local` outside of any repository.
    """
    root = next(enclosing(folder), None)
    if scope == "local" and root is None:
        raise NotPerunRepository(
            f"no Perun repository at {folder} or above it", "make one with perun init, or use --shared"
        )
    if scope == "shared" or root is None:
        path = shared_folder(environ) / "shared.yml"
        if not path.exists():
            editing.add_default_shared(path)
        return path
    return root / PERUN_FOLDER / "local.yml"


def set_in(folder: Path, environ: Mapping[str, str], key: str, text: str, scope: Scope = "nearest") -> Setting:
    """Set `key` to `text`, read as YAML, in the file of the scope; comments and order there are kept.

    :raises ConfigError: where the key is unknown or the value is not of its kind; nothing is written then.
    """
    path = file_of(folder, environ, scope)
    return Setting(key, editing.set_value(path, key, text), str(path))


def set_value(repo: Repository, key: str, text: str, *, scope: Scope = "nearest") -> Setting:
    """As :func:`set_in`, in the given repository."""
    return set_in(repo.root, repo.environ, key, text, scope)


def editor_command(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """The editor that `general.editor` names, as an argument vector; a file name is to be appended."""
    config = read_config(list(enclosing(folder)), environ)
    configured = config.origin("general.editor").path is not None
    text = "" if configured else environ.get("VISUAL") or environ.get("EDITOR") or ""
    return shlex.split(text or str(config.get("general.editor")))


def reset(folder: Path, environ: Mapping[str, str], scope: Scope, template: str = "master") -> Path:
    """Write the file of the scope anew: the local one from `template`, the shared one from the defaults."""
    from perun.config.templates import render

    path = file_of(folder, environ, scope)
    if path.name == "shared.yml":
        editing.add_default_shared(path, overwrite=True)
        return path
    root = path.parent.parent
    try:
        config = read_config([root], environ)
        vcs_type, url = str(config.get("vcs.type") or "git"), str(config.get("vcs.url") or "..")
    except ConfigError:
        vcs_type, url = "git", ".."  # a file too broken to read is what reset is for
    editing.write_text(path, render(template, root, vcs_type, root / PERUN_FOLDER / url))
    return path


def verify(path: Path) -> None:
    """Read one configuration file; raise what is wrong with it."""
    read_file(path)
