"""Uses sockets, threads, locks, timers, sleeps, processes and asyncio, and prints what it sees."""

# ruff: noqa: RUF059 - how files are opened is what is tested here

import _thread
import asyncio
import http.server
import inspect
import io
import os
import pickle
import random
import secrets
import select
import selectors
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe, Process

EXACT = len(sys.argv) > 2


def error(function, *arguments, **named):
    """What the call raises."""
    try:
        return function(*arguments, **named)
    except BaseException as problem:
        return type(problem).__name__, str(problem)


print("sockets")
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]


def serve():
    """Answer two connections."""
    for _ in range(2):
        connection, peer = server.accept()
        with connection:
            while data := connection.recv(100):
                connection.sendall(data.upper())


thread = threading.Thread(target=serve, name="server")
thread.start()
clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
for number, client in enumerate(clients):
    print(
        client.send(b"a" * (number + 1)),
        client.recv(10),
        client.sendall(b"b"),
        client.recv_into(bytearray(5)),
    )
    with client.makefile("rw") as file:
        print(file.write("line\n"), file.flush(), file.readline())
    print(
        type(client), isinstance(client, socket.socket), error(client.recv), error(client.send, "text"),
        error(client.recv, -1)
    )  # fmt: skip
    client.close()
    print(client.fileno(), error(client.send, b"x"))
thread.join()
server.close()
print(error(socket.create_connection, ("127.0.0.1", port)))
one, two = socket.socketpair()
print(
    one.send(b"pair"), two.recv(2, socket.MSG_PEEK), two.recvmsg(10)[0], one.sendmsg([b"a", b"b"]),
    two.recvfrom(5)
)  # fmt: skip
two.settimeout(0.01)
print(
    error(two.recv, 1), two.gettimeout(), one.setblocking(False), error(one.recv, 1),
    select.select([one], [two], [], 0)[1] == [two]
)  # fmt: skip
one.close(), two.close()
datagram, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
datagram.bind(("127.0.0.1", 0))
print(
    other.sendto(b"datagram", datagram.getsockname()), datagram.recvfrom(100)[0], EXACT and socket.socket.send
)
datagram.close(), other.close()
print(EXACT and error(socket.socket.send, 1, b""), inspect.signature(socket.socket.makefile))
duplicate = socket.socket()
copy = duplicate.dup()
print(duplicate.detach() > 2, copy.family, error(pickle.dumps, copy), copy.close())
print(error(ssl.create_default_context().wrap_socket, socket.socket(), server_hostname=""))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " + self.path.encode())

    def log_message(self, *arguments):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
    threading.Thread(target=web.serve_forever, daemon=True).start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    print(opener.open(f"http://127.0.0.1:{web.server_port}/x").read())
    web.shutdown()

print("time")
start = time.monotonic()
print(
    time.sleep(0.01), time.monotonic() - start >= 0.01, error(time.sleep, -1), error(time.sleep, "x"),
    error(time.sleep), EXACT and time.sleep
)  # fmt: skip
print(
    pickle.loads(pickle.dumps(time.sleep)) is time.sleep,
    time.sleep.__doc__[:20],
    len(os.urandom(5)),
    error(os.urandom, -1),
)
print(
    len(secrets.token_bytes(7)),
    uuid.uuid4().version,
    0 <= random.SystemRandom().random() < 1,
    random.Random(1).random(),
)


async def work():
    """Sleep, and talk to a server."""

    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(b"asynchronous\n")
    found = await reader.read()
    writer.close()
    listening.close()
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))
    return found, await asyncio.sleep(0, "result"), inspect.iscoroutinefunction(asyncio.sleep)


print(asyncio.run(work()), error(asyncio.run, asyncio.sleep("x")))

print("threads")
lock, condition, done = threading.Lock(), threading.Condition(), threading.Event()
print(
    lock.acquire(), lock.acquire(timeout=0.01), lock.acquire(False), lock.release(), error(lock.release),
    lock.locked(), type(lock)
)  # fmt: skip
with lock, condition:
    print(condition.wait(0.01), done.wait(0.01), lock.locked())
timer = threading.Timer(0.01, done.set)
timer.start()
print(done.wait(5), timer.join(), threading.Timer(5, done.set).cancel())
print(
    [
        thread.name
        for thread in threading.enumerate()
        if "serve" not in thread.name and "process" not in thread.name
    ]
)


def fail():
    """Fail in a thread."""
    raise ValueError("in a thread")


sys.stderr = io.StringIO()
failing = threading.Thread(target=fail)
failing.start()
failing.join()
told, sys.stderr = sys.stderr.getvalue(), sys.__stderr__
print([line for line in told.splitlines() if "~" not in line and "^" not in line])
with ThreadPoolExecutor(3) as pool:
    print(sum(pool.map(lambda number: number * number, range(10))), threading.active_count() > 1)
ready = _thread.allocate_lock()
ready.acquire()
_thread.start_new_thread(ready.release, ())
print(
    ready.acquire(timeout=5),
    error(_thread.start_new_thread, 1, ()),
    error(_thread.start_new_thread, print),
    error(threading.Thread(target=1).join),
)

print("processes")
here, there = Pipe()


def child(end):
    """Talk to the parent."""
    end.send(["from the child"])


process = Process(target=child, args=(there,))
process.start()
print(here.recv(), process.join(), process.exitcode)
while len(os.listdir("/proc/self/task")) > 1:  # Python 3.12 warns of a fork beside threads that still end
    time.sleep(0.001)
number = os.fork()
if not number:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), error(os.waitpid, -1, 0))
signal.signal(signal.SIGALRM, lambda *arguments: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.02)
print(time.sleep(0.04))
chooser = selectors.DefaultSelector()
print(chooser.select(0.01), type(chooser).__name__, chooser.close())
try:
    sys.exit(3)
finally:
    print("the end")
