"""The errors that plugins raise (docs/plugins.md); Perun itself has them from :mod:`perun.core.errors`."""

from perun.core.errors import *  # noqa: F403
