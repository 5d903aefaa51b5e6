"""What becomes of an exception in the code of a plugin: an error that names the plugin, not Perun."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from perun.errors import PerunError, Terminated
from perun.plugin.api import NoProfile
from perun.plugin.loading import describe, is_of_perun


def failure(on: str, error: type[PerunError], problem: BaseException) -> PerunError:
    """The `error` that tells the user in one line what the plugin's code raised.

    :param on: what failed, e.g. `the collector 'mycollector'`.
    """
    return error(
        f"{on} failed: {describe(problem)}",
        "repair the plugin, or ask its authors; perun -vv shows the traceback",
    )


@contextlib.contextmanager
def errors_of(plugin: object, on: str, error: type[PerunError]) -> Iterator[None]:
    """Turn an exception of the plugin's code into a :func:`failure`.

    Errors of Perun pass, and so does all that a plugin of Perun itself raises: that is a bug of Perun. The
    adapters of the manual's documented API are such; they turn what their plugins raise by themselves.
    """
    try:
        yield
    except (PerunError, Terminated, BrokenPipeError, NoProfile):
        raise
    except Exception as problem:
        module = sys.modules.get(type(plugin).__module__)
        if module is None or is_of_perun(module.__file__ or ""):
            raise
        raise failure(on, error, problem) from problem
