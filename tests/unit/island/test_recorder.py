"""Both recorders, in C and in Python: what they record, and that programs do what they do alone."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import running
from hand_made import columns_of
from running import PACKAGE, alone, names, recorded, recordings

from perun.island import layout, record, scan, statistics
from perun.island import recorder as library
from perun.island.accounting import no_stops

PROGRAMS = Path(__file__).parent / "programs"
PROJECT = Path(__file__).parents[3]


@pytest.fixture(params=[True, False], ids=["native", "pure"])
def native(request: pytest.FixtureRequest) -> bool:
    """Each recorder; the one in C is not built where there are no headers of Python."""
    if request.param and library.load() is None:
        pytest.skip("the recorder in C was not built: it needs Python.h")
    return bool(request.param)


def run(text: str, folder: Path, native: bool, *arguments: str | Path, **options: Any) -> record.Recording:
    """The recording of a program that ends well."""
    done = recorded(text, folder, native, *arguments, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return recordings(folder)[0]


def of_object(recording: record.Recording, name: str, serial: int = 1) -> Counter[str]:
    """Amount by API of the calls on an object whose name ends with this one."""
    (number,) = (one.number for one in recording.objects if one.name.endswith(name) and one.serial == serial)
    found: Counter[str] = Counter()
    for call in recording.calls():
        if call.object == number:
            found[recording.apis[call.api].name] += call.amount
    return found


class TestFiles:
    def test_counts_of_each_file(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import pathlib, os, sys\nos.chdir(sys.argv[1])\n"
            "with open('a', 'w') as file, open('b', 'wb') as other:\n"
            "    for _ in range(10): file.write('12345678')\n    file.writelines(['ab\\n', 'c\\n'])\n"
            "    other.write(b'x' * 100000)\nfor line in open('a'): pass\n"
            "file = open('a'); file.readline(); file.read(3); file.seek(0); file.readlines()\n"
            "pathlib.Path('b').read_bytes()\n"
        )
        recording = run(text, tmp_path / "rec", native, tmp_path)
        assert of_object(recording, "/a") == {
            "file.open": 1, "file.write": 80, "file.writelines": 5, "file.close": 0
        }  # fmt: skip
        found = of_object(recording, "/a", 2)
        assert (found["file.open"], found["file.next"]) == (1, 85)
        found = of_object(recording, "/a", 3)
        assert (found["file.readline"], found["file.read"], found["file.readlines"]) == (83, 2, 85)
        assert of_object(recording, "/b") == {"file.open": 1, "file.write": 100000, "file.close": 0}
        assert of_object(recording, "/b", 2)["file.read"] == 100000
        assert all(one.closed > one.opened for one in recording.objects if one.name.endswith("/b"))
        # The text is less than a buffer, so that all of it goes to the disk when the file is closed.
        physical: Counter[tuple[str, str]] = Counter()
        for call in recording.calls():
            if call.object >= 0 and recording.objects[call.object].serial == 1:
                physical[recording.apis[call.api].name, recording.objects[call.object].name[-2:]] += (
                    call.physical
                )
        assert physical["file.close", "/a"] == 85 and physical["file.write", "/a"] == 0
        assert physical["file.write", "/b"] == 100000

    def test_calls_on_another_file_inside_of_a_call(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import sys\nopen(sys.argv[1], 'w').write('a\\nb\\n')\n"
            "with open(sys.argv[1]) as source, open(sys.argv[1] + '2', 'w') as target:\n"
            "    target.writelines(source)\n"
        )
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        assert of_object(recording, "/x", 2)["file.next"] == 4
        assert of_object(recording, "/x2")["file.writelines"] == 4
        outer = next(call for call in recording.calls() if recording.apis[call.api].name == "file.writelines")
        inner = [call for call in recording.calls() if recording.apis[call.api].name == "file.next"]
        assert all(outer.start <= call.start <= call.end <= outer.end for call in inner)

    def test_unbuffered_files_are_physical(self, tmp_path: Path, native: bool) -> None:
        text = "import sys\nfile = open(sys.argv[1], 'wb', 0)\nfile.write(b'12345')\n"
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        (call,) = (call for call in recording.calls() if recording.apis[call.api].name == "file.write")
        assert (call.amount, call.physical) == (5, 5)

    def test_an_unclosed_file_keeps_its_data(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import gc, sys, weakref\ngc.disable()\nfile = open(sys.argv[1], 'w')\nfile.write('kept')\n"
            "gone = weakref.ref(file)\ndel file\nassert gone() is None\nprint(open(sys.argv[1]).read())\n"
            "last = open(sys.argv[1] + '2', 'w')\nlast.write('also kept')\n"
        )
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        assert (tmp_path / "x").read_text("utf-8") == "kept"
        assert (tmp_path / "x2").read_text("utf-8") == "also kept"
        assert recording.objects[-2].closed > 0
        if native:
            # What the interpreter writes when it ends is recorded, too.
            last = len(recording.objects) - 1
            assert sum(call.physical for call in recording.calls() if call.object == last) == 9


class TestEnds:
    """The ways in which a program can end."""

    WRITES = (
        "import os, sys, time\nfile = open(sys.argv[1], 'w')\nfor _ in range(1000): file.write('12345678')\n"
    )

    def test_killed(self, tmp_path: Path, native: bool) -> None:
        text = self.WRITES + "print('ready', flush=True)\ntime.sleep(60)\n"
        (tmp_path / "rec.py").write_text(text, "utf-8")
        (tmp_path / "rec").mkdir()
        with subprocess.Popen(
            [
                *(sys.executable, "-c", "LIMITS = None\n" + running.RUN, tmp_path / "rec"),
                *("native" if native else "pure", "", tmp_path / "rec.py", tmp_path / "x"),
            ],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            # The call is in the file as soon as it has begun.
            while not any(name == "time.sleep" for name, _ in names(recordings(tmp_path / "rec")[0])):
                time.sleep(0.01)
            process.kill()
        (recording,) = recordings(tmp_path / "rec")
        assert of_object(recording, "/x")["file.write"] == 8000
        last = list(recording.of_thread(0))[-1]
        assert recording.apis[last.api].name == "time.sleep" and last.end == -1 and not recording.complete
        assert recording.io_end == (-1, -1) and process.returncode == -signal.SIGKILL

    @pytest.mark.parametrize(("end", "code"), [
        ("os._exit(5)", 5),
        ("raise SystemExit(6)", 6),
        ("raise ValueError('seven')", 1),
        ("os.abort()", -signal.SIGABRT),
        ("os.execv('/bin/true', ['true'])", 0),
    ])  # fmt: skip
    def test_other_ends(self, end: str, code: int, tmp_path: Path, native: bool) -> None:
        assert recorded(self.WRITES + end, tmp_path / "rec", native, tmp_path / "x").returncode == code
        (recording,) = recordings(tmp_path / "rec")
        assert of_object(recording, "/x")["file.write"] == 8000
        assert recording.complete == ("raise" in end)
        if not recording.complete:
            last = list(recording.of_thread(0))[-1]
            assert (recording.apis[last.api].name, last.end) == ("exit", -1)

    def test_a_call_that_fails(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import sys\ntry: open(sys.argv[1]).write('x')\nexcept OSError as problem: print(problem)\n"
            "try: open(sys.argv[1] + '2')\nexcept OSError as problem: print(problem.errno)\n"
        )
        (tmp_path / "x").touch()
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        failed = [recording.apis[call.api].name for call in recording.calls() if call.flags & layout.RAISED]
        assert failed == ["file.write", "file.open"]

    def test_a_sleep_that_is_interrupted_tells_what_was_asked(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import signal, time\ndef stop(*arguments): raise KeyboardInterrupt\n"
            "signal.signal(signal.SIGALRM, stop); signal.setitimer(signal.ITIMER_REAL, 0.5)\n"
            "try: time.sleep(30)\nexcept KeyboardInterrupt: print('interrupted')\n"
        )
        recording = run(text, tmp_path / "rec", native)
        (call,) = (call for call in recording.calls() if recording.apis[call.api].name == "time.sleep")
        assert (call.amount, call.flags) == (30_000_000_000, layout.RAISED)
        assert call.end - call.start < 30_000_000_000

    def test_forked_processes_have_recordings_of_their_own(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import os, sys\nfile = open(sys.argv[1], 'wb', 0)\nfile.write(b'parent')\n"
            "if os.fork() == 0:\n    file.write(b'child')\n    open(sys.argv[1] + '2', 'w').write('x')\n"
            "    os._exit(0)\nos.wait()\nfile.write(b'again')\n"
        )
        run(text, tmp_path / "rec", native, tmp_path / "x")
        parent, child = recordings(tmp_path / "rec")
        assert child.parent == parent.pid
        assert of_object(parent, "/x")["file.write"] == 11 and of_object(child, "/x") == {"file.write": 5}
        assert of_object(child, "/x2")["file.write"] == 1
        assert (tmp_path / "x").read_bytes() == b"parentchildagain"

    def test_a_full_disk_stops_the_recording_and_not_the_program(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))\n"
            "file = open(sys.argv[1], 'w')\nfor _ in range(6000): file.write('12345678')\nfile.close()\n"
        )
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        assert (tmp_path / "x").stat().st_size == 48000 and not recording.complete
        assert any("could not be recorded" in note for note in recording.notes)
        assert 300 < sum(name == "file.write" for name, _ in names(recording)) < 6000


class TestThreads:
    def test_threads_are_known_by_name_and_parent(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import sys, threading\ndef write(number):\n"
            "    with open(f'{sys.argv[1]}-{number}', 'w') as file:\n"
            "        for _ in range(25): file.write('12345678')\n"
            "threads = [threading.Thread(target=write, args=(n,), name=f'writer {n}') for n in range(4)]\n"
            "for thread in threads: thread.start()\nfor thread in threads: thread.join()\n"
        )
        recording = run(text, tmp_path / "rec", native, tmp_path / "x")
        assert [one.name for one in recording.threads] == ["MainThread", *(f"writer {n}" for n in range(4))]
        written = Counter[int]()
        for call in recording.calls():
            if recording.apis[call.api].name == "file.write":
                written[call.thread] += call.amount
        assert written == {number: 200 for number in range(1, 5)}
        for thread in recording.threads[1:]:
            assert thread.parent == 0
            assert recording.started <= thread.created < thread.destroyed <= recording.ended
            assert 0 <= thread.cpu <= thread.destroyed - thread.created + 1_000_000
        assert recording.threads[0].destroyed == -1
        assert sum(name == "thread.start" for name, _ in names(recording)) == 4

    def test_waiting(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import threading, time\nlock = threading.Lock(); lock.acquire()\n"
            "threading.Timer(0.05, lock.release).start()\nlock.acquire()\n"
            "thread = threading.Thread(target=time.sleep, args=(0.05,)); thread.start(); thread.join()\n"
            "threading.Event().wait(0.01); threading.Timer(9, print).cancel(); time.sleep(0.01)\n"
        )
        recording = run(text, tmp_path / "rec", native)
        found = Counter(recording.apis[call.api].name for call in recording.calls())
        assert found["timer.start"] == found["timer.cancel"] == found["thread.join"] == 1
        assert found["lock.acquire"] >= 1  # of the event
        sleeps = [call for call in recording.calls() if recording.apis[call.api].name == "time.sleep"]
        assert [call.amount for call in sleeps] == [50_000_000, 10_000_000]
        assert all(call.end - call.start >= call.amount for call in sleeps)

    def test_waiting_for_locks(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import threading\nlocks = threading.Lock(), threading.RLock()\n"
            "def wait():\n    for lock in locks: lock.acquire(timeout=0.01)\n"
            "for lock in locks: lock.acquire()\n"
            "thread = threading.Thread(target=wait); thread.start(); thread.join()\n"
        )
        recording = run(text, tmp_path / "rec", native)
        calls = [one for one in recording.calls() if recording.apis[one.api].name == "lock.acquire"]
        long = [one for one in calls if one.thread == 1 and one.end - one.start >= 10_000_000]
        # Python cannot replace the methods of the types of locks, but the recorder in C can.
        assert len(long) >= 2 if native else not long

    def test_islands_are_inherited(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import threading, os\nnumber = recorder.island('inner')\nbefore = recorder.enter(number)\n"
            "thread = threading.Thread(target=os.urandom, args=(3,)); thread.start(); thread.join()\n"
            "os.urandom(2)\nassert recorder.enter(before) == number\nos.urandom(1)\n"
        )
        recording = run(text, tmp_path / "rec", native)
        assert recording.islands == ["program", "inner"]
        random = [
            (call.amount, call.island)
            for call in recording.calls()
            if recording.apis[call.api].name == "random.bytes"
        ]
        assert random == [(3, 1), (2, 1), (1, 0)]
        assert [one.island for one in recording.threads] == [0, 1]
        columns = columns_of(recording)
        assert sorted(columns["island"][columns["api"] == layout.NUMBERS["random.bytes"]].tolist()) == [
            0, 1, 1
        ]  # fmt: skip


class TestSockets:
    def test_two_connections_to_one_peer(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import socket, threading\nserver = socket.create_server(('127.0.0.1', 0))\n"
            "address = server.getsockname()\nprint(address[1])\ndef serve():\n    for _ in range(2):\n"
            "        connection, _ = server.accept()\n"
            "        while data := connection.recv(10): connection.sendall(data * 2)\n"
            "thread = threading.Thread(target=serve); thread.start()\nfor size in (3, 5):\n"
            "    with socket.create_connection(address) as client:\n        client.sendall(b'x' * size)\n"
            "        while size: size -= len(client.recv(2)) / 2\nthread.join()\n"
            "one, two = socket.socketpair(); one.send(b'pair'); two.recv(10)\n"
            "here = socket.socket(type=socket.SOCK_DGRAM); here.bind(('127.0.0.1', 0))\n"
            "here.sendto(b'datagram', here.getsockname()); here.recvfrom(100)\n"
        )
        done = recorded(text, tmp_path / "rec", native)
        assert (done.returncode, done.stderr) == (0, "")
        (recording,) = recordings(tmp_path / "rec")
        used: dict[tuple[str, str, int], Counter[str]] = {}
        for call in recording.calls():
            if call.object >= 0 and recording.objects[call.object].kind in layout.KINDS:
                _, kind, name, serial, *_ = recording.objects[call.object]
                api = recording.apis[call.api]
                used.setdefault((kind, name, serial), Counter())[api.subtype] += call.amount
                assert call.physical in (0, call.amount)
        peer = f"127.0.0.1:{done.stdout.strip()}"
        assert [one["tcp-accept"] for one in used.values() if "tcp-accept" in one] == [2]
        clients = [one for (kind, name, _), one in used.items() if name == peer and "tcp-connect" in one]
        assert clients == [
            {"tcp-connect": 1, "tcp-send": 3, "tcp-recv": 6, "tcp-close": 0},
            {"tcp-connect": 1, "tcp-send": 5, "tcp-recv": 10, "tcp-close": 0},
        ]
        accepted = [one for one in used.values() if "tcp-connect" not in one and "tcp-send" in one]
        assert sorted(one["tcp-send"] for one in accepted) == [6, 10]
        assert sum(one["unix-send"] for one in used.values()) == 4
        assert sum(one["udp-recv"] for one in used.values()) == 8

    def test_a_blocked_recv_knows_when_its_data_arrived(self, tmp_path: Path, native: bool) -> None:
        text = (
            "import socket, threading, time\nserver = socket.create_server(('127.0.0.1', 0))\n"
            "client = socket.create_connection(server.getsockname())\nother, _ = server.accept()\n"
            "threading.Timer(0.05, client.send, (b'x',)).start()\nother.recv(1)\n"
        )
        recording = run(text, tmp_path / "rec", native)
        sends = [call for call in recording.calls() if recording.apis[call.api].name == "socket.send"]
        (recv,) = (call for call in recording.calls() if recording.apis[call.api].name == "socket.recv")
        assert abs(recv.arrived - sends[0].end) < 20_000_000
        assert recv.start < recv.arrived <= recv.end

    def test_encrypted_sockets_count_what_the_program_sends(self, tmp_path: Path, native: bool) -> None:
        certificate = tmp_path / "both.pem"
        subprocess.run(
            [
                *(
                    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes"
                ),
                *(
                    "-keyout", certificate, "-out", tmp_path / "cert.pem", "-subj", "/CN=localhost", "-days",
                    "2"
                ),
            ],
            check=True, capture_output=True
        )  # fmt: skip
        certificate.write_text(
            certificate.read_text("utf-8") + (tmp_path / "cert.pem").read_text("utf-8"), "utf-8"
        )
        text = (
            "import socket, ssl, sys, threading\n"
            "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(sys.argv[1])\n"
            "server = context.wrap_socket(socket.create_server(('127.0.0.1', 0)), server_side=True)\n"
            "def serve():\n    peer, _ = server.accept(); peer.sendall(peer.recv(100) * 2)\n"
            "thread = threading.Thread(target=serve); thread.start()\n"
            "trusting = ssl.create_default_context(cafile=sys.argv[1]); trusting.check_hostname = False\n"
            "with trusting.wrap_socket(socket.create_connection(server.getsockname())) as client:\n"
            "    client.sendall(b'secret')\n    print(client.recv(100))\nthread.join()\n"
        )
        recording = run(text, tmp_path / "rec", native, certificate)
        found: Counter[str] = Counter()
        for call in recording.calls():
            found[recording.apis[call.api].subtype] += call.amount
        assert (found["tcp-send"], found["tcp-recv"], found["tcp-handshake"]) == (18, 18, 2)


LIMITED = """\
class Limits:
    held = 0
    def for_resource(self, name): return name in ("filewrite", "filesopened")
    def spend(self, resource, amount):
        import time
        return time.monotonic_ns() + amount * 1_000_000
    def wait(self, deadline):
        import time
        while time.monotonic_ns() < deadline: pass
    def acquire(self, resource):
        if self.held == 1: raise OSError(24, "limit")
        self.held += 1
    def release(self, resource): self.held -= 1
