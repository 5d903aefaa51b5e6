"""The one adapter that makes plugins written as the manual documents them work unchanged.

Such a plugin is a module without a `PLUGIN` class: a `run.py` with functions for the phases of a collector
or postprocessor (manual 4.2, 5.2), a view that is a click command (6.2), a check that is a generator
function (8.4), or a version control system that is a module of functions (13.1.2).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from perun.core.errors import PluginError
from perun.plugin.loading import FAMILIES


def adapt(family: str, name: str, loaded: object) -> Any:
    """What :class:`~perun.plugin.registry.Registry` returns for a plugin of the documented API.

    :param name: the plugin's name as Python spells it, which its function or command has too.
    :param loaded: the module; of an entry point also the check's function itself, the view's command, or
        a function `(root, environ) -> Vcs`.
    :raises PluginError: if the module does not define what the manual asks for.
    """
    if family == "collect":
        from perun.plugin.legacy.units import LegacyCollector

        return LegacyCollector(name, _module(loaded))
    if family == "postprocess":
        from perun.plugin.legacy.units import LegacyPostprocessor

        return LegacyPostprocessor(name, _module(loaded))
    if family == "view":
        from perun.plugin.legacy.functions import LegacyView

        return LegacyView(name, loaded)
    if family == "check":
        from perun.plugin.legacy.functions import LegacyCheck

        return LegacyCheck(name, loaded)
    if family == "vcs":
        from perun.plugin.legacy.functions import legacy_vcs

        return loaded if callable(loaded) else legacy_vcs(name, _module(loaded))
    raise PluginError(f"{loaded!r} has no PLUGIN: the class of the {FAMILIES[family]}")


def _module(loaded: object) -> ModuleType:
    if not isinstance(loaded, ModuleType):
        raise PluginError(f"{loaded!r} is neither a plugin class nor a module")
    return loaded
