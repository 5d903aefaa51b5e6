"""`perun utils create`: a plugin of one's own, complete with a test that passes (manual 3.6.2).

Its files are made from the texts in `kit`. In these `{{name}}` is replaced, and lines between `#[word` and
`#]` are copied only if the word applies.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.core import atomic
from perun.core.errors import PluginError, UsageError
from perun.fuzz.rules import GROUP as RULES_GROUP
from perun.plugin.loading import short_string
from perun.plugin.registry import GROUPS, Registry

FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    "collect": ("Collector", "a collector"),
    "postprocess": ("Postprocessor", "a postprocessor"),
    "view": ("View", "a view"),
    "check": ("Check", "a check"),
    "workload": ("Generator", "a workload generator"),
    "harness": ("Harness", "a harness"),
    "importer": ("Importer", "an importer"),
    "exporter": ("Exporter", "an exporter"),
    "fuzz-rules": ("Rules", "fuzzing rules"),
}
"""What can be created: the end of the class's name, and what it is called."""
_USAGE: Final = {
    "collect": "perun collect -c ./app {name}",
    "postprocess": "perun postprocessby 0@p {name}",
    "view": "perun show 0@p {name}",
    "check": "perun config set degradation.strategies '[{{method: {stem}}}]'",
    "workload": "perun config set generators.workload '[{{id: {stem}s, type: {stem}}}]'",
    "harness": "perun compare --harness {name}",
    "importer": "perun import {name} results.txt",
    "exporter": "perun export {name} 0@i",
    "fuzz-rules": "perun fuzz -b ./app -w seed.ini -o results",
}
_RULES: Final = "fuzz-rules"
"""These come from packages only, whatever repository is fuzzed."""
_KIT: Final = Path(__file__).with_name("kit")
_WITH_PHASES: Final = ("collect", "postprocess")
_WITH_TYPES: Final = ("collect", "postprocess", "view")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_TYPE = re.compile(r"[a-z][a-z0-9_-]*")
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_RESERVED: Final = frozenset(
    {"after", "before", "click", "collect", "helpers", "pass_profile", "postprocess", "runner", "sums_of"}
    | {"shlex", "subprocess", "time"}
)
"""Names that a module of the documented API uses itself."""


class PluginRequest(NamedTuple):
    """What is to be created.

    :param legacy: as the manual's chapters 4.2, 5.2, 6.2 and 8.4 document it, not as a class of a contract.
    :param types: the types of profiles that it is for; none if it is for all.
    :param phases: of the documented API: `before` and `after`, as far as it has them.
    """

    family: str
    name: str
    legacy: bool = False
    types: tuple[str, ...] = ()
    phases: frozenset[str] = frozenset({"before", "after"})

    @property
    def stem(self) -> str:
        """The name as Python spells it."""
        return self.name.replace("-", "_")


class CreateResult(NamedTuple):
    """The files that were written, those of the plugin first, how to test it, and how to use it."""

    files: list[Path]
    test: str
    usage: str


def in_repository(request: PluginRequest, root: Path, registry: Registry) -> CreateResult:
    """Write the plugin into `.perun/plugins` of the repository at `root`.

    :param registry: the plugins there are.
    :raises UsageError: if the name cannot be one, or files are there already; nothing is written then.
    :raises PluginError: if there is a plugin of that name.
    """
    if request.family == _RULES:
        raise UsageError(
            "fuzzing rules are found in installed packages, not in a repository", "add --package DIRECTORY"
        )
    _refuse(request, registry)
    plugins = root / ".perun" / "plugins"
    folder, stem = plugins / request.family, request.stem
    test = plugins / "tests" / f"test_{request.family}_{stem}.py"
    values = _values(request) | {
        "folders": "[Path(__file__).parents[1]]",
        "where": ", found beside this folder",
    }
    if len(_modules(request)) == 1:
        places = {"": folder / f"{stem}.py"}
    else:
        places = {name: folder / stem / f"{name}.py" for name in _modules(request)}
    texts = {places[name]: _rendered(text, values, request) for name, text in _modules(request).items()}
    texts[test] = _test(request, values, {"path"})
    return CreateResult(_written(texts), f"python -m pytest {test}", values["usage"])


def as_package(request: PluginRequest, folder: Path) -> CreateResult:
    """Write an installable package, which announces the plugin by an entry point, into `folder`.

    :raises UsageError: as :func:`in_repository`, or if the folder is not empty.
    :raises PluginError: if a plugin of that name is built in.
    """
    _refuse(request, Registry(), installed=False)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder", "name a new one with --package")
    package = f"perun_{request.stem}"
    source = folder / "src" / package
    values = _values(request) | {
        "folders": "",
        "where": ", which has to be installed",
        "package": package,
        "distribution": f"perun-{request.name.replace('_', '-').lower()}",
        "group": RULES_GROUP if request.family == _RULES else GROUPS[request.family],
        "entry_name": request.name if request.family in _WITH_TYPES else request.stem,
        "entry_value": package if request.legacy else f"{package}.plugin:PLUGIN",
    }
    modules = _modules(request)
    names = {"": "__init__" if request.legacy else "plugin"}
    places = {name: source / f"{names.get(name, name)}.py" for name in modules}
    values["module_path"] = str(next(reversed(places.values())).relative_to(folder))
    texts = {places[name]: _rendered(text, values, request) for name, text in modules.items()}
    if not request.legacy:
        texts[source / "__init__.py"] = _rendered("package/init", values, request)
    texts[folder / "tests" / f"test_{request.stem}.py"] = _test(
        request, values, {"path"} if request.family in ("collect", "harness", "importer") else set()
    )
    texts[folder / "pyproject.toml"] = _rendered("package/pyproject", values, request)
    texts[folder / "README.md"] = _rendered("package/readme", values, request)
    test = f'python -m pip install -e "{folder}[test]" && python -m pytest {folder}'
    return CreateResult(_written(texts), test, values["usage"])


