"""What a recording holds: its binary layout, and the calls that are recorded.

Both sides import this: the recorder inside of a measured program, whose Python may have no Perun, and
`record`, which reads. So it needs nothing but the standard library, and imports nothing of Perun.
`recorder/native/layout.h` says the same to the C compiler; a test compares the two.

A file is a header and then chunks. A chunk belongs to one thread: a header and slots. A slot is taken when a
call begins, with an end of 0, and completed when it returns; so a killed program leaves the calls in which it
was.
"""

from __future__ import annotations

from struct import Struct

MAGIC = b"PERUNISL"
VERSION = 1
HEADER_SIZE = 4096
HEADER = Struct("=8sIIIIQqQQqqqq")
"""Magic, version; process, its parent; chunks that could not be made; when recording began [ns,
CLOCK_MONOTONIC]; ns to add for CLOCK_REALTIME; when it ended (0: killed, or replaced by `exec`); calls
without a record; rchar and wchar of /proc/self/io at the begin, and at the end (-1 before)."""

CHUNK_MAGIC = 0x4B4E4843
CHUNK = Struct("=IIIIQQQQQQ")
"""Magic, bytes with this header; number of the thread, number of the chunk in it; thread of the system; when
the next two were read; CPU time of the thread [ns]; time it waited for a CPU [ns], all bits set where
unknown; when the thread ended, 0 before; unused."""
CHUNK_ALIGNMENT = 4096

SLOT = Struct("=QQqHHI")
"""Start (0: no slot), end [ns, CLOCK_MONOTONIC], amount, number of the API, flags, number of the object."""

RAISED = 1
"""The call ended with an exception."""
PHYSICAL = 2
"""The amount went to or came from the system as it is: no buffer between."""
CONCURRENT = 4
"""The thread did other things meanwhile (`asyncio.sleep`): it takes no time of the thread."""

# From here on numbers are no calls: they say something of a call, of objects or of threads.
FIRST_NOTE = 0xFF00
NOTE_PHYSICAL = 0xFF00
"""Amount: bytes that the call with the same start exchanged with the system."""
NOTE_EXPECTED = 0xFF01
"""End: the earliest at which the limits let the call with the same start return."""
NOTE_ARRIVED = 0xFF02
"""End: when the data arrived for which the call with the same start waited (TCP)."""
NOTE_OBJECT = 0xFF10
"""The object exists since `start`; `amount` bytes of text follow in the next slots. Later ones say more."""
NOTE_CLOSED = 0xFF11
"""The object was closed at `start`."""
NOTE_THREAD = 0xFF12
"""Text about the thread of this chunk, as of an object; the object is the number of its parent."""
NOTE_ISLAND = 0xFF13
"""Text about the island with the number of the object."""
NOTE_ENTERED = 0xFF14
"""From `start` on the thread is in the island with the number of the object."""


class Api:
    """A call that is recorded.

    :ivar type: and `subtype` are those in profiles.
    :ivar resource: what it uses of the limits; "" for none.
    :ivar unit: of amounts: B, s (recorded in ns), or "" for counts.
    :ivar blocking: its duration says nothing of its own: somebody else decides when it returns.
    """

    __slots__ = ("blocking", "name", "resource", "subtype", "type", "unit")

    def __init__(self, name: str, type: str, subtype: str, resource: str, unit: str, blocking: bool) -> None:
        self.name = name
        self.type = type
        self.subtype = subtype
        self.resource = resource
        self.unit = unit
        self.blocking = blocking


KINDS = ("tcp", "udp", "unix", "net")
"""Kinds of sockets, in the order of the four numbers that the calls on sockets have; `net` is any other."""


def _of_kinds(name: str, verb: str, resource: str, unit: str, blocking: bool) -> list[Api]:
    """The same call on each kind of socket; `{}` in the resource stands for the kind."""
    return [Api(name, "net", f"{kind}-{verb}", resource.format(kind), unit, blocking) for kind in KINDS]


APIS = (
    Api("", "", "", "", "", False),
    Api("file.open", "disk", "filesopened", "filesopened", "", False),
    Api("file.read", "disk", "fileread", "fileread", "B", False),
    Api("file.readline", "disk", "fileread", "fileread", "B", False),
    Api("file.readlines", "disk", "fileread", "fileread", "B", False),
    Api("file.next", "disk", "fileread", "fileread", "B", False),
    Api("file.write", "disk", "filewrite", "filewrite", "B", False),
    Api("file.writelines", "disk", "filewrite", "filewrite", "B", False),
    Api("file.flush", "disk", "filewrite", "filewrite", "B", False),
    Api("file.close", "disk", "filewrite", "filewrite", "B", False),
    Api("os.read", "disk", "fileread", "fileread", "B", True),
    Api("os.write", "disk", "filewrite", "filewrite", "B", True),
    Api("time.sleep", "sleep", "sleep", "sleep", "s", False),
    Api("asyncio.sleep", "sleep", "asyncio", "", "s", False),
    Api("random.bytes", "random", "random", "random", "B", False),
    Api("thread.start", "thread", "start", "events", "", False),
    Api("thread.join", "wait", "join", "", "", True),
    Api("timer.start", "timer", "start", "events", "", False),
    Api("timer.cancel", "timer", "cancel", "", "", False),
    Api("lock.acquire", "lock", "acquire", "lock", "", True),
    Api("wait.poll", "wait", "poll", "", "", True),
    Api("wait.process", "wait", "process", "", "", True),
    Api("exit", "exit", "exit", "exit", "", False),
    *_of_kinds("socket.connect", "connect", "outsockets", "", True),
    *_of_kinds("socket.accept", "accept", "insockets", "", True),
    *_of_kinds("socket.send", "send", "{}send", "B", True),
    *_of_kinds("socket.recv", "recv", "{}recv", "B", True),
    *_of_kinds("socket.close", "close", "", "", False),
    *_of_kinds("ssl.handshake", "handshake", "", "", True),
)
"""All of them: the position is the number in a record."""

COUNTED = ("filesopened", "outsockets", "insockets", "events")
"""Resources of which a limit says how many may be held at a time; of others it says how much per second."""

NUMBERS = {api.name: number for number, api in reversed(list(enumerate(APIS)))}
"""Number of the first API of each name."""


def text(facts: dict[str, str]) -> bytes:
    """Facts as they stand in a recording: keys and values in turn, each ended by a zero byte."""
    joined = "".join(f"{key}\0{value}\0" for key, value in facts.items())
    return joined.encode("utf-8", "surrogatepass")


def facts(data: bytes) -> dict[str, str]:
    """What :func:`text` made text of; an incomplete pair at the end is left out."""
    try:
        decoded = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # damaged
        decoded = data.decode("utf-8", "replace")
    words = decoded.split("\0")
    return dict(zip(words[:-1:2], words[1:-1:2]))  # noqa: B905 - Python 3.9 knows no `strict`
