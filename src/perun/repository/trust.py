"""Whether a repository may run what its `.perun` says: one decision of the user for each repository.

A `.perun` may have come with a clone or an archive, so that nothing in it runs before the user has said so:
by making it (`perun init`), by `perun trust`, by an answer on a terminal, by `PERUN_TRUST` in the environment
or by the key `plugins.trusted` of the shared configuration.

The decision is stored among the settings of the user, never in the repository: the path of the repository,
its owner, and a digest of all that would run. If the digest changes, the user must decide again, with one
exception, so that he is not asked about files that he edits himself: if `.perun` still holds the random mark
that was put there with the decision, and version control has none of its files, no clone or pull can have
brought the change.

Perun itself leaves files in `.perun` that say what is to be done later: journals. Those with the mark of the
user (:mod:`perun.repository.user`) are his own, the others are part of what would run. Files elsewhere, as
those of results of fuzzing, are asked about one by one where they have no mark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.config.layers import LOCAL_FILE, MISSING, Config, Layer
from perun.core.config.schema import FALSE, KEYS, RUNS, TRUE
from perun.core.errors import ConfigError, NotTrusted, PerunError
from perun.core.regular import open_regular, read_regular
from perun.core.wording import listed, without_secrets
from perun.plugin.registry import Registry
from perun.repository import marks
from perun.repository.journal import plans
from perun.repository.user import links_of, own_users, shared_folder
from perun.store import tree

VARIABLE: Final = "PERUN_TRUST"
MARK: Final = "trust-mark"
"""File in `.perun` with the random text that the decision knows too."""
SHOWN: Final = 10
"""Things that would run that a message lists."""
MAX_FILES: Final = 5_000
MAX_BYTES: Final = 64 << 20
"""Limits on the plugins of one repository, which are all read for the digest."""

_FORMAT: Final = 1
_RECORD_BYTES: Final = 64 << 10
_ACCEPTED: Final = 500
"""Files that a decision names at most, the newest."""
_TEXT: Final = 200
_OTHER_SYSTEMS: Final = (".hg", ".svn", ".bzr", ".jj", "_darcs", ".pijul", ".fslckout", "_FOSSIL_", "CVS")


class RunnableItem(NamedTuple):
    """One thing that would run: the key, or `plugin`, and what it says."""

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


class TrustState(NamedTuple):
    """Whether a repository is trusted, and what would run there.

    :param because: `record`, `environment`, `plugins.trusted`; empty without a decision.
    :param since: the day of a decision that no longer holds, as what would run has changed; else empty.
    :param where: what names it, if it is not the `.perun`.
    :param instead: what the user may do, if `perun trust` does not help.
    """

    root: Path
    because: str
    runs: tuple[RunnableItem, ...]
    since: str = ""
    where: str = ""
    instead: str = ""

    @property
    def decided(self) -> bool:
        """Whether the user has decided that what is there may run."""
        return bool(self.because)

    @property
    def trusted(self) -> bool:
        """Whether it may run; without anything to run no decision is needed."""
        return self.decided or not self.runs

    @property
    def place(self) -> str:
        """What names the programs that would run."""
        return self.where or str(self.root / ".perun")


class Brought(NamedTuple):
    """What a file would have run that is not part of the configuration, and has no mark of the user.

    :param where: the file. :param what: JSON data that it is all of, for :func:`marks.digest`.
    :param instead: what the user may do instead of trusting it.
    """

    where: str
    runs: tuple[RunnableItem, ...]
    what: Any
    instead: str = ""

    @property
    def digest(self) -> str:
        """A SHA-256 of it all."""
        return marks.digest(self.where, self.what)


Ask = Callable[[TrustState, str], bool]
"""Asks the user about what a command is about to do, e.g. `running the job matrix`."""


def trust_state(root: Path, config: Config, environ: Mapping[str, str]) -> TrustState:
    """Whether the user trusts the `.perun` of `root`.

    :param config: of `root`: its first local layer says what would run.
    """
    root = root.resolve()
    runs = _Runnables(root, config.layer("local"), environ)
    listed = runs.listed()
    if _named(environ.get(VARIABLE, ""), root):
        return TrustState(root, "environment", listed)
    if _is_listed(root, config):
        return TrustState(root, "plugins.trusted", listed)
    record = _Record.of(root, environ)
    if record is None:
        return TrustState(root, "", listed)
    digest = runs.digest()
    if record.digest == digest and runs.files.keys() <= set(record.accepted):
        return TrustState(root, "record", listed)
    if not runs.links_outside() and _is_edited_here(root, record, environ):
        with suppress(OSError):
            record._replace(digest=digest).accepting(runs.files).write(environ)
        return TrustState(root, "record", listed)
    return TrustState(root, "", listed, record.day)


def with_brought(found: TrustState, brought: Brought | None, environ: Mapping[str, str]) -> TrustState:
    """Whether that may run as well: not without a question, unless the user has said so of all that is there.

    :param found: the decision about the repository.
    """
    if brought is None or found.because in ("environment", "plugins.trusted"):
        return found
    record = _Record.of(found.root, environ) if found.decided else None
    if record is not None and brought.digest in record.accepted:
        return found
    if not found.decided:
        where = f"{found.place} and {brought.where}"
        return found._replace(runs=(*brought.runs, *found.runs), where=where)
    how = f"to trust it: say so on a terminal, or for one command by {VARIABLE}=1"
    instead = "; ".join(filter(None, (brought.instead, how)))
    return TrustState(found.root, "", brought.runs, where=brought.where, instead=instead)


def by_profiles(
    root: Path, config: Config, environ: Mapping[str, str], commands: Iterable[str]
) -> Brought | None:
    """The commands as what profiles bring; None where only the user can have put profiles there.

    :param commands: those that nobody typed, and the job matrix has not.
    """
    root = root.resolve()
    wanted = sorted(set(commands))
    record = _Record.of(root, environ)
    shared = config.get("remotes") or config.get("store.url")
    if not wanted or (record is not None and not shared and _is_edited_here(root, record, environ)):
        return None
    runs = tuple(RunnableItem("cmd", _short(one)) for one in wanted)
    return Brought(f"the profiles of {root / '.perun'}", runs, wanted, "name the command: -c CMD")


def require(found: TrustState, doing: str) -> None:
    """Raise unless the user has decided to trust what is there.

    :param doing: what would run it, as the beginning of a sentence, e.g. `running the job matrix`.
    :raises NotTrusted: names what would have run, and how to trust it.
    """
    if found.decided:
        return
    import shlex

    why = "which you do not trust"
    if found.since:
        why = f"which has changed since you trusted it on {found.since}"
    shown = [f"  {one}" for one in found.runs[:SHOWN]]
    if len(found.runs) > SHOWN:
        shown.append(f"  and {len(found.runs) - SHOWN} more: perun trust --show")
    if not shown:
        shown = ["  only filters from the configuration of the version control"]
    how = found.instead or f"to trust it: perun trust {shlex.quote(str(found.root))}  (in CI: {VARIABLE}=1)"
    raise NotTrusted(
        "\n".join([f"{doing} runs code from {found.place}, {why}. It would run", *shown]),
        f"review it; {how}",
    )


def grant(root: Path, config: Config, environ: Mapping[str, str], brought: Brought | None = None) -> None:
    """Record that the user trusts what the `.perun` of `root` holds now.

    :param brought: and that of another file. :raises OSError: if the decision cannot be written.
    """
    from datetime import UTC, datetime

    root = root.resolve()
    perun = root / ".perun"
    mark = os.urandom(16).hex()
    try:
        # A new one each time: a clone may bring a mark that its author knows.
        atomic.write(perun / MARK, mark.encode() + b"\n")
    except OSError:
        mark = ""  # the digest alone decides then
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    runs = _Runnables(root, config.layer("local"), environ)
    before = _Record.of(root, environ)
    accepted = () if before is None else before.accepted
    made = _Record(str(root), os.stat(perun).st_uid, runs.digest(), mark, day, accepted)
    made.accepting([*runs.files, *([brought.digest] if brought else [])]).write(environ)


def revoke(root: Path, environ: Mapping[str, str]) -> bool:
    """Forget the decision about `root`; whether there was one.

    :raises OSError: if it cannot be removed.
    """
    path = record_file(root.resolve(), environ)
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


@contextmanager
def keep_trust(root: Path, read: Callable[[], Config], environ: Mapping[str, str]) -> Iterator[None]:
    """Keep the trust in the repository across a change that the user makes himself.

    :param read: reads the configuration of `root`, before and after.
    """
    before = _is_kept_by_edits(root.resolve(), read, environ)
    yield
    if before:
        # What cannot be recorded, as the settings cannot be written, is asked about when it would run.
        with suppress(OSError, ConfigError):
            grant(root, read(), environ)


def without_untrusted(config: Config, roots: Sequence[Path], environ: Mapping[str, str]) -> Config:
    """The configuration without what the untrusted among the instances above the nearest would run.

    :param roots: the instances whose files the local layers are, the nearest first.
    """
    layers = list(config.layers)
    own = {root / ".perun" / LOCAL_FILE: root for root in roots[1:]}
    for number, layer in enumerate(layers):
        root = own.get(layer.path) if layer.path is not None and layer.name == "parent" else None
        if root is None or layer.origin == "missing":
            continue
        of_parent = Config((layer._replace(name="local"), *config.layers[-2:]))
        found = trust_state(root, of_parent, environ)
        if not found.trusted:
            text = f"{layer.path} is not used, because you do not trust it; it would run: "
            warning = f"{text}{'; '.join(map(str, found.runs[:SHOWN]))} (perun trust {root})"
            layers[number] = layer._replace(values={}, origin="missing", warnings=(warning,))
    return Config(tuple(layers))


def knows(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether the user has decided to trust `root` as the user who owns it now owns it."""
    root = root.resolve()
    return _named(environ.get(VARIABLE, ""), root) or _Record.of(root, environ) is not None


