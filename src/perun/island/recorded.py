"""What a recording is made of: threads, objects and calls.

Times are nanoseconds of CLOCK_MONOTONIC; what is not known is -1.
"""

from __future__ import annotations

from typing import NamedTuple


class Thread(NamedTuple):
    """A thread of the process; its number is the position in `Recording.threads`.

    :ivar native: its number in the system.
    :ivar parent: number of the thread that started it.
    :ivar destroyed: when it ended; -1 where it lived as long as the process.
    :ivar sampled: when the next two were read: at its end, or at most 0.1 s before its last recorded call.
    :ivar cpu: ns that it ran.
    :ivar run_queue: ns that it was ready to run and had no CPU.
    :ivar island: number of the island that it started in.
    """

    number: int
    name: str
    native: int
    parent: int
    created: int
    destroyed: int
    sampled: int
    cpu: int
    run_queue: int
    island: int


class Object(NamedTuple):
    """A file or socket; its number is the position in `Recording.objects`.

    :ivar kind: file, pipe, terminal, device; tcp, udp, unix, net.
    :ivar name: absolute path, `<stdout>`; HOST:PORT of the peer, or of the own end where the peer connected.
    :ivar serial: 1 for the first object of this kind and name in the process, then 2, ...
    :ivar closed: -1 where it was open at the end.
    :ivar facts: what else is known: mode, encoding, local and remote address.
    """

    number: int
    kind: str
    name: str
    serial: int
    opened: int
    closed: int
    facts: dict[str, str]


class Call(NamedTuple):
    """A call that a thread made.

    :ivar api: position in `layout.APIS`.
    :ivar end: -1 where it had not returned when the process ended.
    :ivar object: position in `Recording.objects`.
    :ivar amount: as the program counts: characters of text files, bytes, ns of sleeps, 1 for counts.
    :ivar physical: bytes that the process exchanged with the system in it; buffers make it less or more than
        the amount.
    :ivar expected: the earliest end that the limits allow.
    :ivar arrived: when the data for which a TCP `recv` waited arrived.
    :ivar flags: of `layout`: RAISED, CONCURRENT.
    """

    thread: int
    island: int
    api: int
    start: int
    end: int
    object: int
    amount: int
    physical: int
    expected: int
    arrived: int
    flags: int
