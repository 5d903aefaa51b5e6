"""`perun config`: read and change the configuration (manual 3.2.2-3.2.5)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perun.core.config import edit as editing
from perun.core.config.layers import MISSING, SHARED_FILE, Config, Layer, read_file
from perun.core.config.schema import KEYS
from perun.core.errors import ConfigError, NotPerunRepository, NotTrusted, PerunError, UsageError
from perun.core.process.command import Run
from perun.core.wording import without_secrets
from perun.plugin.registry import Registry
from perun.repository.jobs import PARTS, configured_unit, texts
from perun.repository.registering import check_template
from perun.repository.repository import PERUN_FOLDER, Repository, cache_config, locate, read_config
from perun.repository.trust import Ask, keep_trust
from perun.repository.user import shared_folder
from perun.store import Store

# Refuses values of the configuration that the commands which read them would refuse.
#
# `config.schema` says of which kind a value is; it knows neither plugins and what they take, nor how commands
# are split.

_RUNS = {**PARTS, "execute.pre_run": Run}
_UNITS: Mapping[str, str] = {"collectors": "collect", "postprocessors": "postprocess", "harnesses": "harness"}
"""Keys that name plugins with their parameters, and the family of these."""


def check_setting(key: str, value: Any, registry: Registry) -> None:
    """Raise where a command that reads the key would refuse the value.

    :param value: as :meth:`perun.core.config.layers.Config.get` gives it.
    :raises ConfigError: names the key, and what is allowed.
    :raises NotTrusted: if it names a plugin of a repository that the user does not trust.
    """
    try:
        if key in _RUNS:
            for text in texts(value):
                if text.strip():
                    _RUNS[key](text).command()
        elif key in _UNITS:
            for entry in value:
                configured_unit(registry, _UNITS[key], entry)
        elif key == "degradation.strategies":
            for rule in value:
                for name in filter(None, (rule["method"], rule.get("instead_of"))):
                    registry.get("check", str(name))
        elif key in ("remotes", "store.url"):
            shown = without_secrets(text := str(value))
            if shown != text:
                problem = f"a URL has a password or a token in it, which would be shown: {shown}"
                raise ConfigError(problem, "leave it out, see docs/sharing.md")
        elif key == "vcs.type":
            registry.get("vcs", str(value))
        elif key == "format.output_profile_template":
            check_template(str(value))
    except NotTrusted:
        raise
    except PerunError as problem:
        message = problem.message.removeprefix(f"{key}: ")
        raise ConfigError(f"{key}: {message}", problem.hint) from None


Scope = Literal["local", "shared", "nearest"]


@dataclass(frozen=True)
class ConfigSetting:
    """A key, its value, and the file it stands in (None for a built-in default)."""

    key: str
    value: Any
    source: str | None


def get_value(folder: Path, environ: Mapping[str, str], key: str, scope: Scope = "nearest") -> ConfigSetting:
    """The value of `key` in the hierarchy seen from `folder`, or in one of its files alone.

    :raises ConfigError: if the key is unknown, or not set.
    """
    roots, _ = locate(folder, environ)
    if scope == "local" and not roots:
        raise _not_inside(folder)
    config = read_config(roots, environ)
    effective = config.get(key)  # also says if there is no such key
    layer = config.layer(scope)
    value = effective if scope == "nearest" or layer is None else layer.get(key)
    if value is MISSING and scope == "shared":
        layer = config.layer("defaults")  # the shared configuration holds the defaults until it is written
        value = layer.get(key) if layer else MISSING
    if value is None or value is MISSING:
        where, option = ("", "") if scope == "nearest" else (f" in the {scope} configuration", f" --{scope}")
        raise ConfigError(f"{key} is not set{where}", f"set it with: perun config{option} set {key} VALUE")
    source = layer if scope != "nearest" else _origin(config, key)
    return ConfigSetting(key, value, str(source.path) if source and source.path else None)


def _origin(config: Config, key: str) -> Layer | None:
    try:
        return config.origin(key)
    except ConfigError:
        return None  # a section, which several files may make up


def file_of(folder: Path, environ: Mapping[str, str], scope: Scope) -> Path:
    """The configuration file that `set` and `edit` change: the local one if there is one.

    :raises NotPerunRepository: for scope `local` outside of any repository.
    """
    roots = [] if scope == "shared" else locate(folder, environ)[0]
    if scope == "local" and not roots:
        raise _not_inside(folder)
    if scope == "shared" or not roots:
        path = shared_folder(environ) / "shared.yml"
        editing.add_default_shared(path)
        return path
    return roots[0] / PERUN_FOLDER / "local.yml"


def _not_inside(folder: Path) -> NotPerunRepository:
    return NotPerunRepository(
        f"no Perun repository at {folder} or above it", "make one with perun init, or use --shared"
    )


def set_in(
    folder: Path, environ: Mapping[str, str], key: str, text: str, scope: Scope = "nearest"
) -> ConfigSetting:
    """Set `key` to `text`, read as YAML, in the file of the scope; comments and order there are kept.

    :raises ConfigError: if the key is unknown or the value is not of its kind; nothing is written then.
    """
    path = file_of(folder, environ, scope)
    check_setting(*editing.checked_value(path, key, text), _registry(folder, environ))
    with _writing(folder, environ, path):
        return ConfigSetting(key, editing.set_value(path, key, text), str(path))


def append_in(repo: Repository, key: str, items: Sequence[Any]) -> None:
    """Append items to a list in the local configuration; all that is there stays, comments included.

    :raises ConfigError: if the key is unknown or an item is not of its kind; nothing is written then.
    """
    path = file_of(repo.root, repo.environ, "local")
    with _writing(repo.root, repo.environ, path):
        editing.append(path, key, items)


def _registry(folder: Path, environ: Mapping[str, str]) -> Registry:
    """The plugins that a configuration seen from `folder` can name."""
    try:
        roots, working_root = locate(folder, environ)
        if not roots:
            return Registry()
        return Repository(roots[0], working_root, read_config(roots, environ), environ).registry
    except PerunError:
        return Registry()  # a setting may be what mends the file, and the shared one is no repository's


@contextmanager
def _writing(folder: Path, environ: Mapping[str, str], path: Path) -> Iterator[None]:
    """Hold the lock of the repository while its configuration at `path` is written, and cache it then."""
    roots = [] if path.name == SHARED_FILE else locate(folder, environ)[0]
    if roots and path.parent == roots[0] / PERUN_FOLDER:
        with Store(path.parent).lock():
            with keep_trust(roots[0], lambda: read_config(roots[:1], environ), environ):
                yield
            _cache(roots, environ)
        return
    yield
    with suppress(NotPerunRepository):
        cache(folder, environ)


@contextmanager
def edited(folder: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Keep the trust of the user in the configuration while he edits it."""
    roots, _ = locate(folder, environ)
    if not roots:
        yield
        return
    with keep_trust(roots[0], lambda: read_config(roots[:1], environ), environ):
        yield


