"""Cleaning up a remote while others push and pull: nobody loses anything, and nothing unneeded is left.

Actors run the real operations on a folder. Each waits for its turn before each single access to the remote,
and the order of turns is drawn: so all interleavings are possible, some of them with an actor that is killed.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import RemoteError
from perun.profile.head import ProfileHeader
from perun.sharing import transfer
from perun.sharing.known import registered_here
from perun.store import Store
from perun.store.index import IndexEntry
from perun.store.remote import cleaning
from perun.store.remote.contract import PieceInfo, Remote
from perun.store.remote.file import FileRemote
from perun.store.remote.opening import opened
from perun.store.remote.pack import FOLDER, unpacked
from perun.store.remote.reading import RemoteReader
from perun.store.remote.register import RegisterEntry

NOW = 1_800_000_000.0
MINORS = ["a" * 40, "b" * 40]
SHARES = [{0, 1, 2, 3}, {2, 3, 4}, {4, 5, 0}]
"""Which profiles each of three people has: some are had by two."""
BODY = (
    b'{"header":{"type":"time","units":{"time":"s"},"cmd":"%d","args":"","workload":""},'
    b'"collector_info":{"name":"time","params":{}},"postprocessors":[],"resources":{}}'
)
REMOVED = {1, 4}
"""Profiles that those who clean up remove; whether they are there in the end depends on the order."""


class Killed(BaseException):
    """The process was killed: nothing that it would have done later happens."""


class Actor:
    """Somebody who does one thing after the other, in a thread of his own."""

    def __init__(self, work: Callable[[Remote], None], remote: Remote, killed_after: int) -> None:
        self.turn = threading.Semaphore(0)
        self.waits = threading.Event()
        self.ended = False
        self.left = killed_after
        self.failed: BaseException | None = None
        self._work = work
        self._remote = InTurn(remote, self)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._work(self._remote)
        except Killed:
            pass
        except RemoteError as problem:
            # In an order that lets another one change the head each time, he gives up, and says so.
            if "all the time" not in problem.message:
                self.failed = problem
        except BaseException as problem:
            self.failed = problem
        self.ended = True
        self.waits.set()

    def step(self) -> None:
        """Let him make one access, and wait until he wants to make the next."""
        self.waits.clear()
        self.turn.release()
        assert self.waits.wait(60)

    def __call__(self) -> None:
        """Wait for the turn."""
        self.waits.set()
        assert self.turn.acquire(timeout=60)
        self.left -= 1
        if self.left < 0:
            raise Killed


class InTurn(Remote):
    """A remote of which each access waits for the turn of its actor."""

    parallel = 1

    def __init__(self, remote: Remote, turn: Callable[[], None]) -> None:
        self._remote = remote
        self._turn = turn

    @property
    def url(self) -> str:
        return self._remote.url

    def put(self, key: str, data: bytes) -> bool:
        self._turn()
        return self._remote.put(key, data)

    def get(self, key: str, limit: int = 1 << 30) -> bytes:
        self._turn()
        return self._remote.get(key, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        self._turn()
        return self._remote.get_range(key, start, length)

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        self._turn()
        return iter(list(self._remote.list(prefix)))

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        self._turn()
        return self._remote.replace(key, data, expected)

    def delete(self, key: str) -> None:
        self._turn()
        self._remote.delete(key)


def in_memory() -> Path:
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))


@pytest.fixture(scope="module")
def stores() -> Iterator[list[Path]]:
    """The `.perun` of three people."""
    room = in_memory()
    for number, share in enumerate(SHARES):
        store = Store(room / str(number))
        store.create()
        for profile in sorted(share):
            checksum = store.objects.put_body("time", BODY % profile)
            head = ProfileHeader("time", str(profile), "", "", "", ())
            entry = IndexEntry(100 + profile, checksum, f"{profile}.perf", head)
            store.indexes.add(MINORS[profile % 2], [entry])
    yield [room / str(number) for number in range(len(SHARES))]
    shutil.rmtree(room)


class World:
    """A remote, those who use it, and what must be there: all that was told to be.

    :param make: opens the remote, which is empty; it is a folder if that is None.
    """

    def __init__(self, stores: list[Path], make: Callable[[], Remote] | None = None) -> None:
        self.room = in_memory()
        self.stores = []
        for path in stores:
            shutil.copytree(path, self.room / path.name)
            self.stores.append(SimpleNamespace(store=Store(self.room / path.name)))
        self.folder = self.room / "remote"
        self.open = make or (lambda: FileRemote(self.folder))
        self.remote = self.open()
        self.told: set[RegisterEntry] = set()

    def push(self, number: int) -> Callable[[Remote], None]:
        def work(remote: Remote) -> None:
            repo: Any = self.stores[number]
            for minors in ([MINORS[0]], None):
                assert transfer.push(repo, remote, minors, again=True).refused == []
                self.told.update(registered_here(repo, minors))

        return work

    def pull(self, number: int) -> Callable[[Remote], None]:
        def work(remote: Remote) -> None:
            repo: Any = self.stores[number]
            for _ in range(2):
                before = set(self.told)
                assert transfer.pull(repo, remote).refused == []
                here = set(registered_here(repo, None))
                assert {entry for entry in before if self.stays(entry)} <= here

        return work

    def clean(self, grace: float) -> Callable[[Remote], None]:
        def work(remote: Remote) -> None:
            for now in (NOW, NOW + 100):
                reader = RemoteReader(remote)
                gone = [one.entry for one in reader.refresh() if not self.stays(one.entry)]
                cleaning.remove(reader, gone, now=now)
                cleaning.clean(reader, grace=grace, now=now)

        return work

    @staticmethod
    def stays(entry: RegisterEntry) -> bool:
        return int(entry.name.partition(".")[0]) not in REMOVED

    def check(self) -> None:
        """See that all that somebody was told to be there is there."""
        union = RemoteReader(self.remote).refresh()
        for entry in self.told:
            if self.stays(entry):
                assert entry in union
                place = union.where(entry.checksum)
                assert place is not None
                data = self.remote.get(FOLDER + place.pack)
                assert dict(unpacked(place.pack, data))[entry.checksum] == place

    def check_exact(self) -> None:
        """See that nothing is left that nothing needs, after the last one has cleaned up."""
        reader = RemoteReader(self.remote)
        reader.refresh()
        cleaning.clean(reader, grace=0, now=NOW + 1000)
        self.check()
        union = RemoteReader(self.remote).refresh()
        left = {one.key.removeprefix(FOLDER) for one in self.remote.list(FOLDER)}
        assert left == union.needed().keys() == union.sizes().keys()
        assert len(list(self.remote.list("snapshots/"))) <= 1
        assert reader.head.state.condemned == {}
        registers = {one.key.removeprefix("registers/") for one in self.remote.list("registers/")}
        assert len(registers) < cleaning.REGISTERS

    def run(self, actors: list[Actor], order: Callable[[int], int]) -> None:
        for actor in actors:
            actor.thread.start()
            assert actor.waits.wait(60)
        while running := [actor for actor in actors if not actor.ended]:
            chosen = running[order(len(running))]
            told = len(self.told)
            chosen.step()
            if len(self.told) != told or not order(8):
                self.check()
        for actor in actors:
            actor.thread.join()
            if actor.failed is not None:
                raise actor.failed


ACTORS = st.lists(
    st.tuples(
        st.sampled_from(["push0", "push1", "push2", "pull0", "pull1", "clean0", "clean50"]),
        st.just(10**6) | st.integers(0, 40),
    ),
    min_size=2,
    max_size=5,
)


def interleave(
    stores: list[Path], plan: list[tuple[str, int]], random: Any, make: Callable[[], Remote] | None = None
) -> None:  # fmt: skip
    world = World(stores, make)
    people = []
    try:
        actors = []
        for name, killed_after in plan:
            kind, number = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
            work = {"push": world.push, "pull": world.pull, "clean": world.clean}[kind](number)
            people.append(world.open())
            actors.append(Actor(work, people[-1], killed_after))
        world.run(actors, random.randrange)
        world.check()
        world.check_exact()
    finally:
        for remote in (world.remote, *people):
            remote.close()
        shutil.rmtree(world.room)


@pytest.fixture(autouse=True)
def _early_snapshots_and_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "REGISTERS", 3)
    monkeypatch.setattr(cleaning, "DEAD_IN_HEAD", 2)
    monkeypatch.setattr(cleaning, "SMALL_PACKS", 3)


CHECKS = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@given(ACTORS, st.randoms(use_true_random=False))
@settings(CHECKS, max_examples=15)
def test_nothing_is_lost_in_any_order(stores: list[Path], plan: list[tuple[str, int]], random: Any) -> None:
    interleave(stores, plan, random)


@pytest.mark.slow
@given(ACTORS, st.randoms(use_true_random=False))
@settings(CHECKS, max_examples=600)
def test_nothing_is_lost_in_very_many_orders(stores: list[Path], plan, random: Any) -> None:
    interleave(stores, plan, random)


@pytest.mark.slow
@pytest.mark.parametrize("kind, orders", [("sqlite", 100), ("postgresql", 60), ("s3", 40), ("git", 12)])
def test_nothing_is_lost_on_other_kinds_of_remotes(stores, new_url, tmp_path, kind: str, orders: int) -> None:
    url = new_url(kind)

    def make() -> Remote:
        return opened(url, folder=tmp_path, environ=os.environ)

    @given(ACTORS, st.randoms(use_true_random=False))
    @settings(CHECKS, max_examples=orders)
    def check(plan: list[tuple[str, int]], random: Any) -> None:
        with make() as remote:
            remote.delete("format")
            for prefix in ("heads/", FOLDER, "registers/", "snapshots/"):
                for one in list(remote.list(prefix)):
                    remote.delete(one.key)
        interleave(stores, plan, random, make)

    check()


class Hooked(FileRemote):
    """A folder where something else happens once, just before or after an access of a kind."""

    def __init__(self, folder: Path, when: str, prefix: str, event: Callable[[], object]) -> None:
        super().__init__(folder)
        self._when, self._prefix, self._event = when, prefix, event
        self.happened = False

    def _at(self, when: str, key: str) -> None:
        if when == self._when and key.startswith(self._prefix) and not self.happened:
            self.happened = True
            self._event()

    def put(self, key: str, data: bytes) -> bool:
        self._at("before put", key)
        return super().put(key, data)

    def get(self, key: str, limit: int = 1 << 30) -> bytes:
        try:
            return super().get(key, limit)
        finally:
            self._at("after get", key)

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        found = list(super().list(prefix))
        self._at("after list", prefix)
        return iter(found)

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        self._at("before replace", key)
        return super().replace(key, data, expected)


@pytest.fixture
def world(stores: list[Path]) -> Iterator[World]:
    made = World(stores)
    yield made
    shutil.rmtree(made.room)


def leave_pack(world: World, number: int) -> None:
    """Leave the packs of a push that was killed before it put a register."""

    def killed() -> None:
        raise Killed

    with pytest.raises(Killed):
        world.push(number)(Hooked(world.folder, "before put", "registers/", killed))


@pytest.mark.parametrize("grace", [0, 50])
def test_a_pack_that_is_cleaned_up_before_its_register_is_there(world: World, grace: float) -> None:
    """With a grace it is only condemned, and rescued; without one it is deleted, and sent again."""
    remote = Hooked(
        world.folder, "before put", "registers/", lambda: world.clean(grace)(FileRemote(world.folder))
    )
    repo: Any = world.stores[0]
    assert len(transfer.push(repo, remote, again=True).entries) == len(SHARES[0])
    assert remote.happened
    world.told.update(registered_here(repo, None))
    world.check()
    reader = RemoteReader(FileRemote(world.folder))
    needed = {FOLDER + pack for pack in reader.refresh().needed()}
    assert not needed & reader.head.state.condemned.keys()
    world.check_exact()


def test_registers_that_become_a_snapshot_while_somebody_reads(world: World) -> None:
    for number in range(3):
        world.push(number)(FileRemote(world.folder))
    for when, prefix in (("after list", "registers/"), ("after get", "heads/gc")):
        remote = Hooked(world.folder, when, prefix, lambda: world.clean(0)(FileRemote(world.folder)))
        union = RemoteReader(remote).refresh()
        assert remote.happened
        assert {entry for entry in world.told if world.stays(entry)} <= {one.entry for one in union}
        world.push(1)(FileRemote(world.folder))


def test_a_push_that_ends_before_what_was_read_is_acted_on(world: World) -> None:
    """The pack was left over when it was read; who cleans up is about to say so when somebody needs it."""
    leave_pack(world, 0)
    remote = Hooked(world.folder, "before replace", "heads/", lambda: world.push(0)(FileRemote(world.folder)))
    cleaning.clean(RemoteReader(remote), grace=0, now=NOW)
    assert remote.happened
    world.check()


def test_a_pack_that_another_one_condemns_by_what_he_read_before(world: World) -> None:
    """Two clean up. The second condemned a pack by old registers; the first has read old registers too."""
    leave_pack(world, 0)
    second = Hooked(world.folder, "before replace", "heads/", lambda: world.push(0)(FileRemote(world.folder)))
    first = Hooked(
        world.folder, "after list", "registers/",
        lambda: cleaning.clean(RemoteReader(second), grace=50, now=NOW)
    )  # fmt: skip
    reader = RemoteReader(first)
    cleaning.clean(reader, grace=0, now=NOW)
    assert first.happened and second.happened
    world.check()


def test_what_is_dead_counts_no_more_for_who_said_so(world: World) -> None:
    world.push(0)(FileRemote(world.folder))
    reader = RemoteReader(FileRemote(world.folder))
    packs = reader.refresh().needed()
    assert packs and reader.change(reader.head.state._replace(dead=tuple(sorted(packs))))
    assert list(reader.union) == []


def test_many_small_packs_become_one(world: World) -> None:
    for number in range(3):
        world.push(number)(FileRemote(world.folder))
    before = {one.key for one in FileRemote(world.folder).list(FOLDER)}
    assert len(before) >= cleaning.SMALL_PACKS

    def clean(now: float) -> cleaning.RemoteCleaningResult:
        reader = RemoteReader(FileRemote(world.folder))
        reader.refresh()
        return cleaning.clean(reader, grace=50, now=now)

    first = clean(NOW)
    assert set(first.condemned) == before and before.isdisjoint(first.deleted)
    assert first.moved > 0
    world.check()
    again = clean(NOW + 10)
    assert (again.moved, set(again.condemned)) == (0, before) and before <= set(clean(NOW + 60).deleted)
    world.check()
    assert len(list(FileRemote(world.folder).list(FOLDER))) == 1
    world.check_exact()
