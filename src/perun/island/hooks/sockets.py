"""Sockets, also those of `ssl`, and waiting for them."""

from __future__ import annotations

import sys
from time import monotonic_ns

from ..layout import KINDS, NOTE_ARRIVED, NUMBERS, text
from ..recorder.base import Recorder
from ..recorder.rules import (
    ALWAYS,
    BY_KIND,
    CLOSES,
    FIRST_OF_RESULT,
    LENGTH_OF_FIRST,
    LENGTH_OF_RESULT,
    LONG,
    NOTHING,
    OF_SELF,
    ONE,
    ONLY_LONG,
    RAW,
    RESULT,
    WAITS,
    Rule,
)

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from typing import Any


_SEND, _RECV = NUMBERS["socket.send"], NUMBERS["socket.recv"]
_TCP_INFO, _TCP_INFO_SIZE, _LAST_DATA = 11, 104, slice(52, 56)
"""`struct tcp_info` of Linux: where `tcpi_last_data_recv` is, in ms."""
_SENDS = {"send": RESULT, "sendall": LENGTH_OF_FIRST, "sendto": RESULT, "sendmsg": RESULT}
_RECVS = {
    "recv": LENGTH_OF_RESULT,
    "recv_into": RESULT,
    "recvfrom": FIRST_OF_RESULT,
    "recvfrom_into": FIRST_OF_RESULT,
    "recvmsg": FIRST_OF_RESULT,
    "recvmsg_into": FIRST_OF_RESULT,
}
_TLS_SENDS = {"send": RESULT, "sendall": LENGTH_OF_FIRST, "sendto": RESULT, "write": RESULT}
_TLS_RECVS = {"recv": LENGTH_OF_RESULT, "recv_into": RESULT, "read": LENGTH_OF_RESULT}


def patch_socket(recorder: Recorder, module: Any) -> None:
    """Record the sockets of the module `socket`."""
    owner = module.socket
    describe = _Describing(recorder, module)
    rules = OF_SELF | BY_KIND | WAITS
    for name, amount in _SENDS.items():
        recorder.patch(owner, name, Rule(_SEND, amount, rules | RAW, describe))
    for name, amount in _RECVS.items():
        recorder.patch(owner, name, Rule(_RECV, amount, rules | RAW, describe.arrival))
    for name in ("connect", "connect_ex"):
        recorder.patch(owner, name, Rule(NUMBERS["socket.connect"], ONE, rules | ALWAYS, describe.connected))
    accepted = Rule(NUMBERS["socket.accept"], ONE, rules | ALWAYS, describe.accepted)
    recorder.patch(owner, "accept", accepted)
    recorder.patch(owner, "_real_close", Rule(NUMBERS["socket.close"], NOTHING, OF_SELF | BY_KIND | CLOSES))


def patch_ssl(recorder: Recorder, module: Any) -> None:
    """Record the sockets of the module `ssl`: what the program sends and gets, not what is on the wire."""
    owner = module.SSLSocket
    import socket

    describe = _Describing(recorder, socket)
    rules = OF_SELF | BY_KIND | WAITS
    for name, amount in _TLS_SENDS.items():
        recorder.patch(owner, name, Rule(_SEND, amount, rules, describe))
    for name, amount in _TLS_RECVS.items():
        recorder.patch(owner, name, Rule(_RECV, amount, rules, describe.arrival))
    recorder.patch(owner, "do_handshake", Rule(NUMBERS["ssl.handshake"], ONE, rules, describe))


def patch_select(recorder: Recorder, module: Any) -> None:
    """Record waiting by `select.select`; that by `poll` and `epoll` only where `selectors` uses them."""
    recorder.patch(module, "select", Rule(NUMBERS["wait.poll"], NOTHING, ONLY_LONG | WAITS))


def patch_selectors(recorder: Recorder, module: Any) -> None:
    """Record waiting by the module `selectors`, as the loop of asyncio does; the amount counts events."""
    for name in ("SelectSelector", "_PollLikeSelector", "PollSelector", "EpollSelector"):
        owner = getattr(module, name, None)
        if owner is not None and "select" in vars(owner):
            recorder.patch(owner, "select", Rule(NUMBERS["wait.poll"], LENGTH_OF_RESULT, ONLY_LONG | WAITS))


class _Describing:
    """Names sockets when they are used first.

    The name is that of the peer, or of the own end where the peer connected to it: neither has a number that
    is another one in each run.
    """

    def __init__(self, recorder: Recorder, module: Any) -> None:
        self._recorder = recorder
        self._module = module

    def __call__(self, sock: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        return self._recorder.number_of(sock) or self._known(sock, self._peer(sock) or self._own(sock))

    def arrival(self, sock: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        """After a `recv`: also note when the data arrived, where it waited."""
        number = self(sock, arguments, named, result, start)
        time = monotonic_ns()
        if result is not None and time - start >= LONG and self._kind(sock) == "tcp":
            info = sock.getsockopt(self._module.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_SIZE)
            if len(info) >= _LAST_DATA.stop:
                ago = int.from_bytes(info[_LAST_DATA], sys.byteorder)
                arrived = max(time - ago * 1_000_000, start)
                self._recorder.event(NOTE_ARRIVED, number, start, arrived, 0, 0)
        return number

    def connected(self, sock: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        """After `connect`: the address that was asked for is the name, also where nobody is there."""
        address = arguments[0] if arguments else named.get("address", "")
        number = self._recorder.number_of(sock)
        if number:
            self._recorder.say(number, start, name=_shown(address), own=self._own(sock))
            return number
        return self._known(sock, _shown(address))

    def accepted(self, sock: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        """After `accept`: the new socket is named by the address at which it was accepted."""
        if isinstance(result, tuple) and len(result) == 2 and hasattr(result[0], "fileno"):
            self._known(result[0], self._own(sock), peer=_shown(result[1]), accepted="yes")
        return self(sock, arguments, named, result, start)

    def _known(self, sock: Any, name: str, **facts: str) -> int:
        recorder, kind = self._recorder, self._kind(sock)
        more = text({"own": self._own(sock), **facts}).decode("utf-8", "surrogatepass")
        number = recorder.new_object(kind, name, monotonic_ns(), more)
        recorder.track(sock, number, KINDS.index(kind), True)
        return number

    def _kind(self, sock: Any) -> str:
        module = self._module
        if sock.family == getattr(module, "AF_UNIX", None):
            return "unix"
        if sock.family in (module.AF_INET, getattr(module, "AF_INET6", None)):
            plain = sock.type & ~(getattr(module, "SOCK_NONBLOCK", 0) | getattr(module, "SOCK_CLOEXEC", 0))
            return {module.SOCK_STREAM: "tcp", module.SOCK_DGRAM: "udp"}.get(plain, "net")
        return "net"

    def _peer(self, sock: Any) -> str:
        try:
            return _shown(sock.getpeername())
        except OSError:
            return ""

    def _own(self, sock: Any) -> str:
        try:
            return _shown(sock.getsockname())
        except OSError:
            return ""


def _shown(address: Any) -> str:
    """An address as text: HOST:PORT, or the path of a Unix socket."""
    if isinstance(address, tuple) and len(address) >= 2:
        host = str(address[0])
        return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
    if isinstance(address, bytes):
        return address.decode("utf-8", "replace").replace("\0", "@")
    return str(address)