LIMITS = Limits()
"""


def test_a_child_process_finds_the_locks_of_limits_free(tmp_path: Path, native: bool) -> None:
    text = (
        "import os, signal, sys\nheld = recorder.limits\n"
        "with held._lock, held._buckets['filewrite'][0]._lock:\n    child = os.fork()\n"
        "    if not child:\n        signal.alarm(60)\n        open(sys.argv[1], 'w').write('child')\n"
        "        os._exit(0)\nprint(os.waitpid(child, 0)[1], open(sys.argv[1]).read())\n"
    )
    made = "from _perun_island.limits import *\nLIMITS = Limits.parse(['filewrite=9', 'filesopened=9'])"
    done = recorded(text, tmp_path / "rec", native, tmp_path / "x", limits=running.LOADED + made)
    assert done.stdout == "0 child\n", done.stderr


def test_limits_wait_inside_of_the_call_and_refuse(tmp_path: Path, native: bool) -> None:
    text = (
        "import sys\nfile = open(sys.argv[1], 'w')\nfile.write('1234567890')\n"
        "try: open(sys.argv[1])\nexcept OSError as problem: print(problem.errno)\n"
        "file.close()\nfile.close()\nprint(open(sys.argv[1]).read())\n"
        "try: open(sys.argv[1] + '/missing')\nexcept OSError as problem: print(problem.errno)\n"
    )
    done = recorded(text, tmp_path / "rec", native, tmp_path / "x", limits=LIMITED)
    assert done.stdout.splitlines() == ["24", "1234567890", "20"], done.stderr
    (recording,) = recordings(tmp_path / "rec")
    (number,) = (one.number for one in recording.objects if one.name.endswith("/x") and one.serial == 1)
    (call,) = (
        call
        for call in recording.calls()
        if call.object == number and recording.apis[call.api].name == "file.write"
    )
    assert call.end - call.start >= 10_000_000 and call.start < call.expected <= call.end
    assert call.expected in columns_of(recording)["expected"]


def test_all_calls_of_os(tmp_path: Path, native: bool) -> None:
    text = (
        "import os, sys\nhere = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "os.write(here, b'12345'); os.pread(here, 3, 0); os.close(here)\n"
    )
    recording = run(text, tmp_path / "rec", native, tmp_path / "x", all_calls=True)
    assert names(recording)[:2] == [("os.write", 5), ("os.read", 3)]
    recording = run(text, tmp_path / "again", native, tmp_path / "x")
    assert not [name for name, _ in names(recording) if name.startswith("os.")]


def test_asyncio_sleeps_are_concurrent(tmp_path: Path, native: bool) -> None:
    text = (
        "import asyncio\nasync def main(): await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2))\n"
        "asyncio.run(main())\n"
    )
    recording = run(text, tmp_path / "rec", native)
    sleeps = [call for call in recording.calls() if call.flags & layout.CONCURRENT]
    assert sorted(call.amount for call in sleeps) == [100_000_000, 200_000_000]
    assert sleeps[0].end > sleeps[1].start
    waits = [call for call in recording.calls() if recording.apis[call.api].name == "wait.poll"]
    assert waits


@pytest.mark.parametrize("name", ["files", "others"])
def test_programs_do_what_they_do_alone(name: str, tmp_path: Path, native: bool) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    exact = ["exact"] if native else []
    expected = alone(PROGRAMS / f"{name}.py", tmp_path / "rec", tmp_path / "one", *exact)
    done = recorded(PROGRAMS / f"{name}.py", tmp_path / "rec", native, tmp_path / "two", *exact)
    assert expected.returncode == {"files": 0, "others": 3}[name], expected.stderr
    assert done.stdout.splitlines() == [
        line if native else _derived(line) for line in expected.stdout.splitlines()
    ]
    assert done.returncode == expected.returncode
    if native:
        assert sorted(done.stderr.splitlines()) == sorted(expected.stderr.splitlines())
    contents = [
        {
            path.name: path.read_bytes()
            for path in (tmp_path / one).glob("*")
            if path.is_file() and "z" not in path.name
        }
        for one in ("one", "two")
    ]
    assert contents[0] == contents[1]


def _derived(line: str) -> str:
    """What is different for files of classes that are written in Python: the words of two refusals."""
    line = line.replace(
        "TextIOWrapper.write() takes exactly one argument (0 given)'",
        "TextIOWrapper.write() missing 1 required positional argument: 'data'\"",
    ).replace("'TextIOWrapper.write() missing", '"TextIOWrapper.write() missing')
    return line.replace("cannot pickle '_io.BufferedWriter' object", "cannot pickle 'BufferedWriter' object")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
@pytest.mark.parametrize("name", ["files", "others"])
def test_other_pythons(version: str, name: str, tmp_path: Path) -> None:
    listed = subprocess.run(
        [PROJECT / "tools" / "pythons.sh", version], capture_output=True, text=True, check=True
    )
    if not listed.stdout or library.load() is None:
        pytest.skip(f"there is no Python {version}, or no recorder in C")
    python = listed.stdout.split()[1]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    expected = alone(PROGRAMS / f"{name}.py", tmp_path / "rec", tmp_path / "one", "exact", python=python)
    done = recorded(PROGRAMS / f"{name}.py", tmp_path / "rec", True, tmp_path / "two", "exact", python=python)
    assert done.stdout == expected.stdout
    # Files that were never closed are warned of in any order.
    assert sorted(done.stderr.splitlines()) == sorted(expected.stderr.splitlines())
    assert done.returncode == expected.returncode
    assert recordings(tmp_path / "rec")[0].complete


def test_many_writes_take_little_memory(tmp_path: Path, native: bool) -> None:
    text = (
        "import resource, sys\nfile = open(sys.argv[1], 'w')\nfile.write('12345678')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for _ in range(300000): file.write('12345678')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = recorded(text, tmp_path / "rec", native, tmp_path / "x")
    assert int(done.stdout) < 4096, done.stderr
    (recording,) = recordings(tmp_path / "rec")
    columns = columns_of(recording)
    written = columns[columns["api"] == layout.NUMBERS["file.write"]]
    assert (len(written), int(written["amount"].sum())) == (300_003, 8 * 300_001 + len(done.stdout))


def test_the_program_sees_no_descriptor_of_the_recorder(tmp_path: Path, native: bool) -> None:
    text = (
        "import os\nfor _ in range(3000): os.urandom(1)\n"
        "print(os.open('/dev/null', os.O_RDONLY), sorted(os.listdir('/proc/self/fd')))\n"
        "os.closerange(3, 100)\nfor _ in range(3000): os.urandom(1)\n"
    )
    expected = alone(text, tmp_path / "alone")
    assert recorded(text, tmp_path / "rec", native).stdout == expected.stdout
    assert sum(name == "random.bytes" for name, _ in names(recordings(tmp_path / "rec")[0])) == 6000


def test_all_is_put_back(tmp_path: Path, native: bool) -> None:
    text = (
        "import io, os, socket, sys, threading, time, builtins, _thread, selectors\nuninstall()\n"
        "kept = [open, io.open, os.urandom, os._exit, time.sleep, io.TextIOWrapper.write, io.FileIO.read,"
        " socket.socket.send, _thread.start_new_thread, threading.Thread.join, threading.Timer.start]\n"
        "print(*(type(one).__name__ for one in kept), sorted(vars(socket.socket)))\n"
        "print([type(one).__name__ for one in sys.meta_path])\n"
        "file = open(sys.argv[1], 'w'); file.write('x'); file.close(); time.sleep(0)\n"
        "for line in open(sys.argv[1]): print(line)\n"
    )
    expected = alone(text.replace("uninstall()\n", ""), tmp_path / "alone", tmp_path / "x")
    done = recorded(text, tmp_path / "rec", native, tmp_path / "x")
    assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr)
    assert not of_object(recordings(tmp_path / "rec")[0], "<stdout>")


def test_what_the_recorder_loads(tmp_path: Path, native: bool) -> None:
    """A measured program pays for it: nothing but small modules of the standard library."""
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        + running.LOADED
        + f"recorder = open_recorder({str(tmp_path)!r}, {native})\nhooks.install(recorder)\n"
        + "print(*sorted(set(sys.modules) - before - {'types'}))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    others = {name for name in done.stdout.split() if "perun_island" not in name}
    assert others <= {"__future__", "_recorder", "_struct", "_weakref", "gc", "itertools", "struct", "time"}


def test_header_and_module_say_the_same() -> None:
    """`layout.h` is for the compiler, `layout.py` for Python."""
    text = (PROJECT / "src/perun/island/recorder/native/layout.h").read_text("utf-8")
    told = {
        **dict(re.findall(r"^#define (\w+) (\S+)", text, re.M)),
        **dict(re.findall(r"\b([A-Z_]+) = (\w+)", text)),
    }
    for name, value in told.items():
        expected: Any = getattr(layout, name)
        assert (
            value.strip('"').encode() if isinstance(expected, bytes) else int(value.rstrip("u"), 0)
        ) == expected
    sizes = {"uint64_t": 8, "int64_t": 8, "uint32_t": 4, "uint16_t": 2, "char": 8}
    for name, form in {"header": layout.HEADER, "chunk": layout.CHUNK, "slot": layout.SLOT}.items():
        body = re.search(rf"struct {name} {{(.*?)}};", text, re.S)
        assert body
        fields = re.findall(r"^\s*(\w+) ([\w, \[\]]+);", body[1], re.M)
        assert sum(sizes[kind] * (names.count(",") + 1) for kind, names in fields) == form.size
    assert PACKAGE.is_dir()


MANY_CALLS = """
import asyncio, threading, time

