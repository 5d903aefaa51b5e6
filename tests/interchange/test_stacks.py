"""Importers of call stacks: files of the real tools, where they are installed, and the corpus of the fuzzer.

Those of the corpus were written by pprof of Go, perf, py-spy, Node.js and heaptrack; Firefox's, the evented
one of speedscope and callgrind's small one by hand, after their published schemas.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from exchanged import CORPUS, Reader, guessed, needed, python_with, run, stacks

from perun.core.errors import ProfileError
from perun.measurement.series import measurements
from perun.plugin.interchange import Imported

Build = Callable[..., Path]
FIRST = sorted(path for path in CORPUS.glob("import-*/*") if path.name not in ("plain.folded", "lines.json"))


@pytest.mark.parametrize("path", FIRST, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_format_is_guessed(path: Path) -> None:
    assert guessed(path) == [path.parent.name.removeprefix("import-")]


# -- pprof, and Firefox


def test_pprof_of_go(read: Reader) -> None:
    (cpu,) = read.corpus("pprof", "go-cpu.pb.gz")
    assert cpu.profile["header"]["cmd"] == "x.test"
    assert cpu.profile["header"]["units"]["sample"] == "ns"
    assert sum(stacks(cpu.profile).values()) == 1_500_000_000  # as `go tool pprof -top` says
    assert sum(stacks(cpu.profile, "samples").values()) == 150
    assert cpu.moment is not None
    assert read.corpus("pprof", "go-cpu.pb")[0].profile["resources"] == cpu.profile["resources"]
    (heap,) = read.corpus("pprof", "go-heap.pb")
    assert set(heap.profile["header"]["units"]) >= {"sample (alloc_space)", "sample (inuse_objects)"}
    assert heap.profile["collector_info"]["name"] != cpu.profile["collector_info"]["name"]


def test_go_tool_pprof_agrees(read: Reader, tmp_path: Path) -> None:
    go = needed("go")
    path = CORPUS / "import-pprof" / "go-cpu.pb.gz"
    printed = run([go, "tool", "pprof", "-top", "-unit=ns", "-nodecount=5", str(path)], tmp_path)
    (found,) = read("pprof", path)
    own: dict[str, float] = {}
    for stack, amount in stacks(found.profile).items():
        leaf = stack.rpartition(";")[2]
        own[leaf] = own.get(leaf, 0) + amount
    rows = re.findall(r"^\s*(\d+)ns\s+\S+\s+\S+\s+\d+ns\s+\S+\s+(\S+)", printed, re.MULTILINE)
    assert len(rows) == 5
    for flat, name in rows:
        assert own[name] == int(flat)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("processed-47.json", {"main;work": 1, "main": 1}),
        ("processed-75.json", {"a;root;leaf": 2.5, "b;root;leaf": 2.5}),
        ("gecko.json", {"GeckoMain;main;work": 1, "GeckoMain;main": 1, "Web;main;work": 1}),
    ],
)
def test_all_layouts_of_firefox(read: Reader, file: str, expected: dict[str, float]) -> None:
    (found,) = read.corpus("firefox", file)
    assert stacks(found.profile) == expected


def test_lines_and_sources_of_firefox(read: Reader) -> None:
    (found,) = read.corpus("firefox", "processed-75.json")
    traces = [one["trace"] for _, one in found.profile.all_resources() if "trace" in one]
    assert traces[0][0] == {"source": "src.rs", "function": "leaf", "line": 12}
    (old,) = read.corpus("firefox", "gecko.json")
    leaf = next(one["trace"][0] for _, one in old.profile.all_resources() if len(one.get("trace", ())) == 3)
    assert leaf == {"source": "https://x/a.js", "function": "work", "line": 12}


# -- perf


def test_perf_script(read: Reader) -> None:
    (found,) = read.corpus("perf", "script.txt")
    assert found.profile["collector_info"]["name"] == "perf.cpu-clock"
    assert sum(stacks(found.profile, "samples").values()) == 12
    assert stacks(found.profile)["prog;__libc_start_call_main;main;work"] > 12e6 * 0.9


def test_perf_script_without_stacks_and_of_several_events(read: Reader) -> None:
    clock, cycles = read.corpus("perf", "no-stacks.txt")
    assert stacks(clock.profile) == {"prog;work": 2 * 1003009}
    assert stacks(cycles.profile) == {"my prog;[unknown]": 7}
    (one,) = read("perf", "prog 1 1.5: 3 cycles: 11 work+0x1 (/a)")
    assert stacks(one.profile) == {"prog;work": 3}


def test_inlined_functions_have_the_binary_they_are_in(read: Reader) -> None:
    cycles, instructions = read.corpus("perf", "inlined.txt")
    (trace,) = (one["trace"] for _, one in cycles.profile.all_resources() if "trace" in one)
    assert [(one["function"], one.get("source"), one.get("line")) for one in trace] == [
        ("inner", "prog", None), ("work", "prog", 4), ("main", "prog", None), ("prog", None, None),
    ]  # fmt: skip
    assert stacks(instructions.profile) == {"other;operator()(int) const": 3}


def test_real_perf(read: Reader, program: Build, tmp_path: Path) -> None:
    perf = needed("perf")
    run(
        [perf, "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o", "perf.data", str(program())],
        tmp_path,
    )
    text = run([perf, "script", "-i", "perf.data"], tmp_path)
    recorded, printed = read("perf", tmp_path / "perf.data"), read("perf", text)
    assert stacks(recorded[0].profile) == stacks(printed[0].profile)
    assert sum(stacks(printed[0].profile, "samples").values()) == text.count("cpu-clock")
    assert any(one.endswith("heavy;work") or "main;work" in one for one in stacks(printed[0].profile))


def perf_script(seed: int) -> str:
    """Samples of all forms that perf script prints, and of some that it does not."""
    rnd = random.Random(seed)
    frame = "\t  {n:x}{at} f{n}+0x{at} (/lib/{n}.so)\n"
    stacks = ["", *("".join(frame.format(n=n, at=at) for at in range(n % 4)) for n in range(9))]
    lines = [
        "prog {n} [001] {n}.5:   {n} cycles:ppp: ", "my prog {n}/7 [000] 1.{n}: cpu-clock: ", "# {n}", " x",
        "a 1.5: 3 {n} 2.5: {n} x:", "prog {n} 1.5: 99999999999999999999 cycles:", "prog {n} cycles: ",
        "prog {n}  9.{n}: 999999999999999999 cycles: ", "prog {n} 1.{n}: cycles: 1{n} work+0x1 (/a)",
        "p {n} 2.5: 1 sched:sched_switch: comm={n}",
    ]  # fmt: skip
    made = [rnd.choice(lines).format(n=rnd.randrange(9)) + "\n" + rnd.choice(stacks) for _ in range(300)]
    return "".join(one + rnd.choice(["\n", "\n", "\n\n", "\r\n", " \n"]) for one in made)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_and_without_the_library_say_the_same(
    read: Reader, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    text = perf_script(seed)
    found = [content(read("perf", text))]
    monkeypatch.setattr("perun.plugin.interchange.PIECE", 1 + 97 * seed)
    found.append(content(read("perf", text)))
    monkeypatch.setattr("perun.importer.perf._MOST_KNOWN", 1000)
    found.append(content(read("perf", text)))
    monkeypatch.setattr("perun.importer.perf.load", lambda: None)
    found.append(content(read("perf", text)))
    assert len(found[0]) > 1 and found == [found[0]] * 4


def content(found: list[Imported]) -> dict[str, dict[str, object]]:
    """What is sampled, by the collector that stands for it."""
    return {
        one.profile["collector_info"]["name"]: {
            str(resource["uid"]) + str(resource.get("trace")): (resource["amount"], resource.get("samples"))
            for _, resource in one.profile.all_resources()
        }
        for one in found
    }


@pytest.mark.slow
def test_a_large_text_takes_bounded_memory(tmp_path: Path) -> None:
    """300 MB of perf script, with a million addresses, in a process that may take 600 MB."""
    path, number = tmp_path / "large.txt", 0
    with path.open("w") as out:
        while out.tell() < 300 << 20:
            for _ in range(1000):
                number += 1
                address = f"{number * 7919 % 1_000_003:x}"
                frames = "".join(
                    f"\t {address} f{number % (7 + depth)}+0x{address} (/lib/x.so)\n" for depth in range(9)
                )
                out.write(f"prog {number % 50} [000] {number}.0: {number % 11} cycles: \n{frames}\n")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (600 << 20,) * 2)\n"
        "from pathlib import Path\nfrom perun.plugin.interchange import *\n"
        "from perun.plugin.registry import Registry\n"
        "reports = []\n"
        "file = ImportFile('large', Path(sys.argv[1]), lambda *one: reports.append(one))\n"
        "(one,) = Registry().get('importer', 'perf').read(file, None, ImportContext(print, Path('.')))\n"
        "traced = [one for _, one in one.profile.all_resources() if 'trace' in one]\n"
        "print(sum(one['samples'] for one in traced), len(reports))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, reports = map(int, done.stdout.split())
    assert (count, reports > 100) == (number, True)


# -- others


def test_folded_stacks(read: Reader) -> None:
    (found,) = read.corpus("folded", "plain.folded")
    assert stacks(found.profile) == {"main;work;inner": 3, "main;work": 2.5, "main": 1}
    (timed,) = read("folded", "a;b (c.py:3) 5\nwrong\n", unit="us")
    assert timed.profile["header"]["units"]["sample"] == "us"
    assert read.notes == ["1 lines of given are no stack with a number, and are left out"]


def test_inclusive_sums_count_recursion_once(read: Reader) -> None:
    (found,) = read("folded", "main;f;g;f 3\nmain;f 2\nmain;g 4\n")
    series = {name: one.values.tolist() for name, one in measurements(found.profile).items()}
    assert series["f:inclusive [samples]"] == [5]
    assert series["g:inclusive [samples]"] == [7]
    assert series["f [samples]"] == [5]
    assert series["folded:(total) [samples]"] == [9]


def test_speedscope(read: Reader) -> None:
    (found,) = read.corpus("speedscope", "evented.json")
    assert found.profile["header"]["units"]["sample"] == "ms"
    assert stacks(found.profile) == {"one;main": 5, "one;main;work": 5, "two;main": 1, "two;main;work": 2}
    (py,) = read.corpus("speedscope", "pyspy.json")
    assert "<module>;outer;inner" in stacks(py.profile)


def test_real_py_spy(read: Reader, tmp_path: Path) -> None:
    tool = needed("py-spy")
    (tmp_path / "spin.py").write_text(
        "def inner():\n    return sum(i * i for i in range(20_000_000))\ninner()\n"
    )
    run([tool, "record", "-f", "speedscope", "-o", "out.json", "--", sys.executable, "spin.py"], tmp_path)
    (found,) = read("speedscope", tmp_path / "out.json")
    assert any("<module>;inner" in one for one in stacks(found.profile))


def test_cpuprofile(read: Reader) -> None:
    (old,) = read.corpus("cpuprofile", "old.cpuprofile")
    assert stacks(old.profile, "samples") == {"(anonymous)": 3}
    (found,) = read.corpus("cpuprofile", "node.cpuprofile")
    assert any(one.endswith("outer;inner") for one in stacks(found.profile))


def test_real_node(read: Reader, tmp_path: Path) -> None:
    node = needed("node")
    (tmp_path / "spin.js").write_text(
        "function inner(n){let s=0;for(let i=0;i<n;i++)s+=Math.sqrt(i);return s}\n"
        "function outer(){const e=Date.now()+300;let t=0;"
        "while(Date.now()<e)t+=inner(1000);return t}\nouter()\n"
    )
    run([node, "--cpu-prof", "--cpu-prof-name=a.cpuprofile", "spin.js"], tmp_path)
    (found,) = read("cpuprofile", tmp_path / "a.cpuprofile")
    told = json.loads((tmp_path / "a.cpuprofile").read_text())
    root = next(one["id"] for one in told["nodes"] if one["callFrame"]["functionName"] == "(root)")
    sampled = stacks(found.profile, "samples")
    assert sum(sampled.values()) == len(told["samples"]) - told["samples"].count(root)
    assert any(name.endswith("outer") or name.endswith("outer;inner") for name in sampled)


def test_chrome_trace(read: Reader) -> None:
    (found,) = read.corpus("chrome", "complete.json")
    assert found.profile["header"]["cmd"] == "prog"
    assert stacks(found.profile) == {"main": 45, "main;work": 5, "open": 30}
    assert any("no calls" in one for one in read.notes) and any("did not end" in one for one in read.notes)
    (cut,) = read.corpus("chrome", "cut.json")
    assert stacks(cut.profile) == {"a": 2}


def test_real_uftrace(read: Reader, program: Build, tmp_path: Path) -> None:
    tool = needed("uftrace")
    run([tool, "record", "-d", "data", str(program("-pg"))], tmp_path)
    (found,) = read("uftrace", tmp_path / "data")
    calls = [one["uid"]["function"] for _, one in found.profile.all_resources()]
    assert (calls.count("heavy"), calls.count("work"), calls.count("main")) == (40, 80, 1)


def test_callgrind_by_hand(read: Reader) -> None:
    (found,) = read.corpus("callgrind", "small.out")
    assert found.profile["header"]["cmd"] == "./prog 3"
    assert stacks(found.profile) == {"main": 10, "main;work": 100, "main;other": 50}


def test_real_callgrind(read: Reader, program: Build, tmp_path: Path) -> None:
    valgrind, annotate = needed("valgrind"), needed("callgrind_annotate")
    run([valgrind, "-q", "--tool=callgrind", "--callgrind-out-file=out", str(program())], tmp_path)
    (found,) = read("callgrind", tmp_path / "out")
    printed = run([annotate, "--threshold=90", "out"], tmp_path)
    row = re.search(r"^\s*([\d,]+) .*:work \[", printed, re.MULTILINE)
    total = re.search(r"^\s*([\d,]+) .*PROGRAM TOTALS", printed, re.MULTILINE)
    assert row is not None and total is not None
    found_stacks = stacks(found.profile)
    assert sum(amount for name, amount in found_stacks.items() if name.endswith(";work")) == int(
        row[1].replace(",", "")
    )
    assert sum(found_stacks.values()) == int(total[1].replace(",", ""))


def test_lines_of_real_callgrind(read: Reader, program: Build, tmp_path: Path) -> None:
    """What `callgrind_annotate` prints beside the lines of the source, those that were inlined too."""
    valgrind, annotate = needed("valgrind"), needed("callgrind_annotate")
    built, project = program(), tmp_path / "project"
    source = built.with_suffix(".c")
    words = [valgrind, "-q", "--tool=callgrind", "--callgrind-out-file=out", str(built)]
    run(words, tmp_path)
    assert "lines" not in read("callgrind", tmp_path / "out")[0].profile  # it is of no known project
    (project / source.parent.name).mkdir(parents=True)
    shutil.copy(source, project / source.parent.name)  # as if it was built on another machine
    read.project = project
    region = read("callgrind", tmp_path / "out")[0].profile["lines"]
    assert region["files"] == [f"{source.parent.name}/{source.name}"]
    sums: Counter[int] = Counter()
    for _, _, line, cost in region["costs"]:
        sums[line] += cost
    printed = run(
        [annotate, "--auto=yes", "--show-percs=no", "--context=0", "--threshold=100", "out"], tmp_path
    )
    texts = source.read_text().splitlines()
    own = printed.partition(f"Auto-annotated source: {source}")[2].partition("Auto-annotated source")[0]
    rows = re.findall(r"^ *([\d,]+) {2}(.*)$", own, re.MULTILINE)
    found = {text: int(cost.replace(",", "")) for cost, text in rows if text in texts}
    kept = {text: cost for text, cost in found.items() if texts.count(text) == 1 and cost > 100}
    assert len(kept) > 5
    assert {text: sums[texts.index(text) + 1] for text in kept} == kept


def test_heaptrack(read: Reader) -> None:
    (old,) = read.corpus("heaptrack", "v1.txt")
    assert old.profile["header"]["cmd"] == "./prog a b"
    values = {name: stacks(old.profile, name) for name in ("amount", "allocated", "allocations", "leaked")}
    assert values == {
        "amount": {"main": 32}, "allocated": {"main": 48}, "allocations": {"main": 3}, "leaked": {"main": 32},
    }  # fmt: skip
    (new,) = read.corpus("heaptrack", "v3.txt")
    assert sum(one for name, one in stacks(new.profile, "allocations").items() if name.endswith("main")) == 60


def test_real_heaptrack(read: Reader, program: Build, tmp_path: Path) -> None:
    tool, printer = needed("heaptrack"), needed("heaptrack_print")
    run([tool, "-o", "heap", str(program())], tmp_path)
    (path,) = tmp_path.glob("heap.*")
    (found,) = read("heaptrack", path)
    printed = run([printer, path.name], tmp_path)
    calls = re.search(r"calls to allocation functions: (\d+)", printed)
    assert calls is not None
    assert sum(stacks(found.profile, "allocations").values()) == int(calls[1])
    own = [name for name in stacks(found.profile, "leaked") if name.endswith("main")]
    assert stacks(found.profile, "leaked")[own[0]] == 20 * 1000


def test_real_memray(read: Reader, tmp_path: Path) -> None:
    python_with("memray")
    (tmp_path / "grow.py").write_text("def grow():\n    return bytearray(9 << 20)\nkept = grow()\n")
    run([sys.executable, "-m", "memray", "run", "-q", "-o", "out.bin", "grow.py"], tmp_path)
    assert guessed(tmp_path / "out.bin") == ["memray"]
    (found,) = read("memray", tmp_path / "out.bin")
    spent = stacks(found.profile)
    assert max(spent.values()) >= 9 << 20 and max(spent, key=spent.__getitem__).endswith("grow")
    with pytest.raises(ProfileError, match="memray cannot read it"):
        read("memray", b"memray\0nothing")


@pytest.mark.parametrize("name", ["pprof", "firefox", "perf", "folded", "speedscope", "cpuprofile", "chrome"])
@pytest.mark.parametrize("content", [b"", b"\0\xff" * 9, b"{}", b'{"a": ' * 5000, b"null", b"[1]"])
def test_what_is_none_of_it_is_a_named_error(read: Reader, name: str, content: bytes) -> None:
    with pytest.raises(ProfileError, match="given") as caught:
        read(name, content)
    assert caught.value.hint