def _modules(request: PluginRequest) -> dict[str, str]:
    """The modules of the plugin and the texts they are made from; the only one has no name."""
    if not request.legacy:
        return {"": f"typed/{request.family}"}
    if request.family == "check":
        return {"": "legacy/check"}
    return {"__init__": f"legacy/{request.family}-init", "run": f"legacy/{request.family}-run"}


def _values(request: PluginRequest) -> dict[str, str]:
    suffix, kind = FAMILIES[request.family]
    words = "".join(word[:1].upper() + word[1:] for word in request.stem.split("_"))
    types = request.types or ("time",)
    return {
        "family": request.family,
        "name": request.name,
        "stem": request.stem,
        "title": request.name,
        "class_name": words if words.lower().endswith(suffix.lower()) else words + suffix,
        "short": short_string(request.stem),
        "kind": kind,
        "kind_capital": kind[:1].upper() + kind[1:],
        "type": types[0],
        "types": repr(types).replace("'", '"'),
        "types_joined": "|".join(request.types or ("mixed", "memory", "time")),
        "usage": _USAGE[request.family].format(name=request.name, stem=request.stem),
    }


def _test(request: PluginRequest, values: Mapping[str, str], more: Collection[str]) -> str:
    words = {request.family, *more}
    if request.family in ("postprocess", "view", "check", "exporter"):
        words.add("profile")
    parts = (request.family,) if request.family == _RULES else ("common", request.family)
    texts = (_text(f"tests/{name}") for name in parts)
    return "".join(_filled(text, values, words) for text in texts)


def _rendered(text: str, values: Mapping[str, str], request: PluginRequest) -> str:
    words = set(request.phases) | ({"types"} if request.types else set())
    return _filled(_text(text), values, words)


def _text(name: str) -> str:
    return (_KIT / f"{name}.txt").read_text(encoding="utf-8")


def _filled(text: str, values: Mapping[str, str], words: Collection[str]) -> str:
    lines, shown = [], True
    for line in text.splitlines():
        if line.startswith("#["):
            shown = line[2:] in words
        elif line == "#]":
            shown = True
        elif shown:
            lines.append(_PLACE.sub(lambda place: values[place[1]], line))
    return "\n".join(lines) + "\n"


def _refuse(request: PluginRequest, registry: Registry, *, installed: bool = True) -> None:
    stem = request.stem
    if not _NAME.fullmatch(request.name) or keyword.iskeyword(stem) or (request.legacy and stem in _RESERVED):
        raise UsageError(
            f"{request.name!r} cannot be the name of {FAMILIES[request.family][1]}",
            "use letters and digits, with dashes or underscores between words, e.g. my-plugin",
        )
    if request.legacy and request.family in ("workload", "harness", "importer", "exporter", _RULES):
        raise UsageError(
            f"{FAMILIES[request.family][1]} has a typed contract only",
            "leave --legacy out",
        )
    if request.types and request.family not in _WITH_TYPES:
        kind = FAMILIES[request.family][1]
        are = "are for no profiles" if request.family == _RULES else "is for profiles of all types"
        raise UsageError(f"{kind} {are}", "leave -st out")
    has_phases = request.legacy and request.family in _WITH_PHASES
    if request.phases != PluginRequest._field_defaults["phases"] and not has_phases:
        raise UsageError(
            "only collectors and postprocessors of the documented API have the phases before and after",
            "leave --no-before-phase and --no-after-phase out, or add --legacy",
        )
    wrong = [one for one in request.types if not _TYPE.fullmatch(one)]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is not a valid profile type", "use e.g. time, memory or mixed")
    if request.family != _RULES:
        _refuse_known(request, registry, installed)


def _refuse_known(request: PluginRequest, registry: Registry, installed: bool) -> None:
    try:
        source = registry.source(request.family, request.name)
    except PluginError:
        return
    if installed or source.kind == "built-in":
        raise PluginError(
            f"there is {FAMILIES[request.family][1]} {request.name!r} already ({source})", "take another name"
        )


def _written(texts: Mapping[Path, str]) -> list[Path]:
    there: Sequence[Path] = [path for path in texts if path.exists()]
    if there:
        raise UsageError(f"{there[0]} already exists", "choose another name, or remove it")
    for path, text in texts.items():
        try:
            atomic.write(path, text.encode())
        except OSError as problem:
            raise UsageError(
                f"cannot write {path}: {problem.strerror}", "choose a folder that you may write to"
            ) from None
    return list(texts)