def record_file(root: Path, environ: Mapping[str, str]) -> Path:
    """The path of the decision about `root`: a file for each repository, so that writing needs no lock."""
    name = tree.sha1(os.fsencode(root)).hex()
    return shared_folder(environ) / marks.FOLDER / f"{name}.json"


def _is_kept_by_edits(root: Path, read: Callable[[], Config], environ: Mapping[str, str]) -> bool:
    try:
        found = trust_state(root, read(), environ)
    except ConfigError:
        # A file too broken to read, which `config reset` or an editor is about to repair.
        record = _Record.of(root, environ)
        return record is not None and _is_edited_here(root, record, environ)
    return found.trusted and found.because in ("", "record")


def _named(value: str, root: Path) -> bool:
    """Whether `PERUN_TRUST` names the repository: a word for yes names all, else it lists folders."""
    if value.lower() in TRUE:
        return True
    if not value or value.lower() in FALSE:
        return False
    folders = [Path(one) for one in value.split(os.pathsep)]
    return any(folder.is_absolute() and folder.resolve() == root for folder in folders)


def _is_listed(root: Path, config: Config) -> bool:
    folders = [Path(one).expanduser() for one in config.get("plugins.trusted") or ()]
    # A relative path would trust whatever the user stands in.
    return any(folder.is_absolute() and folder.resolve() == root for folder in folders)


