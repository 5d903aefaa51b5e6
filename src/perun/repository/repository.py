"""The repository a verb works on: opened once, passed down, never global."""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.core.config.layers import Config, load, refresh_cache
from perun.core.config.schema import is_true
from perun.core.errors import (
    ConfigError,
    ForeignRepository,
    NotPerunRepository,
    NotTrusted,
    PluginError,
    VersionControlError,
)
from perun.plugin.registry import PluginCandidate, Registry
from perun.plugin.versions import Vcs
from perun.repository.user import cache_folder, links_of, own_users, shared_folder
from perun.store import Store

if TYPE_CHECKING:
    from perun.repository.trust import Ask, Brought, TrustState
    from perun.store.files import Files


# Whose `.perun` it is: that of another user is not used, as git does not use the repository of another user.
#
# Otherwise whoever may write to a parent folder could put a `.perun` there (for git that was CVE-2022-24765).


def check(root: Path, environ: Mapping[str, str]) -> None:
    """Raise if `root` or its `.perun` belongs to another user, unless the user has said that he trusts it.

    Where there is no `.perun` yet, as before `perun init`, the folder alone decides. He has said so by
    `perun trust`, by `PERUN_TRUST`, or by `safe.directory` of git.

    :raises ForeignRepository: names the owner, and how to trust.
    """
    own = own_users(environ)
    perun = root / ".perun"
    try:
        there = perun.exists()
        owners = [(path, os.stat(path).st_uid) for path in (perun, root)[not there :]]
    except OSError as problem:
        raise ForeignRepository(f"{root} cannot be read: {problem.strerror}") from None
    foreign = next(((path, owner) for path, owner in owners if owner not in own), None)
    if foreign is None or _is_allowed(root, environ):
        return
    import shlex

    path, owner = foreign
    if not there:
        # `perun trust` needs a `.perun`, and git refuses the folder as well.
        raise ForeignRepository(
            f"{path} belongs to {_name(owner)}, not to you, so Perun makes no .perun there",
            f"if you trust it: git config --global --add safe.directory {shlex.quote(str(root.resolve()))}",
        )
    raise ForeignRepository(
        f"{path} belongs to {_name(owner)}, not to you, so Perun does not use its .perun",
        f"if you trust it: perun trust {shlex.quote(str(root))}  (in CI: PERUN_TRUST=1)",
    )


def _is_allowed(root: Path, environ: Mapping[str, str]) -> bool:
    from perun.plugin.registry import Registry
    from perun.repository import trust

    if trust.knows(root, environ):
        return True
    allowed: list[str] = Registry().get("vcs", "git").safe_folders(environ)
    return "*" in allowed or str(root.resolve()) in allowed


def _name(user: int) -> str:
    import pwd

    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the number {user}"


PERUN_FOLDER = ".perun"
STORE = "store.url"
"""The key that names the database of the store."""
BISECTIONS = "bisections"
"""The folder in it with the journals of `perun bisect`."""
BATCHES = "batches"
"""The same of `perun run`."""
KEPT_INPUTS = "workloads/fuzz"
"""The folder in it with what `perun fuzz --keep` makes workloads of."""


class _Opened(NamedTuple):
    root: Path
    working_root: Path
    config: Config
    environ: Mapping[str, str]
    asks: Ask | None = None


class Repository(_Opened):
    """A project with its `.perun`: its folder, configuration, store and version control.

    `root` holds `.perun`; `working_root` is the working directory that the user stands in, which differs
    from `root` only in a linked working tree that shares the `.perun` of the main one. `asks` asks the user
    whether he trusts the repository, if there is one to ask.
    """

    @cached_property
    def store(self) -> Store:
        """Where profiles and what is known of them are kept."""
        return _Store(self.root / PERUN_FOLDER, self.config, self.environ, self.require_trust)

    @cached_property
    def trust_state(self) -> TrustState:
        """Whether the user trusts what the `.perun` here would run (see :mod:`perun.repository.trust`)."""
        from perun.repository import trust

        return trust.trust_state(self.root, self.config, self.environ)

    def require_trust(self, doing: str, brought: Brought | None = None) -> None:
        """Raise unless the user trusts what the `.perun` here would run; he is asked if that is possible.

        Whatever runs something that the repository names calls this first.

        :param doing: what would run it, e.g. `running the job matrix`.
        :param brought: what another file would have run, beside the configuration.
        :raises NotTrusted: names what would have run, and how to trust it.
        """
        from perun.repository import trust

        found = trust.with_brought(self.trust_state, brought, self.environ)
        if not found.decided and self.asks is not None and self.asks(found, doing):
            trust.grant(self.root, self.config, self.environ, brought)
            self.__dict__.pop("trust_state")
            found = trust.with_brought(self.trust_state, brought, self.environ)
        trust.require(found, doing)

    @cached_property
    def registry(self) -> Registry:
        """The plugins usable here; those of `.perun/plugins` only if the user trusts the repository."""
        return plugins_of(self)

    @cached_property
    def vcs(self) -> Vcs:
        """The wrapped version control system, as `vcs.type` and `vcs.url` say.

        :raises PluginError: if the type is unknown.
        :raises NotTrusted: if the repository of somebody else is named, and the user has not said that he
            trusts that.
        """
        url = self.config.get("vcs.url") or ".."  # relative to `.perun`
        linked = self.working_root != self.root
        root = (self.working_root if linked else self.root / PERUN_FOLDER / url).resolve()
        if _is_foreign(root, self.working_root):
            self.require_trust(f"using the version control at {root} (vcs.url)")
        factory = self.registry.get("vcs", self.config.get("vcs.type") or "git")
        vcs = factory(root, self.environ)
        assert isinstance(vcs, Vcs)
        return vcs

    @property
    def registers_after_run(self) -> bool:
        """Whether `profiles.register_after_run` is set to a true value."""
        return is_true(self.config.get("profiles.register_after_run"))

    @property
    def in_place_journal(self) -> Path:
        """The journal of a `run --in-place`, from which the working directory is restored; usually absent."""
        return self.root / PERUN_FOLDER / "in-place.json"

    def version(self, revision: str | None) -> str:
        """The full checksum that `revision` names; of the current version if it is None."""
        if revision is None:
            return self.vcs.get_minor_head()
        return self.vcs.massage_parameter(revision)