def cache(folder: Path, environ: Mapping[str, str]) -> None:
    """Cache the parsed configuration of the repository, if there is one that can be written now."""
    roots, _ = locate(folder, environ)
    if roots:
        with suppress(PerunError), Store(roots[0] / PERUN_FOLDER, lock_timeout=0).lock():
            _cache(roots, environ)


def _cache(roots: list[Path], environ: Mapping[str, str]) -> None:
    with suppress(ConfigError):
        cache_config(read_config(roots, environ), roots[0] / PERUN_FOLDER, environ)


def set_value(repo: Repository, key: str, text: str, *, scope: Scope = "nearest") -> ConfigSetting:
    """As :func:`set_in`, in the given repository."""
    return set_in(repo.root, repo.environ, key, text, scope)


def editor_command(folder: Path, environ: Mapping[str, str], asks: Ask | None = None) -> list[str]:
    """The editor that `general.editor` names, as an argument vector; a file name is to be appended.

    Where that is the built-in one, `VISUAL` and `EDITOR` of the environment come first, as in git.

    :raises ConfigError: if the name has an unclosed quote, or is empty.
    :raises NotTrusted: if a repository names it that the user has not said he trusts.
    """
    roots, working_root = locate(folder, environ)
    config = read_config(roots, environ)
    text = str(config.get("general.editor"))
    default = text == KEYS["general.editor"].default
    if roots and not default and config.origin("general.editor").name == "local":
        Repository(roots[0], working_root, config, environ, asks).require_trust("starting the editor")
    # A generated shared configuration holds all defaults, so that standing there says nothing.
    if default:
        text = environ.get("VISUAL") or environ.get("EDITOR") or text
    try:
        command = shlex.split(text)
    except ValueError as problem:
        raise ConfigError(f"the editor {text!r} cannot be split: {problem}", "see general.editor") from None
    if not command:
        raise ConfigError("general.editor is empty", "set it with: perun config set general.editor NAME")
    return command


def reset(folder: Path, environ: Mapping[str, str], scope: Scope, template: str | None = None) -> Path:
    """Replace the file of the scope: the local one from `template`, the shared one from the defaults.

    :raises UsageError: if there is no such template.
    """
    path = file_of(folder, environ, scope)
    with _writing(folder, environ, path):
        if path.name != "shared.yml":
            editing.write_text(path, _local_text(path, environ, template or "master"))
        elif template is None:
            editing.add_default_shared(path, overwrite=True)
        else:
            raise UsageError(
                "the shared configuration has no templates", "leave out the template, or use --local"
            )
    return path


def _local_text(path: Path, environ: Mapping[str, str], template: str) -> str:
    from perun.core.config.templates import render

    root = path.parent.parent
    try:
        config = read_config([root], environ)
        vcs_type, url = str(config.get("vcs.type") or "git"), str(config.get("vcs.url") or "..")
    except ConfigError:
        vcs_type, url = "git", ".."  # a file too broken to read is what reset is for
    return render(template, root, vcs_type, path.parent / url)


def verify(path: Path) -> None:
    """Read one configuration file; raise what is wrong with it."""
    read_file(path)
