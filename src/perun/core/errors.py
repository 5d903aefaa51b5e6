"""Every error that Perun raises on purpose, and the exit code each ends the program with.

A `PerunError` is raised beside the code that detects the trouble. Its message names the file, key or
option that is wrong; its hint says what to do next. `perun.cli` prints both and exits, in one place.
Anything else that escapes is a bug in Perun and is reported as one.
"""

from __future__ import annotations

from typing import Final

EXIT_CODES: Final[dict[int, str]] = {
    0: "done",
    1: "`perun check --fail-on` found a change that it shall fail on",
    2: "wrong usage: an unknown command or option, or a value the option does not take",
    3: "not inside a Perun repository, or the repository cannot be opened",
    4: "the version control system refused: unknown revision, broken repository, failed checkout",
    5: "the configuration is wrong: unknown key, wrong value, or not YAML",
    6: "a profile, object or index is damaged, missing, or of another commit",
    7: "another Perun holds the lock of the repository",
    8: "the profiled command, a `pre_run` command or a whole job failed; nothing of it was stored",
    9: "a collector, postprocessor, view, check or version control plugin is missing or cannot run here",
    10: "`fsck` found damage",
    11: "the repository is not trusted, and the command runs code that it names; see `perun trust`",
    12: "`--fail-on inconclusive`: nothing got worse for certain, but something could not be decided; `perun "
    "bisect`: the ends do not differ, or not for certain",
    13: "`--fail-on`: nothing was compared, so that nothing can be said",
    14: "a remote cannot be reached, refuses, or holds what cannot be read",
    70: "a bug in Perun itself; a report was written",
    129: "the terminal was closed (SIGHUP); otherwise as 130",
    130: "interrupted by Ctrl-C; what a collector recorded until then is a pending profile marked incomplete",
    141: "the reader of the output went away (broken pipe)",
    143: "terminated (SIGTERM); otherwise as 130",
}

NOT_DECIDED: Final = 12


class Terminated(SystemExit):
    """The system, or another program, asks Perun to end by SIGTERM or SIGHUP.

    What catches `SystemExit`, since code of plugins may call `sys.exit`, lets this pass.
    """


class PerunError(Exception):
    """Base of all errors that are the user's or the environment's, never a bug of Perun.

    :param message: what is wrong, naming the file, key or option.
    :param hint: what to do next; may be empty.
    """

    exit_code: int = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PerunError):
    """The command line is well formed but asks for something that makes no sense."""

    exit_code = 2


class NotPerunRepository(PerunError):
    """There is no usable `.perun` at or above the given folder."""

    exit_code = 3


class ForeignRepository(NotPerunRepository):
    """The `.perun` at or above the given folder belongs to another user, and is not used."""


class NotTrusted(PerunError):
    """Something that the repository names would have run, and the user has not said that he trusts it."""

    exit_code = 11


class VersionControlError(PerunError):
    """The wrapped version control system refused or failed."""

    exit_code = 4


class NoHead(VersionControlError, ValueError):
    """There is no current version. The documented function for it raises a `ValueError` (manual 13.1.1)."""


class ConfigError(PerunError):
    """A configuration file or value is wrong."""

    exit_code = 5


class ProfileError(PerunError):
    """A profile is not in the format of the manual's chapter 2, or belongs to another minor version."""

    exit_code = 6


class DamagedStore(ProfileError):
    """An object, index or other file of the store does not hold what its name or checksum promises."""


class ProfileNotFound(ProfileError):
    """No profile answers to the given tag, name or path."""


class LockTimeout(PerunError):
    """Another process holds the lock and did not release it in time."""

    exit_code = 7


class JobFailed(PerunError):
    """The measured command, or a command that prepares it, failed; nothing was stored."""

    exit_code = 8


class RemoteError(PerunError):
    """A place where a team keeps its profiles cannot be reached, refuses, or holds what cannot be read."""

    exit_code = 14


class PluginError(PerunError):
    """A plugin is unknown, not allowed, or does not keep its contract."""

    exit_code = 9


class CollectorUnavailable(PluginError):
    """The collector cannot run here; raised before the workload starts. The hint installs what is missing."""


class NoProfile(Exception):
    """A collector was asked for something else than a profile, and has told it by `ctx.answer`."""
