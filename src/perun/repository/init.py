"""`perun init`: make a folder a Perun repository (manual 3.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perun.core import atomic
from perun.core.config.templates import Build, recognise, render
from perun.core.errors import NotPerunRepository, UsageError, VersionControlError
from perun.core.wording import without_secrets
from perun.repository.repository import (
    PERUN_FOLDER,
    STORE,
    Repository,
    check_folder,
    open_repository,
    plugins_of,
    read_config,
)
from perun.repository.trust import Ask
from perun.store import Store


@dataclass(frozen=True)
class InitResult:
    """The repository, whether there was one before, and whether the version control was initialised.

    `build` is how the project is built, if that was recognised. `trusted` says whether what `.perun` holds
    may run: what was made here may, what was there before may not unless the user had said so. `store` is the
    database that holds the store, if one does.
    """

    repository: Repository
    reinitialized: bool
    vcs_initialized: bool
    config_file: Path
    build: Build | None = None
    trusted: bool = True
    store: str = ""


def init(
    folder: Path,
    environ: Mapping[str, str],
    *,
    vcs_type: str | None = None,
    vcs_path: Path | None = None,
    vcs_params: Mapping[str, Any] | None = None,
    template: str = "master",
    store: str | None = None,
    asks: Ask | None = None,
) -> InitResult:
    """Make `folder` a Perun repository; what is there already is kept, a configuration too.

    The version control system is initialised if there is none yet, or if parameters for it are given.

    :param vcs_type: if None, what the configuration that is there says, else git. It may be a plugin of
        `.perun/plugins`, if the user trusts the repository.
    :param vcs_path: folder of the wrapped repository; `folder` itself if None.
    :param asks: asks the user whether he trusts what is there already.
    :param store: the URL of a database that holds the store; if None, what the configuration that is there
        says, else files of `.perun`.
    :param template: one of `user`, `developer`, `master` (manual 11.3).
    :raises PluginError: if `vcs_type` is unknown. :raises VersionControlError: if it refuses.
    :raises NotPerunRepository: if the folder cannot be made or written.
    :raises RemoteError: if the database cannot be reached, or refuses.
    :raises ForeignRepository: if it belongs to another user.
    """
    root = folder.resolve()
    vcs_root = (vcs_path or root).resolve()
    local = root / PERUN_FOLDER / "local.yml"
    if root.exists():
        check_folder(root, environ)  # before anything is made, so that nothing half made stays
    config = read_config([root] if local.exists() else [], environ)
    before = Repository(root, root, config, environ, asks)
    made_here = not local.exists() and not (root / PERUN_FOLDER / "plugins").exists()
    vcs_type = _type_to_take(vcs_type, str(config.get("vcs.type") or "git"), local)
    factory = plugins_of(before).get("vcs", vcs_type)
    store = _store_to_take(store, before, local)
    text = render(template, root, vcs_type, vcs_root, store)
    try:
        vcs_root.mkdir(parents=True, exist_ok=True)
        vcs = factory(vcs_root, environ)
        made = bool(vcs_params) or not _is_repository(vcs)
        if made:
            _init_vcs(vcs, vcs_params or {})
        reinitialized = local.exists()
        Store(root / PERUN_FOLDER, url=store).create()
        if not reinitialized:
            atomic.write(local, text.encode())
        _exclude(vcs, root)
    except OSError as problem:
        raise NotPerunRepository(
            f"cannot create a Perun repository in {root}: {problem.strerror}",
            "choose a folder that you may write to",
        ) from None
    repository = open_repository(root, environ, asks)
    trusted = _trusts(repository) if made_here else repository.trust_state.trusted
    with repository.store.lock():
        pass  # the first to write caches the parsed configuration
    return InitResult(repository, reinitialized, made, local, recognise(root), trusted, store)


def _trusts(repository: Repository) -> bool:
    """Record that what was made here is trusted; whether that could be done."""
    from perun.repository import trust

    try:
        trust.grant(repository.root, repository.config, repository.environ)
    except OSError:
        return False
    return True


def _type_to_take(wanted: str | None, configured: str, local: Path) -> str:
    if wanted is not None and local.exists() and wanted != configured:
        raise VersionControlError(
            f"this repository wraps {configured}, not {wanted}, as {local} says (vcs.type)",
            f"change it first with: perun config --local set vcs.type {wanted}",
        )
    return wanted or configured


def _store_to_take(wanted: str | None, before: Repository, local: Path) -> str:
    """The URL of the database that holds the store; empty for files."""
    configured = str(before.config.get(STORE) or "")
    if wanted is not None:
        from perun.store.connections import absolute_url

        wanted = absolute_url(wanted, before.root)
        if local.exists() and wanted != configured:
            raise UsageError(
                f"the store of this repository is in {without_secrets(configured) or local.parent}, not in "
                f"{wanted}",
                "to move it, push its profiles to a remote and register what is pending; then: "
                f"perun config --local set {STORE} {wanted}; perun init; perun pull",
            )
        return wanted
    if configured:
        before.require_trust(f"using the store in {without_secrets(configured)} ({STORE})")
    return configured


def _init_vcs(vcs: Any, params: Mapping[str, Any]) -> None:
    try:
        vcs.init(dict(params))
    except VersionControlError as problem:
        # Of a wrong option git says all the right ones, a screen of them.
        message = problem.message.partition("\nusage:")[0]
        raise VersionControlError(message, problem.hint or "its options: git help init") from None


def _is_repository(vcs: Any) -> bool:
    try:
        vcs.get_head_major_version()
    except (VersionControlError, NotPerunRepository):
        return False
    return True


def _exclude(vcs: Any, root: Path) -> None:
    # `.perun` belongs to this copy alone; without this every `git status` would show it.
    exclude = getattr(vcs, "exclude", None)
    if exclude is not None:
        exclude(root / PERUN_FOLDER)