def _is_edited_here(root: Path, record: _Record, environ: Mapping[str, str]) -> bool:
    """Whether only the user of this machine can have changed the files of `.perun`."""
    if not record.mark or record.mark != _mark(root / ".perun"):
        return False
    try:
        tracked: bool = Registry().get("vcs", "git").tracks(root / ".perun", environ)
    except PerunError:
        return False
    others = (folder / name for folder in (root, *root.parents) for name in _OTHER_SYSTEMS)
    return not tracked and not any(map(os.path.lexists, others))


def _mark(folder: Path) -> str:
    try:
        return read_regular(folder / MARK, 100).decode("ascii", "replace").strip()
    except OSError:
        return ""


class _Record(NamedTuple):
    """A decision as it is written. :param accepted: digests of files that have no mark of the user."""

    root: str
    owner: int
    digest: str
    mark: str
    day: str
    accepted: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: Path, environ: Mapping[str, str]) -> _Record | None:
        """The decision about `root`, if there is one about the user who owns it now."""
        try:
            with open_regular(record_file(root, environ), _RECORD_BYTES) as file:
                if os.fstat(file.fileno()).st_uid not in own_users(environ):
                    return None
                noted = {"accepted": [], **json.loads(file.read(_RECORD_BYTES))}
            found = cls(**{name: noted[name] for name in cls._fields})
            found = found._replace(accepted=tuple(map(str, found.accepted)))
            owner = os.stat(root / ".perun").st_uid
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None  # a decision that cannot be read is none
        return found if (found.root, found.owner) == (str(root), owner) else None

    def accepting(self, more: Iterable[str]) -> _Record:
        return self._replace(accepted=tuple(dict.fromkeys([*self.accepted, *more]))[-_ACCEPTED:])

    def write(self, environ: Mapping[str, str]) -> None:
        path = record_file(Path(self.root), environ)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = json.dumps({"format": _FORMAT, **self._asdict()}, indent=2)
        atomic.write(path, data.encode(), private=True)


