"""`perun import`: files of other tools become profiles of versions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perun.core.errors import PluginError, ProfileError, UsageError, VersionControlError
from perun.core.wording import plural
from perun.plugin.api import Importer
from perun.plugin.interchange import ImportContext, Imported, ImportFile, malformed
from perun.plugin.loading import errors_of
from perun.plugin.params import from_mapping
from perun.profile.factory import Profile
from perun.profile.sampled import IMPORTED
from perun.repository.copies import scratch_folder
from perun.repository.registering import SaveRequest, save_together
from perun.repository.repository import Repository

_COMMIT: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{7,40}(?![0-9a-f])")
_MOST_FILES: Final = 20_000


@dataclass(frozen=True)
class ImportOptions:
    """What is wanted.

    :ivar format: the importer; empty to guess it. :ivar params: of it. :ivar minor: the version that was
        measured; None for the current one. :ivar command: that the profiles are of, in place of what the file
        says. :ivar workload: likewise. :ivar history: register each profile in the version that the file, or
        its name, tells.
    """

    format: str = ""
    params: Mapping[str, Any] | None = None
    minor: str | None = None
    command: str = ""
    workload: str = ""
    history: bool = False


@dataclass(frozen=True)
class StoredImport:
    """A profile that was imported: the name it is registered by, and where."""

    name: str
    version: str
    format: str
    file: str
    profile: Profile
    means: bool


@dataclass(frozen=True)
class ImportOutcome:
    """What was imported.

    :ivar guessed: of each file whose format was not named, which it is. :ivar notes: what the user has to
        know.
    """

    profiles: Sequence[StoredImport]
    guessed: Mapping[str, str]
    notes: Sequence[str]


def import_files(repo: Repository, files: Sequence[ImportFile], options: ImportOptions) -> ImportOutcome:
    """Read all files, and register what they hold: all of it or nothing.

    :raises PerunError: names the file that cannot be read, or of which the format cannot be guessed.
    """
    target = None if options.history else repo.version(options.minor)
    guessed: dict[str, str] = {}
    notes: list[str] = []
    found: list[tuple[Imported, str, str, str]] = []
    unknown: dict[str, int] = {}
    others: dict[str, str] = {}
    passed = 0
    for file in _expanded(files, options):
        importer = _importer(repo, file, options)
        if importer is None:
            passed += 1
            continue
        if not options.format:
            guessed[file.name] = importer.name.replace("_", "-")
        for one in _read(repo, file, importer, options, notes):
            version = target
            if version is None:
                told = one.version or _named(file.name)
                version = _known(repo, told) if told else None
                if version is None:
                    unknown[told or "no commit"] = unknown.get(told or "no commit", 0) + 1
                    continue
            elif one.version and not version.startswith(one.version):
                others[file.name] = one.version
            found.append((one, version, importer.name, file.name))
    notes += [f"{name} was measured of {told[:10]}, as it says: --history registers it there"
              for name, told in others.items()]  # fmt: skip
    if passed:
        notes.append(f"{plural(passed, 'file')} passed over: no importer knows them")
    if unknown:
        listed = ", ".join(sorted(one[:10] for one in unknown)[:8])
        notes.append(f"{plural(sum(unknown.values()), 'result')} passed over, of versions not here: {listed}")
    if not found:
        raise ProfileError("nothing was imported" + "".join(f"; {one}" for one in notes),
                           "name the format in front of the file: perun import FORMAT FILE")  # fmt: skip
    requests = [
        SaveRequest(_completed(one, kind, name, options), version, True, _seconds(one.moment))
        for one, version, kind, name in found
    ]
    paths = save_together(repo, requests)
    stored = [
        StoredImport(path.name, version, kind, name, one.profile, one.means)
        for path, (one, version, kind, name) in zip(paths, found, strict=True)
    ]
    means = sum(one.means for one in stored)
    if means:
        notes.append(
            f"{plural(means, 'result')} came without samples, as means: there is a verdict on these only by "
            "the noise of the versions before"
        )
    return ImportOutcome(stored, guessed, notes)


def _seconds(moment: float | None) -> int | None:
    return int(moment) if moment is not None and 0 < moment < 1 << 33 else None


def _expanded(files: Sequence[ImportFile], options: ImportOptions) -> Iterator[ImportFile]:
    """The files, and those in folders of a history."""
    for file in files:
        if file.path is None or not file.path.is_dir() or not options.history:
            yield file
            continue
        count = 0
        for parent, folders, names in os.walk(file.path):
            folders.sort()
            for name in sorted(names):
                count += 1
                if count > _MOST_FILES:
                    raise UsageError(
                        f"{file.name} has more than {_MOST_FILES} files", "name a smaller folder"
                    )
                path = Path(parent, name)
                if path.is_file():
                    yield file.beside(path)


def _importer(repo: Repository, file: ImportFile, options: ImportOptions) -> Importer[Any] | None:
    """The importer of a file; None of one in a folder of history that no importer knows.

    :raises UsageError: where none knows it, or several do.
    """
    if options.format:
        wanted: Importer[Any] = repo.registry.get("importer", options.format)
        return wanted
    known: list[Importer[Any]] = []
    for name in repo.registry.names("importer"):
        importer = repo.registry.get("importer", name)
        try:
            if importer.recognizes(file.head, file.name):
                known.append(importer)
        except malformed():
            continue
    if len(known) == 1:
        return known[0]
    names = ", ".join(one.name.replace("_", "-") for one in known)
    if known:
        raise UsageError(f"{file.name} may be {names}", "name the format in front of the file")
    if options.history:
        return None
    if file.path is not None and file.path.is_dir():
        raise UsageError(f"{file.name} is a folder", "--history imports the files in it, commit by commit")
    listed = ", ".join(repo.registry.names("importer"))
    raise UsageError(f"the format of {file.name} is not known", f"name it in front of the file: {listed}")


def _read(
    repo: Repository, file: ImportFile, importer: Importer[Any], options: ImportOptions, notes: list[str]
) -> Iterator[Imported]:
    title = importer.name.replace("_", "-")
    params: Any = from_mapping(importer.Params, options.params, f"importer {title!r}")
    with scratch_folder(repo) as scratch:
        ctx = ImportContext(notes.append, scratch, repo.environ, repo.working_root)
        try:
            with errors_of(importer, f"the importer {title!r}", PluginError):
                found = read_all(importer, file, params, ctx)
        except MemoryError:
            raise file.wrong("it needs more memory than there is", "record for a shorter time") from None
    if not found:
        raise file.wrong("it holds no results", "did the tool measure anything?")
    yield from found


def read_all(importer: Importer[Any], file: ImportFile, params: Any, ctx: ImportContext) -> list[Imported]:
    """All that a file holds.

    :raises ProfileError: names the file, where it is not what the importer reads.
    """
    title = importer.name.replace("_", "-")
    try:
        return list(importer.read(file, params, ctx))
    except ProfileError as problem:
        named = problem.message if file.name in problem.message else f"{file.name}: {problem.message}"
        raise ProfileError(named, problem.hint) from None
    except malformed() as problem:
        reason = f"{type(problem).__name__}: {problem}".partition("\n")[0][:200]
        raise file.wrong(f"it is no {title} that can be read ({reason})") from problem
    except OSError as problem:
        raise ProfileError(f"cannot read {file.name}: {problem.strerror or problem}") from None


def _named(name: str) -> str:
    """The commit in the name of a file; empty where there is none."""
    found = _COMMIT.findall(Path(name).name.lower())
    return max(found, key=len) if found else ""


def _known(repo: Repository, told: str) -> str | None:
    """The full checksum of a version; None where the repository does not have it."""
    try:
        return repo.version(told)
    except VersionControlError:
        return None


def _completed(one: Imported, kind: str, name: str, options: ImportOptions) -> Profile:
    profile = one.profile
    own = {"cmd": options.command, "workload": options.workload}
    profile["header"] = {
        "cmd": "", "args": "", "workload": "", **profile["header"],
        **{key: value for key, value in own.items() if value},
    }  # fmt: skip
    profile.setdefault("postprocessors", [])
    told: dict[str, Any] = {"format": kind, "file": Path(name).name}
    profile[IMPORTED] = {**told, **({"means": True} if one.means else {})}
    return profile
