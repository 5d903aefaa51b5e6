"""Reading what a remote holds, again and again: what never changes is fetched once.

The order is what makes it safe. Registers are listed first and the head is read second: a register that is
not listed any more was put into a snapshot before, which the head names by then. Who finds a piece gone that
was listed begins again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from perun.core.errors import RemoteError
from perun.store.remote import register, snapshot
from perun.store.remote.contract import MissingPiece, Remote
from perun.store.remote.pack import FOLDER as PACKS
from perun.store.remote.register import Register, RegisterFile, RegisterUnion
from perun.store.remote.snapshot import SnapshotHead, SnapshotState

FORMAT_KEY: Final = "format"
FORMAT: Final = b"perun-remote 1\n"
_TRIES: Final = 20
"""Times that reading begins again while others clean up, or that a change of the head is tried."""


class RemoteReader:
    """What one reader has seen of a remote.

    :param kept: pieces that were fetched in the past, which are what their names say.
    :ivar union: what its registers say. :ivar head: the head as it was read last.
    :ivar pieces: the registers and snapshots that were fetched, by key.
    :ivar applied: the registers that the union has beside those of the snapshot.
    """

    def __init__(self, remote: Remote, kept: Iterable[tuple[str, bytes]] = ()) -> None:
        self.remote = remote
        self.union = RegisterUnion()
        self.head = SnapshotHead(None, SnapshotState())
        self.pieces: dict[str, bytes] = dict(kept)
        self._checked = False
        self._from: str | None = None  # the snapshot that the union begins with
        self.applied: set[str] = set()

    def refresh(self) -> RegisterUnion:
        """Read what is there now.

        :raises RemoteError: if the remote cannot be read, or one of its pieces is damaged.
        """
        if not self._checked:
            check_format(self.remote)
            self._checked = True
        for _ in range(_TRIES):
            keys = self.remote.list(register.FOLDER)
            listed = frozenset(one.key.removeprefix(register.FOLDER) for one in keys)
            head = snapshot.read(self.remote)
            try:
                self._take(head, listed)
            except MissingPiece as problem:
                missing = problem
                continue
            return self.union
        raise missing

    def _take(self, head: SnapshotHead, listed: frozenset[str]) -> None:
        """Bring the union to what these registers, and the snapshot of the head, say."""
        name = head.state.snapshot
        if name != self._from or not self.applied <= listed:
            self._begin(name)
        new = sorted(listed - self.union.registers)
        for one, data in zip(
            new, self._get([register.FOLDER + one for one in new], register.MAX), strict=True
        ):
            self._apply(one, register.parse(one, data))
        self.union.dead.update(head.state.dead)
        self.head = head

    def _begin(self, name: str | None) -> None:
        union = RegisterUnion()
        if name is not None:
            (data,) = self._get([snapshot.FOLDER + name], snapshot.MAX)
            snapshot.apply(name, data, union)
        self.union, self._from, self.applied = union, name, set()

    def _apply(self, name: str, said: Register) -> None:
        self.union.apply(name, said)
        self.applied.add(name)

    def _get(self, keys: Sequence[str], limit: int) -> list[bytes]:
        wanted = [key for key in keys if key not in self.pieces]
        self.pieces.update(self.remote.get_many(wanted, limit))
        return [self.pieces[key] for key in keys]

    def used(self) -> list[str]:
        """The keys of the pieces that the union is made of, ordered."""
        names = [register.FOLDER + name for name in self.applied]
        return sorted([*names, snapshot.FOLDER + self._from] if self._from else names)

    def put(self, saying: RegisterFile, said: Register) -> None:
        """Put a register, and take in what it says."""
        self.remote.put(register.FOLDER + saying.name, saying.data)
        self.pieces[register.FOLDER + saying.name] = saying.data
        self._apply(saying.name, said)

    def change(self, state_now: SnapshotState) -> bool:
        """Replace the head by this state, if it is still as it was read last; whether that was done.

        Where it is not, another one has changed it meanwhile: read again.
        """
        done = snapshot.replace(self.remote, self.head, state_now)
        if done is None:
            return False
        self.head = done
        self.union.dead.update(done.state.dead)
        return True

    def rescue(self) -> None:
        """Take what registered profiles need out of what is condemned, so that it will not be deleted.

        :raises RemoteError: if others change the head all the time.
        """
        for _ in range(_TRIES):
            condemned = self.head.state.condemned
            if not condemned:
                return
            packs = {key.removeprefix(PACKS) for key in condemned if key.startswith(PACKS)}
            needed = {PACKS + name for name in self.union.needed(avoid=packs)} & condemned.keys()
            left = {key: time for key, time in condemned.items() if key not in needed}
            if not needed or self.change(self.head.state._replace(condemned=left)):
                return
            self.refresh()
        raise RemoteError(
            f"{self.remote.url} is being cleaned up all the time",
            "try again when nobody runs perun gc --remote",
        )

    def counts_on(self, packs: Collection[str]) -> bool:
        """Whether these packs are, at this moment, neither dead nor condemned; False also if that is not
        sure.

        It asks for the head only.
        """
        head = snapshot.read(self.remote)
        at_risk = {PACKS + name for name in head.state.dead} | head.state.condemned.keys()
        return head.state.snapshot == self.head.state.snapshot and not (
            at_risk & {PACKS + one for one in packs}
        )


def check_format(remote: Remote) -> bool:
    """See that the remote has no format that this Perun does not read; whether it has one at all.

    :raises RemoteError: if it is of another format.
    """
    try:
        found = remote.get(FORMAT_KEY, 1000)
    except MissingPiece:
        return False
    if found != FORMAT:
        raise RemoteError(
            f"{remote.url} has the format {_shown(found)!r}, this Perun reads and writes {_shown(FORMAT)!r}",
            "install the Perun that the others of the team have",
        )
    return True


def _shown(data: bytes) -> str:
    """The beginning of what a piece says, for messages."""
    return data[:60].decode(errors="replace").strip()


def prepare(remote: Remote) -> None:
    """Make an empty place a remote.

    :raises RemoteError: if it is one of another format, or cannot be written.
    """
    if not check_format(remote) and not remote.replace(FORMAT_KEY, FORMAT, None):
        check_format(remote)