class _Runnables:
    """What the `.perun` of a repository would have run: keys of its local configuration, plugins, and files
    that say what is to be done later and have no mark of the user.

    Its folders that are links count too: through them Perun writes elsewhere.

    :ivar files: such files, what they would run by their digests.
    """

    def __init__(self, root: Path, local: Layer | None, environ: Mapping[str, str]) -> None:
        self._root = root
        self._plugins = root / ".perun" / "plugins"
        values = {} if local is None else {key: local.get(key) for key in RUNS}
        self._values = {key: value for key, value in values.items() if self._needs_trust(key, value)}
        self._links = [(str(one.relative_to(root)), os.readlink(one)) for one in links_of(root / ".perun")]
        self.files = dict(_unmarked(root, environ))

    def listed(self) -> tuple[RunnableItem, ...]:
        """One by one, for people."""
        found = []
        for key, value in self._values.items():
            items = value if isinstance(value, list) else [value]
            found += [RunnableItem(key, _short(item)) for item in items]
        found += [RunnableItem("link", _short(f"{link} -> {target}")) for link, target in self._links]
        found += [RunnableItem("plugin", _short(name)) for name in self._files() if name.endswith(".py")]
        return (*self.files.values(), *found)

    def digest(self) -> str:
        """A SHA-256 of it all, which any change of what would run changes."""
        import hashlib

        digest = hashlib.sha256(json.dumps(self._values, sort_keys=True, default=str).encode())
        for link, target in self._links:
            digest.update(f"\0link {link}\0{target}".encode("utf-8", "surrogateescape"))
        left = MAX_BYTES
        for name, path in self._files().items():
            try:
                with open_regular(os.path.realpath(path), left) as file:
                    content = hashlib.sha256(data := file.read(left + 1)).hexdigest()
                left -= len(data)
            except OSError as problem:
                content = f"cannot be read: {problem.strerror}"
            digest.update(f"\0{name}\0{content}".encode("utf-8", "surrogateescape"))
            if left < 0:
                raise NotTrusted(
                    f"the files in {self._plugins} have more than {MAX_BYTES} bytes",
                    "remove files that are not code",
                )
        return digest.hexdigest()

    def links_outside(self) -> bool:
        """Whether a link puts a part of it outside of `.perun`, where version control may track it."""
        folder = os.path.realpath(self._root / ".perun")
        files = [self._root / ".perun" / LOCAL_FILE, *self._files().values()]
        return any(not os.path.realpath(file).startswith(folder + os.sep) for file in files)

    @staticmethod
    def _needs_trust(key: str, value: Any) -> bool:
        if value is MISSING or value in (None, [], "", False):
            return False
        if key == "vcs.type":
            return str(value) not in ("git", "tagit", "svs")
        return key == "generators.workload" or bool(value != KEYS[key].default)

    def _files(self) -> dict[str, Path]:
        """The files of the plugins by their path there, sorted; links are followed, as an import does."""
        found: dict[str, Path] = {}
        known: set[str] = set()
        for folder, folders, names in os.walk(self._plugins, followlinks=True):
            real = os.path.realpath(folder)
            if real in known:
                folders.clear()  # a link to what was looked through already
                continue
            known.add(real)
            for name in names:
                path = Path(folder, name)
                found[str(path.relative_to(self._plugins))] = path
            if len(found) + len(known) > MAX_FILES:
                raise NotTrusted(
                    f"{self._plugins} holds more than {MAX_FILES} files", "remove files that are not code"
                )
        return dict(sorted(found.items()))


def _unmarked(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, RunnableItem]]:
    """What each file of `.perun` that has no mark would have run later, behind its digest."""
    folder = root / ".perun"
    for kind, described in _LATER.items():
        for path, plan in plans(folder / kind) if kind != _STATE else _state(folder):
            if not marks.is_marked(root, environ, kind, plan):
                name = str(path.relative_to(folder))
                yield marks.digest(name, plan), RunnableItem(name, _short(described(plan)))


def _state(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """What an `--in-place` run has saved."""
    path = folder / _STATE
    with suppress(OSError, ValueError, RecursionError):
        noted = json.loads(read_regular(path, tree.MAX_BYTES))
        if isinstance(noted, dict):
            yield path, noted


def _of_bisection(plan: Mapping[str, Any]) -> str:
    asked = plan.get("asked")
    if not isinstance(asked, Mapping):
        return "nothing that is known"
    names = ("script",) if asked.get("script") else ("cmd", "args", "workload")
    return " ".join(str(asked[one]) for one in names if asked.get(one)) or "the commands of the job matrix"


def _of_batch(plan: Mapping[str, Any]) -> str:
    stops = plan["stops"] if isinstance(plan.get("stops"), list) else []
    names = [str(one[0])[:10] for one in stops if isinstance(one, list) and one]
    return f"the job matrix in {listed(list(dict.fromkeys(names))) or 'no version'}"


def _of_state(noted: Mapping[str, Any]) -> str:
    return f"a checkout of {noted.get('state')} and the stash {noted.get('stash') or '(none)'}"


_STATE: Final = "in-place.json"
_LATER: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "bisections": _of_bisection, "batches": _of_batch, _STATE: _of_state,
}  # fmt: skip
"""Files of `.perun`, or folders of them, that say what is to be run later."""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = without_secrets(" ".join(text.split()))
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."
