"""Every configuration key: what it is called, holds, means and defaults to (manual 7.3, 8.3 and 11.2).

The table is the only list of keys: look-up, checks of values, the documented default files and the
help of the command line are all made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from perun.core.errors import ConfigError


class Scope(Enum):
    """Where a key is looked up (manual 11.1)."""

    LOCAL = "local-only"
    RECURSIVE = "recursive"
    GATHERED = "gathered"
    SHARED = "shared-only"


class KeyKind(Enum):
    """What a key holds; the value says it in messages."""

    TEXT = "text"
    BOOL = "true or false"
    NUMBER = "a number"
    REGEX = "a regular expression"
    CHOICE = "one of"
    CHOICES = "one, or a list, of"
    TEXTS = "a list of texts"
    UNITS = "a list of units, each with a `name` and its `params`"
    RULES = "a list of mappings"
    SETTINGS = "a mapping of settings"
    IGNORED = "anything; it has no effect"


class ConfigKey(NamedTuple):
    """One row of the table.

    `default` is the value if no file sets the key; `example` is shown in generated files where there
    is no telling default. `choices` belong to the kinds that choose. `fields` are the known keys of each
    mapping of a list of rules, `required` those that must be there; `closed` forbids any others.
    """

    name: str
    kind: KeyKind
    scope: Scope
    default: Any
    help: str
    example: Any = None
    choices: tuple[str, ...] = ()
    fields: Mapping[str, KeyKind] = {}
    required: tuple[str, ...] = ()
    closed: bool = False

    @property
    def expected(self) -> str:
        """What the key holds, for messages and help."""
        return f"{self.kind.value} {', '.join(self.choices)}" if self.choices else self.kind.value


TRUE: Final = frozenset(("true", "yes", "on", "1", "y", "t"))
FALSE: Final = frozenset(("false", "no", "off", "0", "n", "f"))
"""Spellings of the two truth values, in lower case; any case is accepted."""

SETTINGS_SECTION: Final = "degradation"
"""Section in which a mapping under any other name holds the settings of the check of that name."""

ALIASES: Final[Mapping[str, str]] = {"degradation.strategy": "degradation.strategies"}
"""Old spellings, accepted with a warning."""

_GENERATORS: Final[list[dict[str, Any]]] = [
    {"id": "basic_strings", "type": "string", "min_len": 8, "max_len": 128, "step_len": 8},
    {"id": "basic_integers", "type": "integer", "min_range": 100, "max_range": 10000, "step": 200},
    {"id": "basic_files", "type": "textfile", "min_lines": 10, "max_lines": 10000, "step": 1000},
]
_SORT_KEYS: Final = ("realpath", "type", "time", "cmd", "args", "workload", "collector", "checksum", "source")
_OLD_SORT_KEYS: Final = ("postprocessors", "stem", "copy", "label", "exitcode")

_ROWS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "vcs.type", KeyKind.TEXT, Scope.LOCAL, "git",
        "Type of the wrapped version control system: git, tagit (snapshots of a folder), svs (a folder with "
        "one version), or the name of a plugin.",
    ),
    ConfigKey(
        "vcs.url", KeyKind.TEXT, Scope.LOCAL, "..",
        "Folder of the wrapped repository, i.e. the one that holds `.git`. A relative path starts at the "
        "`.perun` folder.",
    ),
    ConfigKey(
        "vcs.main_branch", KeyKind.TEXT, Scope.LOCAL, "",
        "Branch that `perun compare` takes for the main one: its merge base with HEAD is the base. Where "
        "empty, the first that there is of `origin/HEAD`, `main`, `master`, `origin/main`, `origin/master`.",
        example="main",
    ),
    ConfigKey(
        "store.url", KeyKind.TEXT, Scope.LOCAL, "",
        "Database that holds the profiles and the statistics, if they are not files of `.perun`: `sqlite` "
        "(a file there), `sqlite:///PATH` or `postgresql://HOST/DATABASE`. `perun init --store` sets it.",
        example="sqlite",
    ),
    ConfigKey(
        "remotes", KeyKind.RULES, Scope.LOCAL, [],
        "Places where the team keeps its profiles; each has a name and a url. `perun remote` lists and "
        "changes them, `perun push` and `perun pull` use them.",
        example=[{"name": "team", "url": "file:///srv/perf"}],
        fields={"name": KeyKind.TEXT, "url": KeyKind.TEXT}, required=("name", "url"), closed=True,
    ),
    ConfigKey(
        "general.paging", KeyKind.CHOICE, Scope.RECURSIVE, "only-log",
        "Whose output is paged: that of `perun log`, of `perun status`, of both or of none. The option "
        "`--no-pager` overrides it.",
        choices=("always", "only-log", "only-status", "never"),
    ),
    ConfigKey(
        "general.editor", KeyKind.TEXT, Scope.RECURSIVE, "vim",
        "Editor for files of the configuration; called with the name of the file.",
    ),
    ConfigKey(
        "format.status", KeyKind.TEXT, Scope.RECURSIVE,
        "| %collector% | %command% | %value% | %difference% | %age% |",
        "Columns of `perun status`: text with the tags %command% (cmd, args and workload), %value%, "
        "%difference% (from the nearest ancestor), %age%, %type%, %cmd%, %args%, %workload%, %collector%, "
        "%time%, %source%, %postprocessors%, %checksum%.",
    ),
    ConfigKey(
        "format.shortlog", KeyKind.TEXT, Scope.RECURSIVE,
        "%checksum:6% (%stats%) %value:21% %difference% %desc% %changes%",
        "Line of `perun log --short`: text with the tags %checksum%, %stats%, %value%, %difference% (from "
        "the nearest ancestor), %changes%, %desc%, %date%, %author%, %email%, %parents%; `:number` in a tag "
        "shortens it.",
    ),
    ConfigKey(
        "format.output_profile_template", KeyKind.TEXT, Scope.RECURSIVE,
        "%collector%-%cmd%-%args%-%workload%-%date%",
        "Name of a new profile: text with the tags %collector%, %postprocessors%, %<unit>.<param>%, %cmd%, "
        "%args%, %workload%, %type%, %date%, %origin%, %counter%.",
    ),
    ConfigKey(
        "format.sort_profiles_by", KeyKind.CHOICES, Scope.RECURSIVE, "time",
        "Attribute of profiles, or a list of them, by which `perun status` sorts.",
        choices=_SORT_KEYS + _OLD_SORT_KEYS,
    ),
    ConfigKey(
        "cmds", KeyKind.TEXTS, Scope.LOCAL, [],
        "Commands that are profiled: executables or scripts, best without arguments and workloads.",
        example=["./build/program"],
    ),
    ConfigKey(
        "args", KeyKind.TEXTS, Scope.LOCAL, [],
        "Arguments of the profiled commands; each is one configuration of its own.",
        example=["--fast", "-q -O2"],
    ),
    ConfigKey(
        "workloads", KeyKind.TEXTS, Scope.LOCAL, [],
        "Inputs of the profiled commands: further arguments, `< file` or `<< text` for standard input, or "
        "the id of a generator of generators.workload.",
        example=["input.txt", "< input.txt"],
    ),
    ConfigKey(
        "collectors", KeyKind.UNITS, Scope.LOCAL, [],
        "Collectors that measure each configuration; `perun collect --help` lists them.",
        example=[{"name": "time", "params": {"warmup": 3, "repeat": 10}}],
    ),
    ConfigKey(
        "harnesses", KeyKind.UNITS, Scope.LOCAL, [],
        "Harnesses of the suites of named benchmarks, which `perun run matrix` and `perun bench` measure; "
        "without them `--suite` takes all that the project has benchmarks of.",
        example=[{"name": "go", "params": {"packages": "./..."}}],
    ),
    ConfigKey(
        "postprocessors", KeyKind.UNITS, Scope.LOCAL, [],
        "Postprocessors of each new profile, in this order; `perun postprocessby --help` lists them.",
        example=[{"name": "normalizer"}, {"name": "regression_analysis", "params": {"method": "full"}}],
    ),
    ConfigKey(
        "generators.workload", KeyKind.RULES, Scope.GATHERED, _GENERATORS,
        "Generators of workloads; each has an id, a type (integer, string, textfile, files, external, "
        "singleton) and parameters of its type. With profile_for_each_workload each workload has a "
        "profile of its own; seed starts its random numbers.",
        fields={
            "id": KeyKind.TEXT,
            "type": KeyKind.TEXT,
            "profile_for_each_workload": KeyKind.BOOL,
            "randomize_rows": KeyKind.BOOL,
        },
        required=("id", "type"),
    ),
    ConfigKey(
        "execute.pre_run", KeyKind.TEXTS, Scope.LOCAL, [],
        "Commands that are run before anything is collected, e.g. to build the program; without a shell.",
        example=["make"],
    ),
    ConfigKey(
        "execute.timeout", KeyKind.NUMBER, Scope.LOCAL, 0,
        "Seconds after which a command of execute.pre_run is stopped; 0 for never.",
        example=600,
    ),
    ConfigKey(
        "execute.budget", KeyKind.NUMBER, Scope.RECURSIVE, 10,
        "Seconds for each version that `perun run matrix` measures several versions for at most, where "
        "neighbours are not settled after the first rounds; 0 for no more rounds than these.",
        example=60,
    ),
    ConfigKey(
        "execute.build_cache", KeyKind.NUMBER, Scope.RECURSIVE, 2048,
        "MiB of built versions that are kept in `.perun/cache/builds` for later runs, those used last; 0 to "
        "keep none.",
        example=8192,
    ),
    ConfigKey(
        "pool.patience", KeyKind.NUMBER, Scope.RECURSIVE, 60,
        "Seconds that `perun run matrix --on` waits for a scheduler or a machine that is gone; after that "
        "the jobs of the machine are given to others.",
        example=600,
    ),
    ConfigKey(
        "pool.attempts", KeyKind.NUMBER, Scope.RECURSIVE, 3,
        "How often a job of a pool is tried whose process ended without a result.",
        example=5,
    ),
    ConfigKey(
        "pool.drift", KeyKind.NUMBER, Scope.RECURSIVE, 5,
        "Percentage by which a machine of a pool may be slower or faster than it was, in a fixed piece of "
        "work, before it is set aside; 0 for any.",
        example=10,
    ),
    ConfigKey(
        "profiles.register_after_run", KeyKind.BOOL, Scope.RECURSIVE, False,
        "Whether new profiles are registered in the index of their minor version at once.",
        example=True,
    ),
    ConfigKey(
        "profiles.max_size", KeyKind.NUMBER, Scope.SHARED, 512,
        "Largest profile that is read or stored, in MiB of JSON; the same limit holds for statistics. Only "
        "the shared configuration can set it: a repository may hold a small file that unpacks to any size.",
        example=2048,
    ),
    ConfigKey(
        "profiles.columnar_from", KeyKind.NUMBER, Scope.RECURSIVE, 1 << 20,
        "Profiles with at least so many numbers in their resources are stored by columns, in a tenth of the "
        "room; older releases read JSON only, which is what 0 stores always.",
        example=100_000,
    ),
    ConfigKey(
        "degradation.collect_before_check", KeyKind.BOOL, Scope.RECURSIVE, False,
        "Whether `perun check` first collects new profiles with the job matrix.",
        example=True,
    ),
    ConfigKey(
        "degradation.log_collect", KeyKind.BOOL, Scope.RECURSIVE, False,
        "Whether the output of that collection is kept in `.perun/logs`; it is discarded otherwise.",
        example=True,
    ),
    ConfigKey(
        "degradation.apply", KeyKind.CHOICE, Scope.RECURSIVE, "all",
        "Which of the strategies that fit a profile are applied: the first or all.",
        choices=("first", "all"),
    ),
    ConfigKey(
        "degradation.strategies", KeyKind.RULES, Scope.GATHERED, [{"method": "average_amount_threshold"}],
        "Rules that say by which method profiles are checked; besides the method, a rule names what it "
        "holds for: type, cmd, args, workload, collector or postprocessor. With `instead_of` it is applied "
        "where the method named there can say nothing.",
        fields=dict.fromkeys(
            ("method", "type", "cmd", "args", "workload", "collector", "postprocessor", "instead_of"),
            KeyKind.TEXT,
        ),
        required=("method",),
        closed=True,
    ),
    ConfigKey(
        "degradation.cutoff", KeyKind.NUMBER, Scope.RECURSIVE, 1.0,
        "Changes of a location that are smaller than this percentage of all time are not reported by the "
        "exclusive time outliers.",
        example=0.5,
    ),
    ConfigKey(
        "degradation.location_filter", KeyKind.REGEX, Scope.RECURSIVE, "",
        "Regular expression for the locations (binaries) that the exclusive time outliers look at; empty "
        "for all.",
        example="libc",
    ),
    ConfigKey(
        "degradation.<method>", KeyKind.SETTINGS, Scope.RECURSIVE, {},
        "Settings of the check of that name; the help of the check lists them.",
        example={"threshold": 1.1},
    ),
    ConfigKey(
        "plugins.trusted", KeyKind.TEXTS, Scope.SHARED, [],
        "Folders of repositories that are trusted whatever they hold; `perun trust` also notices changes. "
        "Only the shared configuration can set it, so that no repository can trust itself.",
        example=["/home/me/project"],
    ),
    *(
        ConfigKey(name, KeyKind.IGNORED, Scope.RECURSIVE, None, "Written by older releases; has no effect.")
        for name in ("profiles.overwrite", "format.output_show_template", "format.sort_profiles_order")
    ),
)  # fmt: skip

RUNS: Final = (
    "execute.pre_run",
    "cmds",
    "args",
    "workloads",
    "collectors",
    "harnesses",
    "postprocessors",
    "generators.workload",
    "degradation.collect_before_check",
    "general.editor",
    "vcs.type",
    "vcs.url",
    "store.url",
    "remotes",
)
"""Keys that decide what programs run, with what: those of a repository hold if the user trusts it."""

KEYS: Final[Mapping[str, ConfigKey]] = {row.name: row for row in _ROWS}
SECTIONS: Final = frozenset(name.partition(".")[0] for name in KEYS if "." in name)


def find(name: str) -> ConfigKey:
    """The row of a dotted key, whatever old or free spelling it has.

    :raises ConfigError: if there is no such key, or it is a section; the hint names the nearest key.
    """
    name = ALIASES.get(name, name)
    if name in SECTIONS:
        inside = ", ".join(key for key in KEYS if key.startswith(name + "."))
        raise ConfigError(f"{name} is a section, not a key", f"it holds {inside}")
    if name.startswith(SETTINGS_SECTION + ".") and name.count(".") > 1:
        return KEYS["degradation.<method>"]
    if name not in KEYS or "<" in name:
        raise ConfigError(f"unknown configuration key {name!r}", nearest(name))
    return KEYS[name]


def nearest(name: str) -> str:
    """A hint that names the keys spelled nearest to `name`."""
    import difflib

    useful = {key.name for key in _ROWS if key.kind not in (KeyKind.IGNORED, KeyKind.SETTINGS)}
    known = sorted(useful if "." in name else useful | SECTIONS)
    last = {key.rpartition(".")[2]: key for key in known}
    close = [last[name]] if name in last else difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if not close:
        close = [last[one] for one in difflib.get_close_matches(name.rpartition(".")[2], last, n=1)]
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "sections and keys are " + ", ".join(sorted({key.partition(".")[0] for key in KEYS}))


def is_true(value: object) -> bool:
    """Whether `value` is one of the spellings of true (manual 11.2: 1, true, True, yes, ...)."""
    return value is True or (isinstance(value, (str, int)) and str(value).strip().lower() in TRUE)


def defaults() -> dict[str, Any]:
    """The built-in values, nested as in a file."""
    result: dict[str, Any] = {}
    for key in _ROWS:
        if key.default is not None and "<" not in key.name:
            put(result, key.name, key.default)
    return result


def put(mapping: dict[str, Any], name: str, value: Any) -> None:
    """Set the dotted key in nested mappings; what stands in the way is replaced."""
    *sections, last = name.split(".")
    for section in sections:
        inner = mapping.get(section)
        if not isinstance(inner, dict):
            inner = mapping[section] = {}
        mapping = inner
    mapping[last] = value
