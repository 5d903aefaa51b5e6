"""A hundred commands of Debian, which must print the same and end alike when they are recorded."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from perun.collect.memory.collector import MemoryCollector, MemoryParams
from perun.collect.trace.collector import TraceCollector
from perun.collect.trace.params import TraceParams
from perun.core.errors import JobFailed
from perun.core.process.command import outcome
from perun.plugin.api import Run
from zoo.cells import EXACT, REFUSED, WRONG, Cell, calls
from zoo.recording import TIMEOUT, record, run_plainly

COMMANDS: Final = tuple(
    line.strip()
    for line in r"""
    cat text
    cat -A text missing
    tac text
    head -n 3 text
    tail -n 3 text
    tail -c 40 text
    wc text numbers
    nl text
    fmt -w 30 text
    fold -w 20 text
    pr -t -2 text
    expand text
    unexpand -a text
    cut -d, -f2 table.csv
    paste numbers text
    join sorted1 sorted2
    comm sorted1 sorted2
    sort text
    sort -n -r numbers
    sort -R --random-source=text numbers
    uniq -c sorted1
    tr a-z A-Z < text
    tsort pairs
    shuf --random-source=text numbers
    split -l 5 text part-
    csplit -s text 5
    od -c text
    base64 text
    base32 text
    md5sum text numbers
    sha256sum text
    sha512sum --check sums
    cksum text
    b2sum text
    seq 1 7 100
    factor 123456789 987654321
    expr 6 '*' 7
    expr 1 - 1
    printf '%05d %s\n' 42 text
    echo a b c
    numfmt --to=iec 123456789
    basename /usr/lib/text.txt .txt
    dirname /usr/lib/text.txt
    realpath text
    readlink -f text
    ls -1 folder
    ls missing
    stat -c %s text
    du -b text
    find . -name '*.csv'
    find folder -type f -size +0 -print
    cp -r folder copy
    mv text moved
    rm -r folder
    mkdir -p a/b/c
    rmdir folder
    ln -s text link
    touch new
    chmod 600 text
    truncate -s 10 text
    dd if=text bs=16 count=2 status=none
    install -m 644 text installed
    env -i A=1 env
    test -f missing
    true
    false
    timeout 10 cat text
    nice -n 1 cat text
    xargs -n 3 echo < numbers
    grep -n e text
    grep -c nothing text
    grep -rE 't[eo]' folder
    sed -e 's/e/E/g' -n -e 2,4p text
    awk -F, '{sum += $2} END {print sum}' table.csv
    mawk 'BEGIN {for (n = 0; n < 1000; n++) s[n] = n "x"; print length(s)}'
    perl -ne 'print scalar reverse' text
    perl -e 'my %h; $h{$_ % 97} += $_ for 1..5000; print map {"$_=$h{$_} "} sort keys %h; exit 3'
    python3 -c 'import json; print(json.dumps({str(n): [n] * 3 for n in range(50)}))'
    python3 -c 'import sys; print(sorted("text")); sys.exit(4)'
    bc -q < sum.bc
    sqlite3 :memory: 'create table t(a); insert into t values(3),(1); select sum(a) from t;'
    sqlite3 :memory: 'select * from missing;'
    gzip -n -c text
    gzip -d -c text.gz
    bzip2 -c text
    xz -c text
    xz -T2 -c numbers
    tar -c --sort=name --mtime=@0 --owner=0 --group=0 folder
    tar -tf folder.tar
    zip -X -q - text
    unzip -l missing.zip
    openssl dgst -sha256 text
    openssl enc -aes-128-cbc -K 00 -iv 00 -in text
    git -C repository log --oneline
    git -C repository diff HEAD~1
    git -C repository show missing
    diff sorted1 sorted2
    cmp text numbers
    patch -o - sorted1 changes.diff
    ed -s text < commands.ed
    xxd text
    hexdump -C text
    jq -c .a[1] data.json
    cpp -P macros.h
    make -s -f rules all
    gcc -S -O1 -o - small.c
    as -o small.o small.s
    objdump -d /bin/true --no-show-raw-insn
    nm -D /bin/true
    readelf -h /bin/true
    strings -n 8 /bin/true
    c++filt _ZN2ns1fEi
    file -b text
    tclsh script.tcl
    sh -c 'for n in 1 2 3; do echo $n | cat; done; exit 5'
    bash -c 'a=(x y z); echo ${#a[@]}; kill -TERM $$'
    """.strip().splitlines()
)

_LIBC: Final = Path("/lib/x86_64-linux-gnu/libc.so.6")
_FUNCTIONS: Final = ("__libc_malloc", "__libc_calloc", "setlocale", "getenv", "exit", "_IO_fwrite", "qsort")
"""Functions of the C library that are traced, as the programs have no symbols."""
_STDIN: Final = re.compile(r"(.*?)(?: < ([\w.]+))?")
_TEXT: Final = "The quick brown fox\tjumps over\nthe lazy dog;\nten tea sets\n\nand one toe.\n" * 6
_FILES: Final = {
    "text": _TEXT,
    "numbers": "".join(f"{n * 37 % 101}\n" for n in range(60)),
    "table.csv": "".join(f"row{n},{n * 3},{n % 7}\n" for n in range(30)),
    "sorted1": "apple\nbanana\ncherry\nfig\n",
    "sorted2": "apple\nblueberry\ncherry\ngrape\n",
    "pairs": "a b\nb c\na d\nd c\n",
    "sum.bc": "scale=20\n22/7\n2^200\nfor (i = 0; i < 5; i++) i * i\n",
    "data.json": '{"a": [1, {"b": null}, "c"]}\n',
    "macros.h": "#define TWICE(x) x x\nTWICE(tea)\n",
    "rules": "all: one two\n\t@echo all\none two:\n\t@echo $@\n",
    "small.c": "int f(int n) { int s = 0; while (n--) s += n * n; return s; }\n",
    "small.s": "f: mov %edi, %eax\n ret\n",
    "commands.ed": "2d\n1p\n$p\nq\n",
    "script.tcl": "puts [expr 6*7]\nputs [lsort {c a b}]\n",
    "changes.diff": "--- sorted1\n+++ sorted1\n@@ -1,2 +1,2 @@\n apple\n-banana\n+lemon\n",
    "folder/one": "text one\n",
    "folder/two": "",
    "folder/deeper/three": "total three\n",
}


def make_files(folder: Path) -> None:
    """Make the files that the commands read."""
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    shell = (
        "sha512sum text numbers > sums; gzip -n -c text > text.gz; tar -cf folder.tar folder; "
        "git init -q repository; cd repository; git config user.name A; git config user.email a@example.org; "
        "for n in 1 2 3; do echo $n >> file; git add file; git commit -q -m $n; done"
    )
    subprocess.run(["sh", "-c", shell], cwd=folder, check=True, capture_output=True)


def is_there(command: str) -> bool:
    """Whether the program is installed."""
    return shutil.which(shlex.split(command)[0]) is not None


def compared(command: str, collector: str, template: Path, folder: Path) -> Cell:
    """Run a command of :data:`COMMANDS` as it is and recorded, each in a copy of the files, and compare."""
    words, stdin = _STDIN.fullmatch(command).groups()
    place = folder / "place"
    environ = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    run = Run(words, workload=f"< {stdin}" if stdin else "", cwd=place, environ=environ)
    shutil.copytree(template, place, symlinks=True)
    plain = run_plainly(run)
    before = _contents(place)
    shutil.rmtree(place)
    shutil.copytree(template, place, symlinks=True)
    scratch = folder / "scratch"
    scratch.mkdir()
    with_profile: Any = {"ignore_failure": True, "timeout": TIMEOUT}
    engine, params = _collector(collector, with_profile)
    recorded = record(engine, params, run, scratch)
    found = _contents(place)
    if recorded.profile is None:
        return Cell(REFUSED, str(recorded.refusal))
    if recorded.out != plain.out:
        return Cell(WRONG, f"it prints {recorded.out[-200:]!r}, not {plain.out[-200:]!r}")
    if recorded.errors != plain.errors:
        return Cell(WRONG, f"its errors are {recorded.errors[-200:]!r}, not {plain.errors[-200:]!r}")
    if found != before:
        return Cell(WRONG, f"it leaves other files: {sorted(set(found.items()) ^ set(before.items()))[:3]}")
    if plain.status > 0 and collector != "memory" and not _says(recorded.notes, plain.status):
        return Cell(WRONG, f"nothing says that it ended with {plain.status}")
    if plain.status > 0 and collector == "memory":
        shutil.rmtree(place)
        shutil.copytree(template, place, symlinks=True)
        engine, params = _collector(collector, {**with_profile, "ignore_failure": False})
        again = record(engine, params, run, scratch).refusal
        if not isinstance(again, JobFailed) or outcome(plain.status << 8) not in str(again):
            return Cell(WRONG, f"nothing says that it ended with {plain.status}: {again}")
    if collector == "ebpf" and not sum(calls(recorded.profile).values()):
        return Cell(WRONG, "no call was recorded")
    return Cell(EXACT)


def _collector(name: str, common: dict[str, Any]) -> tuple[Any, Any]:
    if name == "memory":
        return MemoryCollector(), MemoryParams(**common)
    wanted = tuple(f"{_LIBC.name}#{function}" for function in _FUNCTIONS)
    params = TraceParams(engine="ebpf", strategy="custom", func=wanted, libs=(str(_LIBC),), **common)
    return TraceCollector(), params


def _says(notes: list[str], status: int) -> bool:
    return any(outcome(status << 8) in note for note in notes)


def _contents(folder: Path) -> dict[str, bytes]:
    """What is in the files of a folder, but for those that git writes times into."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts
    }
