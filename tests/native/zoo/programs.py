"""The programs of the zoo: how each is built, and how often it calls its functions."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).parent
C: Final = ("gcc", "-std=gnu11", "-g", "-O2")
CPP: Final = ("g++", "-std=c++17", "-g", "-O2")
ENDINGS: Final = {"g++": "cpp", "go build": "go", "rustc": "rs", "sh": "sh", "python3": "py"}
NONE: Final[Mapping[str, Any]] = MappingProxyType({})
TWENTY: Final = tuple(range(20))


class Library(NamedTuple):
    """What a program loads while it runs: its source and its file, which the arguments name."""

    source: str
    file: str
    options: tuple[str, ...] = ()


class Program(NamedTuple):
    """One program of the zoo.

    :ivar name: of its source, without the ending. :ivar compiler: with its options. :ivar more: further
        sources, then options that come after the sources.
    :ivar calls: how often it calls functions, by their names without parameters.
    :ivar allocations: how often functions allocate. :ivar sizes: of structures, by function, in their order.
    :ivar status: its exit status, or the negative number of the signal that ends it.
    :ivar loaded: as `calls`, of functions in the library or in assembly. :ivar trace: parameters of the
        collector trace.
    :ivar written: how many characters it writes to files of its name.
    :ivar fast: whether it belongs to the fast half.
    :ivar refused: by engine, what a refusal says, or a note of a profile that lacks something; an engine that
        is not there has to be exact.
    :ivar package: brings the compiler. :ivar feature: of the processor, which the program needs.
    """

    name: str
    compiler: tuple[str, ...]
    calls: Mapping[str, int]
    allocations: Mapping[str, int] = MappingProxyType({"keep": 20})
    sizes: Mapping[str, tuple[int, ...]] = NONE
    more: tuple[str, ...] = ()
    args: str = ""
    status: int = 0
    library: Library | None = None
    loaded: Mapping[str, int] = NONE
    trace: Mapping[str, Any] = NONE
    written: int = 0
    fast: bool = False
    refused: Mapping[str, str] = NONE
    package: str = "build-essential"
    feature: str = ""

    @property
    def source(self) -> Path:
        """Its first source."""
        return FOLDER / f"{self.name}.{ENDINGS.get(self.compiler[0], 'c')}"

    @property
    def is_native(self) -> bool:
        """Whether it is compiled, and not interpreted."""
        return self.compiler[0] not in ("sh", "python3")

    @property
    def is_c(self) -> bool:
        """Whether it is written in C or C++, so that the collector complexity can build it."""
        return self.source.suffix in (".c", ".cpp")

    @property
    def strange(self) -> str:
        """What is strange about it, as the first comment of the source says."""
        found = re.search(r"Strange: (.*?)\.(\n| \*/)", self.source.read_text("utf-8"))
        assert found, f"{self.source} does not say what is strange about it"
        return found[1]


def _c(name: str, calls: Mapping[str, int], *options: str, **others: Any) -> Program:
    keep = others.get("allocations", {"keep": 20}).get("keep", 0)
    return Program(name, (*C, *options), {"main": 1, "keep": keep, **calls}, **others)


def _cpp(name: str, calls: Mapping[str, int], *options: str, **others: Any) -> Program:
    return Program(name, (*CPP, *options), {"main": 1, "keep": 20, **calls}, **others)


def _ordinary(name: str, *options: str, compiler: str = "gcc", **others: Any) -> Program:
    """One of the builds of `ordinary.h`."""
    calls = {"main": 1, "squares": 20, "square": 190, "keep": 20}
    found = Program(name, (compiler, *C[1:], *options), calls, **others)
    return found if "sizes" in others else found._replace(sizes={"squares": TWENTY})


def _twenty(*functions: str, **others: int) -> dict[str, int]:
    return {**dict.fromkeys(functions, 20), **others}


def has(feature: str) -> bool:
    """Whether the processor has a feature, as Linux calls it."""
    return re.search(rf"^flags.*\b{feature}\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE) is not None


_STATIC: Final = "linked statically|without -static"
_OTHER_PROGRAM: Final = "executed another program|exec"
_NO_SYMBOLS: Final = "is stripped|no symbols|no function|without debug information"

PROGRAMS: Final = (
    _c("floats", _twenty("scale", "halve", "wide"), sizes={"scale": TWENTY, "wide": TWENTY}, fast=True),
    _c(
        "vectors", _twenty("add", "shift"), *(("-mavx",) if has("avx") else ()), "-Wno-psabi",
        sizes={"shift": TWENTY}
    ),
    _c(
        "misread_opcodes", {}, loaded=_twenty("spread", "equal", "copied", "sum"), fast=True,
        refused={"ebpf": "kernel cannot probe"}, feature="avx"
    ),
    _c("threads", {"work": 4, "step": 80}, "-pthread", allocations={"keep": 4}, fast=True),
    _c("known_registers", {"around": 20, "leaf": 60}, fast=True),
    _c("tail_calls", _twenty("first", "second", "third", is_even=16, is_odd=15), fast=True),
    _c("cold_part", {"decide": 20, "complain": 5}),
    _cpp("exceptions", _twenty("catcher", "middle", "thrower", "Guard::~Guard"), fast=True),
    _c("long_jump", _twenty("catcher", "middle", "thrower"), fast=True),
    _c(
        "coroutines", {"routine": 3, "step": 15, "pause_here": 15}, allocations={"keep": 18},
        refused={"callgrind": "switches stacks"}, fast=True
    ),
    _c("forks", {"spawn": 2, "in_child": 2, "work": 35}, fast=True),
    _c(
        "borrowed_memory", {"spawn": 6, "in_child": 6}, allocations={"keep": 6},
        refused={"callgrind": "uses vfork"}
    ),
    _c(
        "becomes_itself", {"main": 3, "work": 60}, args="3", allocations={"keep": 3},
        refused={"memory": _OTHER_PROGRAM, "callgrind": _OTHER_PROGRAM}
    ),
    _c("becomes_another", {"work": 20}, allocations={"keep": 1}, refused={"callgrind": _OTHER_PROGRAM}),
    _c("signals", _twenty("interrupted", "handler", "count_up"), fast=True),
    _c("deep", {"dive": 3001}, fast=True, refused={"uftrace": "deeper than"}),
    _c("leaves", _twenty("next", "same", "nothing", "behind"), fast=True),
    _c(
        "hidden_result", _twenty("fill", "split", "total"),
        sizes={"fill": TWENTY, "split": TWENTY, "total": TWENTY}, fast=True
    ),
    _c("jump_table", _twenty("dispatch", "interpret")),
    _c("many_parameters", _twenty("ninth", "sum_of"), sizes={"ninth": TWENTY, "sum_of": (5, 1) * 10}),
    _c("changed_parameters", _twenty("half_used"), sizes={"half_used": TWENTY}),
    _c("chosen_at_start", _twenty("caller", "one_way")),
    _c("outside_main", {"work": 27, "before": 1, "after": 1, "at_exit": 1}),
    _c(
        "optimized_at_link", {"here": 20, "elsewhere": 20, "square": 40}, "-flto",
        more=("optimized_at_link_2.c",)
    ),
    _cpp(
        "other_allocator", {"push": 20, "drop": 1}, allocations={"keep": 20, "push": 20},
        more=("-ljemalloc",), package="libjemalloc-dev"
    ),
    _c(
        "plugin", {"with_plugin": 2}, loaded={"increase": 20, "helper": 20}, allocations={"keep": 2},
        more=("-ldl",),
        library=Library("plugin_library.c", "libplugin.so", ("gcc", "-shared", "-fPIC", "-g", "-O2")),
        args="./libplugin.so", trace={"libs": ("libplugin.so",), "strategy": "all"}
    ),
    _ordinary("position_independent", "-fPIE", "-pie"),
    _ordinary("fixed_address", "-fno-pie", "-no-pie", fast=True),
    _ordinary("static", "-static", refused={"memory": _STATIC, "complexity": _STATIC, "uftrace": "static"}),
    _ordinary(
        "stripped", "-s", refused=dict.fromkeys(("ebpf", "memory", "callgrind", "complexity"), _NO_SYMBOLS)
    ),
    _ordinary("no_debug", "-g0", sizes={}, refused={"memory": _NO_SYMBOLS}),
    _ordinary("split_dwarf", "-gsplit-dwarf", refused={"callgrind": "without -gsplit-dwarf"}),
    _ordinary("compressed_debug", "-gz"),
    _ordinary("native_cpu", "-O3", "-march=native"),
    _ordinary("control_flow", "-fcf-protection=full", fast=True),
    _ordinary(
        "musl", compiler="musl-gcc", package="musl-tools", refused={"memory": "musl", "complexity": "musl"}
    ),
    _ordinary("set_user", refused={"memory": "privileges", "callgrind": "privileges"}),
    _c("fails", {"work": 20}, status=3),
    _c("killed", {"work": 20, "last": 1}, status=-6, fast=True),
    _ordinary(
        "sanitized", "-fsanitize=address",
        refused=dict.fromkeys(("memory", "complexity", "callgrind"), "AddressSanitizer")
    ),
    _ordinary("instrumented", "-finstrument-functions"),
    _c("seccomp", {"work": 20, "lock": 1}, refused={"callgrind": "seccomp"}, fast=True),
    _c(
        "no_clock", {"work": 20}, refused={"memory": "PR_SET_TSC", "complexity": "PR_SET_TSC"}, fast=True
    ),
    _c(
        "own_namespace", {}, loaded={"hold": 20}, allocations={"keep": 20, "hold": 20}, more=("-ldl",),
        library=Library(
            "own_namespace_library.c", "libown.so", ("gcc", "-shared", "-fPIC", "-g", "-O2")
        ),
        args="./libown.so", trace={"libs": ("libown.so",), "strategy": "all"},
        refused={"memory": "calls dlmopen"}, fast=True
    ),
    _c("other_root", {"work": 20}, refused={"callgrind": "its root folder"}, fast=True),
    _c("quick_exit", {"work": 20}, fast=True),
    _c(
        "small_stacks", {"routine": 3, "work": 15}, "-Wl,-z,now", allocations={"keep": 15},
        refused={"callgrind": "switches stacks"}, fast=True
    ),
    _c("many_threads", {"work": 400, "step": 2000}, "-pthread", allocations={"keep": 400}, fast=True),
    _c("nested_functions", {**_twenty("outer", "apply"), "inner.0": 20}, fast=True),
    _c("self_checking", {"work": 20, "checksum": 2}, fast=True),
    _c("unprivileged", {"work": 20}, refused={"callgrind": "changed its user"}, fast=True),
    _c("closes_all", {"work": 20}, fast=True),
    _c("main_leaves", {"work": 1, "step": 20}, "-pthread", fast=True),
    _c(
        "no_data", {"squares": 20, "square": 190}, "-static", "-nostdlib", "-fno-stack-protector",
        allocations={}, sizes={"squares": TWENTY},
        refused={"memory": _STATIC, "complexity": "does not compile", "callgrind": "knows no file"}
    )._replace(calls={"squares": 20, "square": 190}),
    Program(
        "go", ("go build",), {"main.square": 80, "main.squares": 4, "main.deeper": 201}, allocations={},
        package="golang-go", refused={"memory": _STATIC, "callgrind": "begins anew|Valgrind cannot run"}
    ),
    Program(
        "rust", ("rustc", "-g", "-O"), {"rust::square": 20, "rust::List::push": 20, "rust::risky": 20},
        allocations={"rust::List::push": 4}, package="rustc"
    ),
    Program("spawned", ("python3",), {}, allocations={}, written=40),
    Program("fork_server", ("python3",), {}, allocations={}, written=40),
    Program("script", ("sh",), {}, allocations={}, status=4, refused={"ebpf": "not an ELF program"}),
    Program(
        "extension", ("python3",), {}, loaded={"squared": 5000}, allocations={"keep": 1},
        library=Library("extension.c", "extension.so", ("gcc", "-shared", "-fPIC", "-g", "-O2")),
        trace={"libs": ("extension.so",), "strategy": "custom", "func": ("squared",)}
    ),
)  # fmt: skip