def lines(count):
    for number in range(count):
        if not number % 100:
            time.sleep(0.0001)
        yield f"{number}\\n"

def write(name, count):
    with open(name, "w") as file:
        file.writelines(lines(count))
    with open(name) as file, open(name + "2", "w") as copy:
        copy.writelines(file)  # each line is read within this one call

async def sleep(number):
    await asyncio.sleep(number / 100000)
    open("few", "a").write("x")

async def main():
    await asyncio.gather(*map(sleep, range(200)))

threads = [threading.Thread(target=write, args=(f"many{number}", 3000)) for number in range(2)]
for thread in threads:
    thread.start()
asyncio.run(main())
for thread in threads:
    thread.join()
"""


def test_totals_and_timeline_do_not_depend_on_how_much_is_read_at_a_time(
    native: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recording"
    done = recorded(MANY_CALLS, folder, native, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = []
    for size in (1 << 30, 1):
        monkeypatch.setattr(scan, "BLOCK", size)
        (recording,) = recordings(folder)
        assert max(len(list(recording.blocks(number))) for number in range(3)) > 2 or size > 1
        rows, lives, _ = statistics.of_process(0, recording, recording.ended, no_stops(), "exact")
        found.append((rows, lives, sorted(columns_of(recording).tolist())))
    assert found[0] == found[1]
    streamed = [tuple(call) for thread in recording.threads for call in recording.of_thread(thread.number)]
    assert sorted(streamed) == found[0][2] and len(streamed) > 6_000
