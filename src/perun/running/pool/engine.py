"""The one place that knows dask.distributed:

its client, its workers, and tasks that are bound to one of them.
"""

from __future__ import annotations

import logging
import queue
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun import __version__
from perun.core.errors import ConfigError, PerunError, PluginError, RemoteError
from perun.core.extras import install_command
from perun.running.pool import places, ssh, worker
from perun.running.pool.places import DaskPlace, LocalPlace, Place, SshPlace

if TYPE_CHECKING:
    from distributed import Client

RESOURCE: Final = "bench"
"""The resource of dask that workers must have: one, as one job at a time is given to each."""
ASKING: Final = 30.0
"""Seconds that a worker has for a short answer."""
QUIET: Final = {
    # No page with the state of the workers is served.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    # A lease says where a job runs; jobs are not moved behind it.
    "distributed.scheduler.work-stealing": False,
    # Commits and workloads are sent as they are, however large.
    "distributed.admin.large-graph-warning-threshold": 1 << 62,
    "distributed.admin.log-format": "%(message)s",
}
_SAME_DASK: Final = (
    "install the same release of dask and distributed here, for the scheduler and on all machines"
)
NOWHERE: Final = "127.0.0.1:0"


class Worker(NamedTuple):
    """A worker of the pool: its address, and what its machine says of itself."""

    address: str
    machine: str
    perun: str
    python: str
    machine_class: str


class TaskEnd(NamedTuple):
    """A task that has come to its end:

    the token it was submitted with, and what it gave; None if it is lost.
    """

    token: Any
    answer: Any