def _is_foreign(vcs_root: Path, root: Path) -> bool:
    """Whether the repository at `vcs_root` is another one than that which `root` is in.

    A bare one is: any folder of a clone can be one, with a configuration that names programs.
    """
    top = top_of_git(vcs_root)
    if top != top_of_git(root.resolve()):
        return True
    inside = _until(top, vcs_root)
    return any(os.path.lexists(one / "HEAD") and os.path.isdir(one / "objects") for one in inside)


def _until(top: Path | None, folder: Path) -> list[Path]:
    """`folder` and those above it, up to `top` but without it."""
    found = []
    for one in (folder, *folder.parents):
        if one == top:
            break
        found.append(one)
    return found


def plugins_of(repo: Repository) -> Registry:
    """The plugins usable in the repository, as :attr:`Repository.registry`."""
    folder = repo.root / PERUN_FOLDER / "plugins"
    return _OwnPlugins(folder, repo) if folder.is_dir() else Registry()


class _OwnPlugins(Registry):
    """With the plugins of `folder` in the repository, which are not even looked for unless it is trusted.

    Whether it is, is found out when a plugin is asked for that is not built in.
    """

    def __init__(self, folder: Path, repo: Repository) -> None:
        super().__init__([folder])
        self._folder = folder
        self._repo = repo

    def _in_folders(self, family: str) -> Iterator[PluginCandidate]:
        if self._repo.trust_state.decided:
            yield from super()._in_folders(family)

    def get(self, family: str, name: str) -> Any:
        try:
            return super().get(family, name)
        except PluginError:
            stem = name.replace("-", "_")
            here = any((self._folder / family / one).exists() for one in (stem, f"{stem}.py"))
            if self._repo.trust_state.decided or not here:
                raise
        self._repo.require_trust(f"the plugin {self._folder / family / name}")
        self.forget()
        return super().get(family, name)


class _Store(Store):
    """The store; whatever writes to it also brings the cache of the parsed configuration up to date.

    So commands that only read, such as `perun status`, need no YAML parser, and never write.
    """

    def __init__(
        self,
        root: Path,
        config: Config,
        environ: Mapping[str, str],
        require_trust: Callable[[str], None],
    ) -> None:
        url = str(config.get(STORE) or "")
        super().__init__(root, limit=_max_size(config), columnar_from=_columnar_from(config), url=url)
        self._require_trust = require_trust
        self._config = config
        self._environ = environ
        self._is_cached = all(layer.origin != "file" for layer in config.layers)

    @cached_property
    def files(self) -> Files:
        """The files. A database that the repository of somebody else names is used if the user trusts it."""
        if self.url:
            from perun.core.wording import without_secrets

            self._require_trust(f"using the store in {without_secrets(self.url)} ({STORE})")
        return super().files

    @contextmanager
    def lock(self) -> Iterator[None]:
        with super().lock():
            yield
            if not self._is_cached:
                self._is_cached = True
                cache_config(self._config, self.root, self._environ)


def _max_size(config: Config) -> int:
    """`profiles.max_size` in bytes."""
    number = float(config.get("profiles.max_size"))
    if not 0 < number < 1 << 30:
        raise ConfigError(
            f"profiles.max_size is {number:g}: expected a number of MiB above 0",
            "e.g. perun config --shared set profiles.max_size 1024",
        )
    return int(number * (1 << 20))


def _columnar_from(config: Config) -> int:
    """`profiles.columnar_from`."""
    number = float(config.get("profiles.columnar_from"))
    if not 0 <= number < 1 << 60:
        raise ConfigError(
            f"profiles.columnar_from is {number:g}: expected a count of numbers, or 0 for never",
            "e.g. perun config set profiles.columnar_from 0",
        )
    return int(number)


