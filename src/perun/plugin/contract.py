"""Whether a class keeps the contract of its family (see :mod:`perun.plugin.api`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perun.plugin.api import Vcs

METHODS: Mapping[str, str] = {
    "collect": "collect",
    "postprocess": "process",
    "view": "render",
    "check": "compare",
    "workload": "generate",
}
"""The one method of each family of plugins; a version control system is a class of methods."""


def breach(family: str, plugin: object) -> str:
    """What the plugin's class lacks, as a clause for a message; empty if it keeps the contract."""
    if not isinstance(plugin, type):
        return f"PLUGIN must be a class, not {plugin!r}"
    if family == "vcs":
        return _breach_of_vcs(plugin)
    for attribute in ("name", "help", "short") if family == "check" else ("name", "help"):
        if not isinstance(getattr(plugin, attribute, None), str):
            return f"{plugin.__name__}.{attribute} must be text"
    if not callable(getattr(plugin, METHODS[family], None)):
        return f"{plugin.__name__} has no method {METHODS[family]}"
    return _breach_of_params(plugin)


def takes_context(view: Any) -> bool:
    """Whether the view's `render` takes a context; one that needs none may leave out the argument."""
    import inspect

    try:
        inspect.signature(view.render).bind("profile", "params", "out", "ctx")
    except TypeError:
        return False
    except ValueError:  # what is not written in Python need not tell
        pass
    return True


_SHORT = {
    "fast_check": "FAST",
    "growth": "GROW",
    "integral_comparison": "INT",
    "linear_regression": "LREG",
    "local_statistics": "LOC",
    "polynomial_regression": "PREG",
}
"""Short strings that the manual gives in its own way (3.2.13), and of a check whose name is one word."""


def short_string(name: str) -> str:
    """The first letters of the words of a check's name, in capitals: AAT (manual 8.3).

    Five checks have short strings of their own in the manual (3.2.13): FAST, INT, LREG, LOC and PREG.
    """
    known = _SHORT.get(name.replace("-", "_"))
    return known or "".join(word[0] for word in name.replace("-", "_").split("_") if word).upper()


def _breach_of_params(plugin: type) -> str:
    import dataclasses

    from perun.plugin.params import TYPES, specs

    params = getattr(plugin, "Params", None)
    if not isinstance(params, type) or not dataclasses.is_dataclass(params):
        return f"{plugin.__name__}.Params must be a dataclass"
    for spec in specs(params):
        if spec.type not in TYPES:
            return f"{params.__name__}.{spec.name} has the type {spec.type}, which a parameter cannot have"
    return ""


def _breach_of_vcs(plugin: type) -> str:
    if not issubclass(plugin, Vcs):
        return f"{plugin.__name__} must be a subclass of perun.plugin.api.Vcs"
    missing = ", ".join(sorted(plugin.__abstractmethods__))
    if missing:
        return f"{plugin.__name__} does not define {missing}"
    return "" if isinstance(getattr(plugin, "type", None), str) else f"{plugin.__name__}.type must be text"