class PoolEngine:
    """A pool that is connected; use :func:`connected`.

    Where the scheduler cannot be reached for a while, tasks are lost, and :attr:`workers` finds none.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._ended: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
        self._described: dict[str, Worker] = {}
        self._futures: dict[Any, Any] = {}

    def workers(self) -> list[Worker]:
        """The workers that there are now, and have the resource; each is asked once what it is.

        :raises ConfigError: if one has another release of Perun.
        :raises RemoteError: if the scheduler is gone for good.
        """
        if self._client.status in ("closed", "closing"):
            raise RemoteError(f"{self._name}: the scheduler is gone", "start it, then go on with --resume")
        try:
            info = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, RuntimeError, TimeoutError, KeyError, AttributeError):
            return []
        fitting = {address for address, one in info.items() if one.get("resources", {}).get(RESOURCE, 0) >= 1}
        self._described = {key: one for key, one in self._described.items() if key in fitting}
        for address in sorted(fitting - set(self._described)):
            told = self.ask(address, worker.describe)
            if told is not None:
                self._described[address] = _worker(address, told)
        return sorted(self._described.values())

    def without_resource(self) -> int:
        """How many workers there are that lack the resource, so that they get no job."""
        with suppress(OSError, RuntimeError, TimeoutError, KeyError, AttributeError):
            info = self._client.scheduler_info(n_workers=-1)["workers"]
            return sum(one.get("resources", {}).get(RESOURCE, 0) < 1 for one in info.values())
        return 0

    def ask(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of a worker to a short question, whether it has a job or not; None if there is none."""
        try:
            answers = self._client.run(function, *arguments, workers=[address], on_error="return")
        except (OSError, RuntimeError, TimeoutError, ValueError, KeyError):
            return None
        answer = answers.get(address)
        if isinstance(answer, Exception) and not isinstance(answer, (OSError, PerunError)):
            # Perun raises none of these: dask could not even call it there.
            raise ConfigError(
                f"the worker {address} cannot run Perun: {_text(answer)}",
                f"install Perun {__version__} and dask.distributed {worker.dask_release()} for its Python",
            )
        return None if isinstance(answer, OSError) else _raised(answer)

    def call(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of a worker that may take long and gets no job meanwhile; None if it is lost."""
        future = self._submitted(address, function, arguments)
        while True:
            # Whatever is raised here, a cancelled task where the scheduler is gone too, its status tells.
            with suppress(Exception):
                future.result(timeout=1)
            if future.status != "pending":
                return self._answer(future)
            if address not in {one.address for one in self.workers()}:
                future.cancel()
                return None

    def submit(self, address: str, function: Callable[..., Any], token: Any, *arguments: Any) -> None:
        """Run the function on that worker; :meth:`next_ended` tells its end."""
        future = self._submitted(address, function, arguments)
        self._futures[token] = future
        future.add_done_callback(lambda done: self._ended.put(TaskEnd(token, done)))

    def _submitted(self, address: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        return self._client.submit(
            function,
            *arguments,
            workers=[address],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            pure=False,
        )

    def next_ended(self, seconds: float) -> TaskEnd | None:
        """The next task that came to its end, waited for so long; None if there is none."""
        try:
            token, future = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None
        if self._futures.get(token) is not future:
            return self.next_ended(0)  # it was dropped
        del self._futures[token]
        return TaskEnd(token, self._answer(future))

    def drop(self, token: Any) -> None:
        """Take a task back: what becomes of it is not told any more."""
        future = self._futures.pop(token, None)
        if future is not None:
            with suppress(Exception):  # whatever state the scheduler is in
                future.cancel()

    def stop(self, batch: str) -> None:
        """Take all tasks back, and end what runs of them."""
        for token in list(self._futures):
            self.drop(token)
        with suppress(Exception):  # it is the end, and no worker must keep it from coming
            self._client.run(worker.stop, batch, on_error="ignore")

    def tell_all(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a short function on all workers that can be reached."""
        with suppress(Exception):  # what is left is removed when it is old
            self._client.run(function, *arguments, on_error="ignore")

    def _answer(self, future: Any) -> Any:
        """What the task gave; None where it was lost on its way, so that it is worth another try."""
        if future.status == "error":
            error = future.exception(timeout=ASKING)
            kind = type(error).__name__
            return (
                None if kind in ("KilledWorker", "CancelledError", "NoValidWorkerError") else _raised(error)
            )
        if future.status != "finished":
            return None
        try:
            return future.result(timeout=ASKING)
        except Exception as problem:  # of any layer of dask: its worker is gone with the answer
            logging.getLogger(__name__).debug("an answer is lost: %s", problem)
            return None


def cannot_take_in(worker: Worker, what: str, problem: OSError) -> RemoteError:
    """The error of a machine that could not write what was sent to it."""
    return RemoteError(
        f"{worker.machine} cannot take in {what}: {problem}",
        "see there that the cache of its user can be written and has space; then go on with --resume",
    )


def _text(problem: Exception) -> str:
    """What an error says that dask sent, which may be the text of another one."""
    return re.sub(r"^\w+\([\"'](.*)[\"']\)$", r"\1", str(problem)) or type(problem).__name__


def _raised(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _worker(address: str, told: dict[str, Any]) -> Worker:
    one = Worker(address, told["machine"], told["perun"], told["python"], told["class"])
    if one.perun != __version__:
        raise ConfigError(
            f"the worker {address} on {one.machine} has Perun {one.perun}, and here it is {__version__}",
            "install the same release on all machines of the pool",
        )
    here = worker.dask_release()
    if told["dask"] != here:
        what = f"the worker {address} on {one.machine} has dask.distributed {told['dask']}"
        raise ConfigError(f"{what}, and here it is {here}", _SAME_DASK)
    return one


@contextmanager
def connected(place: Place, patience: float) -> Iterator[PoolEngine]:
    """A pool to submit tasks to; all that was started for it ends with the block.

    :param patience: seconds to wait for the scheduler, also where it is lost later.
    :raises PluginError: if dask.distributed is not installed.
    :raises RemoteError: if the scheduler cannot be reached.
    """
    distributed, dask = _libraries()
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(QUIET))
        _silence()
        if isinstance(place, LocalPlace):
            client = _local(distributed, place)
        elif isinstance(place, SshPlace):
            client = _over_ssh(distributed, place, patience)
        else:
            client = _client(distributed, place, patience)
        yield PoolEngine(stack.enter_context(client), str(place))


def _libraries() -> tuple[Any, Any]:
    try:
        import dask
        import distributed
    except ImportError:
        raise _missing("dask.distributed") from None
    return distributed, dask


def _missing(library: str) -> PluginError:
    return PluginError(f"a pool needs the library {library}", f"install it: {install_command('pool')}")


@contextmanager
def _local(distributed: Any, place: LocalPlace) -> Iterator[Client]:
    """Workers in this very process, which no port leads to: each job has a process of its own anyway."""
    cluster = distributed.LocalCluster(
        n_workers=place.workers,
        threads_per_worker=1,
        processes=False,
        protocol="inproc://",
        dashboard_address=NOWHERE,
        worker_dashboard_address=NOWHERE,
        scheduler_kwargs={"dashboard": False},
        resources={RESOURCE: 1},
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def _over_ssh(distributed: Any, place: SshPlace, patience: float) -> Iterator[Client]:
    """A scheduler in this process, which only who has its certificates can talk to, and workers by ssh."""
    listed = places.read(place.file)
    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise _missing("cryptography") from None
    cluster = distributed.LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tls://",
        host="127.0.0.1",
        security=security,
        dashboard_address=NOWHERE,
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster, security=security, set_as_default=False) as client:
        port = int(cluster.scheduler_address.rpartition(":")[2])
        with ssh.workers(listed, port, security, patience):
            yield client


@contextmanager
def _client(distributed: Any, place: DaskPlace, patience: float) -> Iterator[Client]:
    security = _certificates(distributed, place) if place.encrypted else None
    # One that could not connect has nothing to close, and says so when it is collected.
    quiet = type("QuietClient", (distributed.Client,), {"__del__": lambda client: None})
    try:
        client = quiet(place.address, timeout=patience, security=security, set_as_default=False)
    except TypeError as problem:  # a call that the scheduler does not know, or knows with other arguments
        what = f"the scheduler {place} is of another release of dask.distributed than here"
        raise ConfigError(f"{what}, {distributed.__version__}: {problem}", _SAME_DASK) from None
    except (OSError, RuntimeError, ValueError) as problem:  # ValueError: an answer that is not encrypted
        raise RemoteError(
            f"the scheduler {place} cannot be reached: {_cause(problem)}",
            "see that it runs, and that it is encrypted if you use dask+tls://, and else not; "
            "e.g. dask scheduler --host 127.0.0.1 --port 8786",
        ) from None
    try:
        told = client.get_versions(check=False)["scheduler"]["packages"]["distributed"]
        if told != distributed.__version__:
            what = (
                f"the scheduler {place} has dask.distributed {told}, and here it is {distributed.__version__}"
            )
            raise ConfigError(what, _SAME_DASK)
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=5)


def _certificates(distributed: Any, place: DaskPlace) -> Any:
    """What the configuration of dask names.

    :raises RemoteError: if it names none, or a file that is none.
    """
    hint = "name certificates in the configuration of dask: distributed.comm.tls; see docs/pool.md"
    security = distributed.Security(require_encryption=True)
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as problem:  # of ssl too
        named = security.get_tls_config_for_role("client")
        files = ", ".join(str(named[key]) for key in ("ca_file", "cert", "key") if named[key])
        raise RemoteError(f"{place}: no certificates can be read from {files}: {problem}", hint) from None
    if context is None:
        raise RemoteError(f"{place}: there are no certificates for an encrypted connection", hint)
    return security


def _cause(problem: BaseException) -> str:
    """What is behind the error of dask, which says only that its time was up."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return str(problem) or type(problem).__name__


def _silence() -> None:
    """Dask logs each lost connection by itself; what matters of these, Perun tells.

    That holds to the end of the process: some of its tasks are only missed when all is taken down.
    """
    # Perun compares the releases that matter.
    warnings.filterwarnings("ignore", message="Mismatched versions found")
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