def cache_config(config: Config, perun_folder: Path, environ: Mapping[str, str]) -> None:
    """Keep the parsed files of the configuration among the caches of the user."""
    cache = _cache_file(perun_folder, environ)
    if cache is None:
        return
    # A cache that cannot be written, or files that are wrong meanwhile, are no reason to fail.
    with suppress(OSError, ConfigError):
        refresh_cache(config, cache)


def _cache_file(perun_folder: Path, environ: Mapping[str, str]) -> Path | None:
    """The cache of the instance: never in the repository, where somebody else could have written it.

    Instances whose paths have the same checksum share one, which holds the whole path of each file.
    """
    folder = cache_folder(environ)
    return folder and folder / "config" / f"{crc32(os.fsencode(perun_folder)):08x}.json"


def enclosing(folder: Path) -> Iterator[Path]:
    """The folders at and above `folder` that hold a `.perun`, the nearest first.

    The search ends at the top of the git repository: what is above it is not of this project, and may be of
    somebody else. A linked working tree and a submodule, whose `.git` is a file, belong to what is above.
    """
    for candidate in (folder, *folder.parents):
        if (candidate / PERUN_FOLDER).is_dir():
            yield candidate
        if (candidate / ".git").is_dir():
            return


def top_of_git(folder: Path) -> Path | None:
    """The nearest folder at or above `folder` with a `.git`, which need not be a folder; None for none."""
    return next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)


def read_config(roots: list[Path], environ: Mapping[str, str]) -> Config:
    """The layered configuration of the Perun instances at `roots`, nearest first.

    Of those above the nearest only such take part that the user trusts, or that would run nothing.
    """
    cache = _cache_file(roots[0] / PERUN_FOLDER, environ) if roots else None
    config = load([root / PERUN_FOLDER for root in roots], shared_folder(environ), cache)
    if len(roots) < 2:
        return config
    from perun.repository.trust import without_untrusted

    return without_untrusted(config, roots, environ)


def open_repository(folder: Path, environ: Mapping[str, str], asks: Ask | None = None) -> Repository:
    """The nearest repository at or above `folder`; in a linked git working tree also the main one's.

    :param asks: asks the user whether he trusts the repository.
    :raises NotPerunRepository: if there is none.
    :raises ForeignRepository: if it belongs to another user.
    :raises ConfigError: if its configuration is wrong.
    """
    roots, working_root = locate(folder, environ)
    if not roots:
        raise NotPerunRepository(f"no Perun repository at {folder} or above it", "make one with: perun init")
    return Repository(roots[0], working_root, read_config(roots, environ), environ, asks)


def locate(folder: Path, environ: Mapping[str, str], *, foreign: bool = False) -> tuple[list[Path], Path]:
    """The folders whose `.perun` `folder` belongs to, the nearest first, and the working directory it is in.

    There may be none. In a linked git working tree it is the `.perun` of the main one, where the linked one
    has none of its own, whether it is inside the main one or elsewhere.

    :param foreign: also one that belongs to another user.
    :raises ForeignRepository: if the nearest belongs to another user; those above it are left out.
    :raises NotTrusted: if folders of the nearest are links, and the user has not decided to trust it.
    """
    roots, working_root = _located(folder, environ)
    if roots and not foreign:
        check_folder(roots[0], environ)
    return roots[:1] + [root for root in roots[1:] if _is_own(root, environ)], working_root


def check_folder(root: Path, environ: Mapping[str, str]) -> None:
    """Raise if the `.perun` of `root` is not the user's own, or would have Perun write elsewhere.

    :raises ForeignRepository: if it belongs to another user.
    :raises NotTrusted: if folders of it are links, and the user has not decided to trust it.
    """
    check(root, environ)
    links = links_of(root / PERUN_FOLDER)
    if not links:
        return
    from perun.repository import trust

    if not trust.trust_state(root, read_config([root], environ), environ).decided:
        import shlex

        raise NotTrusted(
            f"{links[0]} is a link to {os.readlink(links[0])}: Perun would read, write and delete there, "
            "and you have not trusted it",
            "remove the link; or if you want that: "
            f"perun trust {shlex.quote(str(root))}  (in CI: {trust.VARIABLE}=1)",
        )


def _is_own(root: Path, environ: Mapping[str, str]) -> bool:
    try:
        check(root, environ)
    except ForeignRepository:
        return False
    return True


def _located(folder: Path, environ: Mapping[str, str]) -> tuple[list[Path], Path]:
    roots = list(enclosing(folder))
    if not roots or _is_linked(folder, roots[0]):
        linked = _main_working_tree(folder, environ)
        if linked is not None and (not roots or linked[0].resolve() == roots[0].resolve()):
            return list(enclosing(linked[0])), linked[1]
    return roots, roots[0] if roots else folder


def _is_linked(folder: Path, root: Path) -> bool:
    """Whether a linked working tree, or a submodule, may begin between the two: `.git` is a file there."""
    return any((one / ".git").is_file() for one in _until(root, folder))


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
    return open_repository(Path.cwd(), dict(os.environ))
