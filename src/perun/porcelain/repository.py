"""The repository a verb works on: opened once, passed down, never global."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from perun.config.layers import Config, load, refresh_cache
from perun.errors import ConfigError, NotPerunRepository, PluginError, VersionControlError
from perun.plugin.api import Vcs
from perun.plugin.registry import Registry
from perun.store import Store

PERUN_FOLDER = ".perun"


class _Opened(NamedTuple):
    root: Path
    working_root: Path
    config: Config
    environ: Mapping[str, str]


class Repository(_Opened):
    """A project with its `.perun`: where it lies, its configuration, store and version control.

    `root` holds `.perun`; `working_root` is the working directory that the user stands in, which differs
    from `root` only in a linked working tree that shares the `.perun` of the main one.
    """

    @cached_property
    def store(self) -> Store:
        """Where profiles and what is known of them are kept."""
        return _Store(self.root / PERUN_FOLDER, self.config)

    @cached_property
    def registry(self) -> Registry:
        """The plugins usable here; those of `.perun/plugins` only where the user trusts the repository."""
        return plugins_of(self.root, self.config)

    @cached_property
    def vcs(self) -> Vcs:
        """The wrapped version control system, as `vcs.type` and `vcs.url` say.

        :raises PluginError: where the type is unknown.
        """
        url = self.config.get("vcs.url") or ".."  # relative to `.perun`
        linked = self.working_root != self.root
        root = self.working_root if linked else self.root / PERUN_FOLDER / url
        factory = self.registry.get("vcs", self.config.get("vcs.type") or "git")
        vcs = factory(root.resolve(), self.environ)
        assert isinstance(vcs, Vcs)
        return vcs

    @property
    def in_place_journal(self) -> Path:
        """Where a `run --in-place` notes how to give the working directory back; usually there is no file."""
        return self.root / PERUN_FOLDER / "in-place.json"

    def version(self, revision: str | None) -> str:
        """The full checksum that `revision` names; of the current version where it is None."""
        if revision is None:
            return self.vcs.get_minor_head()
        return self.vcs.massage_parameter(revision)


def plugins_of(root: Path, config: Config) -> Registry:
    """The plugins usable at `root`, as :attr:`Repository.registry`."""
    folder = root / PERUN_FOLDER / "plugins"
    if not folder.is_dir():
        return Registry()
    command = how_to_trust(root, config)
    return _Untrusting(folder, command) if command else Registry([folder])


def how_to_trust(root: Path, config: Config) -> str:
    """The command that makes the user trust the plugins of the repository; empty where they do already."""
    trusted = [Path(one).expanduser() for one in config.get("plugins.trusted") or ()]
    # A relative path would trust whatever the user stands in.
    if root.resolve() in {one.resolve() for one in trusted if one.is_absolute()}:
        return ""
    import json

    folders = json.dumps([*map(str, trusted), str(root.resolve())])
    return f"perun config --shared set plugins.trusted {folders!r}"


class _Untrusting(Registry):
    """The plugins of elsewhere; who asks for one of `folder` learns how to trust it.

    :param command: what the user would have to type.
    """

    def __init__(self, folder: Path, command: str) -> None:
        super().__init__()
        self._folder = folder
        self._command = command

    def get(self, family: str, name: str) -> Any:
        try:
            return super().get(family, name)
        except PluginError as problem:
            stem = name.replace("-", "_")
            if not any((self._folder / family / one).exists() for one in (stem, f"{stem}.py")):
                raise
            raise PluginError(
                f"{problem.message}, but {self._folder} has one, which is not loaded",
                f"if you trust what is there: {self._command}",
            ) from None


class _Store(Store):
    """The store; whatever writes to it also brings the cache of the parsed configuration up to date.

    So commands that only read, such as `perun status`, need no YAML parser, and never write.
    """

    def __init__(self, root: Path, config: Config) -> None:
        super().__init__(root, limit=_max_size(config))
        self._config = config
        self._is_cached = all(layer.origin != "file" for layer in config.layers)

    @contextmanager
    def lock(self) -> Iterator[None]:
        with super().lock():
            yield
            if not self._is_cached:
                self._is_cached = True
                cache_config(self._config, self.root)


def _max_size(config: Config) -> int:
    """`profiles.max_size` in bytes."""
    number = float(config.get("profiles.max_size"))
    if not 0 < number < 1 << 30:
        raise ConfigError(
            f"profiles.max_size is {number:g}: expected a number of MiB above 0",
            "e.g. perun config --shared set profiles.max_size 1024",
        )
    return int(number * (1 << 20))


def cache_config(config: Config, perun_folder: Path) -> None:
    """Keep the parsed files of the configuration in `.perun/cache`; by who holds the lock of the store."""
    # A cache that cannot be written, or files that are wrong meanwhile, are no reason to fail.
    with suppress(OSError, ConfigError):
        refresh_cache(config, _cache_file(perun_folder))


def _cache_file(perun_folder: Path) -> Path:
    return perun_folder / "cache" / "config.json"


def shared_folder(environ: Mapping[str, str]) -> Path:
    """Where `shared.yml` lies: `$PERUN_CONFIG_DIR`, else `~/.config/perun` (manual 11.1)."""
    if environ.get("PERUN_CONFIG_DIR"):
        return Path(environ["PERUN_CONFIG_DIR"])
    return Path(environ.get("HOME") or "~").expanduser() / ".config" / "perun"


def enclosing(folder: Path) -> Iterator[Path]:
    """The folders at and above `folder` that hold a `.perun`, the nearest first."""
    for candidate in (folder, *folder.parents):
        if (candidate / PERUN_FOLDER).is_dir():
            yield candidate


def read_config(roots: list[Path], environ: Mapping[str, str]) -> Config:
    """The layered configuration of the Perun instances at `roots`, nearest first."""
    cache = _cache_file(roots[0] / PERUN_FOLDER) if roots else None
    return load([root / PERUN_FOLDER for root in roots], shared_folder(environ), cache)


def open_repository(folder: Path, environ: Mapping[str, str]) -> Repository:
    """The nearest repository at or above `folder`; in a linked git working tree also the main one's.

    :raises NotPerunRepository: where there is none.
    :raises ConfigError: where its configuration is wrong.
    """
    roots, working_root = locate(folder, environ)
    if not roots:
        raise NotPerunRepository(f"no Perun repository at {folder} or above it", "make one with: perun init")
    return Repository(roots[0], working_root, read_config(roots, environ), environ)


def locate(folder: Path, environ: Mapping[str, str]) -> tuple[list[Path], Path]:
    """The folders whose `.perun` `folder` belongs to, the nearest first, and the working directory it is in.

    There may be none. In a linked git working tree it is the `.perun` of the main one, where the linked one
    has none of its own, whether it lies inside the main one or elsewhere.
    """
    roots = list(enclosing(folder))
    if not roots or _is_linked(folder, roots[0]):
        linked = _main_working_tree(folder, environ)
        if linked is not None and (not roots or linked[0].resolve() == roots[0].resolve()):
            return list(enclosing(linked[0])), linked[1]
    return roots, roots[0] if roots else folder


def _is_linked(folder: Path, root: Path) -> bool:
    """Whether a linked working tree, or a submodule, may begin between the two: `.git` is a file there."""
    below = itertools.takewhile(lambda one: one != root, (folder, *folder.parents))
    return any((one / ".git").is_file() for one in below)


def _main_working_tree(folder: Path, environ: Mapping[str, str]) -> tuple[Path, Path] | None:
    git = Registry().get("vcs", "git")
    try:
        found: tuple[Path, Path] | None = git.main_working_tree(folder, environ)
    except VersionControlError:
        return None
    if found is None or not (found[0] / PERUN_FOLDER).is_dir():
        return None
    return found


def open_nearest() -> Repository:
    """The repository of the current directory, for scripts that use the documented `perun.vcs` functions.

    This is the one place outside the command line that reads the process's directory and environment.
    """
    import os

    return open_repository(Path.cwd(), dict(os.environ))
