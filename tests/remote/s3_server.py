"""An object store that speaks S3, as a process of its own: the server of moto, with a lock around it.

It prints the port that it listens on, and ends when its standard input does, so that it never outlives who
started it. What it lacks is that conditions hold between requests at once, which S3 promises: it looks first
and writes then. So it does one request after the other, each after its body has come wholly, so that a slow
client holds up nobody else.
"""

import io
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from servers import BUCKET
from werkzeug.serving import WSGIRequestHandler, make_server

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


def one_at_a_time(application: Wsgi) -> Wsgi:
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(size)
        if len(body) < size:  # the client went away
            start_response("400 Bad Request", [])
            return []
        environ["wsgi.input"] = io.BytesIO(body)
        with lock:
            return [b"".join(application(environ, start_response))]

    return answer


def main() -> None:
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(BUCKET, "us-east-1")
    server = make_server(
        "127.0.0.1", 0, one_at_a_time(DomainDispatcherApplication(create_backend_app)), threaded=True,
        request_handler=Quiet
    )  # fmt: skip
    print(server.port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
