"""Names that the manual documents under `perun.utils`; Perun itself does not use them."""

from __future__ import annotations

from perun.core.errors import UsageError
from perun.plugin.loading import FAMILIES
from perun.plugin.params import nearest


def get_supported_module_names(package: str) -> list[str]:
    """The names of all plugins of one family, built in or installed, sorted (manual 4.2 and others).

    Nothing is registered here any more: plugins are found in their folders.

    :param package: `collect`, `postprocess`, `view`, `check`, `workload` or `vcs`.
    :raises UsageError: where there is no such family.
    """
    from perun.plugin.registry import Registry

    if package not in FAMILIES:
        raise UsageError(f"there are no plugins of the family {package!r}", nearest(package, FAMILIES))
    return Registry().names(package)
