"""Does all that programs do with files, and prints what it sees: recorded or not, that must be the same."""

# ruff: noqa: SIM115 - how files are opened is what is tested here

import codecs
import contextlib
import copy
import csv
import gc
import gzip
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import warnings
import weakref
import zipfile

warnings.simplefilter("always")


def error(function, *arguments, **named):
    """What the call raises."""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = function(*arguments, **named)
        if hasattr(found, "close"):
            found.close()
        return [str(one.message) for one in told] or "nothing"
    except Exception as problem:
        return type(problem).__name__, str(problem)


os.chdir(sys.argv[1])
EXACT = len(sys.argv) > 2

print("modes")
for mode in (
    "w",
    "wb",
    "w+",
    "wb+",
    "a",
    "ab",
    "a+",
    "r",
    "rb",
    "r+",
    "rb+",
    "x",
    "xb",
    "rt",
    "U",
    "",
    "rw",
    "rr",
    "br",
    3,
):
    for buffering in (-1, 0, 1, 2, 100):
        name = f"modes-{buffering}"
        if mode in ("x", "xb") and os.path.exists(name + "x"):
            os.unlink(name + "x")
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                file = open(name + ("x" if "x" in str(mode) else ""), mode, buffering)
        except Exception as problem:
            print(mode, buffering, type(problem).__name__, problem)
            continue
        with file as entered:
            assert entered is file
            if file.writable():
                file.write(b"bytes\n" if "b" in mode else "text\n")
            kinds = [
                base
                for base in (
                    io.TextIOWrapper,
                    io.BufferedReader,
                    io.BufferedWriter,
                    io.BufferedRandom,
                    io.FileIO,
                )
                if isinstance(file, base)
            ]
            print(
                *(
                    mode, buffering, kinds, file.mode, file.name, file.readable(), file.seekable(),
                    file.tell()
                ),
                *(type(file).__name__, type(file).__module__, isinstance(file, io.IOBase), repr(file)),
                *(str(one.message) for one in told)
            )  # fmt: skip
            if isinstance(file, io.TextIOWrapper):
                print(
                    file.line_buffering, file.encoding, file.errors, file.newlines, file.write_through,
                    repr(file.buffer), repr(file.buffer.raw)
                )  # fmt: skip
        print(file.closed, error(file.read), error(file.write, "x"))

print("arguments")
for arguments in (
    (),
    ("missing",),
    ("missing", "w", 1, None, None, "x"),
    (b"bytes.txt", "w"),
    (pathlib.Path("path.txt"), "w"),
    (3.5,),
    ("a\0b",),
    ("modes-1", "rb", -1, "utf-8"),
    ("modes-1", "r", -1, "nonsense"),
    ("modes-1", "rb", 1),
    (-1,),
    (99,),
    (".",),
):
    print(arguments, error(open, *arguments), error(io.open, *arguments))
print(error(open, "modes-1", nonsense=1), error(open, file="modes-1", mode="rb", newline="\n"))
assert open is io.open
with open("by-opener", "w", opener=lambda path, flags: os.open("opened-" + path, flags, 0o600)) as file:
    print(file.write("x"), sorted(os.listdir()))
descriptor = os.open("descriptor", os.O_RDWR | os.O_CREAT)
with open(descriptor, "w", closefd=False) as file:
    file.write("kept")
print(os.fstat(descriptor).st_size, os.lseek(descriptor, 0, os.SEEK_CUR))
with os.fdopen(descriptor, "rb+") as file:
    print(file.seek(0), file.read(), file.truncate(2), error(os.fstat, descriptor) != "nothing")

print("text")
with open("text", "w+", encoding="utf-16", newline="\r\n") as file:
    print(file.write("žluťoučký\n"), file.writelines(["a\n", "b\n"]), file.flush(), file.seek(0))
    print(
        file.readline(), file.readlines(), file.seek(0), next(file), error(file.tell), list(file),
        file.reconfigure(newline="")
    )  # fmt: skip
    print(error(file.write, b"x"), error(file.write), error(file.writelines, [1]), error(file.read, "x"))
with open("text", encoding="utf-16") as file:
    for line in file:
        print(line, file.newlines)
        break
    print(file.__next__(), next(file), next(file, "end"), error(next, file) if False else "")
    print(iter(file) is file, file.buffer.closed)

print("binary")
with open("binary", "wb") as file:
    print(
        file.write(bytearray(b"a" * 9000)),
        file.write(memoryview(b"bc")),
        file.writelines([b"d", b"e"]),
        error(file.write, "x"),
    )
    print(os.stat("binary").st_size, file.flush(), os.stat("binary").st_size)
with open("binary", "rb") as file:
    into = bytearray(5)
    print(
        file.peek(3)[:3], file.read1(4), file.readinto(into), into, file.readinto1(into), len(file.read()),
        file.read(), file.readline()
    )  # fmt: skip
    print(file.seek(-3, 2), file.readlines(), file.seek(0))
detached = open("binary", "rb")
raw = detached.detach()
print(raw.read(2), error(detached.read), raw.close())
with open("binary", "rb+", 0) as file:
    print(
        repr(file), file.readall()[-2:], file.write(b"end"), file.read(), file.seek(0), file.read(2),
        next(file)[:2]
    )  # fmt: skip
wrapped = io.TextIOWrapper(io.BufferedWriter(open("layers", "wb", 0)), line_buffering=True)
print(wrapped.write("layers\n"), os.stat("layers").st_size, io.BufferedReader(io.FileIO("layers")).read())

print("others")
with open("csv", "w", newline="") as file:
    csv.writer(file).writerows([[1, "a"], [2, "b"]])
with open("csv", newline="") as file:
    print(list(csv.reader(file)), csv.reader(file).line_num)
with open("json", "w") as file:
    json.dump({"a": [1, 2]}, file)
print(json.load(open("json")))
with open("pickle", "wb") as file:
    pickle.dump({"a": b"x" * 100000}, file)
    print(pickle.Pickler(file).dump(1), error(pickle.dumps, file), error(copy.copy, file))
with open("pickle", "rb") as file:
    print(len(pickle.load(file)["a"]), pickle.load(file), error(pickle.load, file))
with zipfile.ZipFile("zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write("json")
    archive.writestr("more", "x" * 1000)
    print(archive.namelist(), error(zipfile.ZipFile, open("json", "rb")))
print(
    zipfile.ZipFile("zip").read("more")[:3],
    shutil.unpack_archive("zip", "unpacked", "zip"),
    sorted(os.listdir("unpacked")),
)
with gzip.open("gzip", "wt") as file:
    file.write("zipped\n" * 3)
print(gzip.open("gzip").read(), [line for line in gzip.open("gzip", "rt")])
with tarfile.open("tar.gz", "w:gz") as tape:
    tape.add("json")
print(tarfile.open("tar.gz").getnames(), tarfile.open("tar.gz").extractfile("json").read())
with open("json", "rb") as source, open("copied", "wb") as target:
    print(
        shutil.copyfileobj(source, target),
        target.tell(),
        shutil.copy("json", "copied-2"),
        shutil.move("copied-2", "moved"),
    )
with open("out", "w") as file:
    print("before", file=file, flush=True)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print('child'); print(input(), file=sys.stderr)"], stdout=file,
        stdin=open("json"), stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    print("after", file=file)
print(open("out").read(), done.returncode, done.stderr)
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    print(process.communicate(b"through"))
with (
    tempfile.TemporaryFile("w+") as file,
    tempfile.NamedTemporaryFile() as named,
    tempfile.SpooledTemporaryFile(max_size=3) as spooled,
):
    print(
        file.write("x"), named.write(b"y"), named.file.name == named.name, spooled.write(b"long enough"),
        spooled.fileno() > 2
    )  # fmt: skip
path = pathlib.Path("pathlib")
print(
    path.write_text("text"), path.read_bytes(), path.write_bytes(b"abc"), path.open().read(),
    sorted(path.parent.glob("pat*"))
)  # fmt: skip
with codecs.open("codecs", "w", "latin-1") as file:
    print(file.write("é"), file.stream.mode)
with contextlib.redirect_stdout(open("redirected", "w")):
    print("hidden")
sys.stdout.flush()
print(open("redirected").read())
print(
    sys.stdout is sys.__stdout__,
    type(sys.stdout).__name__,
    error(input) if sys.stdin.isatty() else "",
    sys.stdin.read(),
)

print("objects")
file = open("unclosed", "w")
gone = weakref.ref(file)
buffer = weakref.ref(file.buffer)
gc.disable()
file.write("kept in the buffer")
file.note = "attribute"
print(vars(file), file == file, hash(file) == hash(file), len({file, file}), bool(file))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    del file
print(gone(), buffer(), open("unclosed").read(), [str(one.message) for one in told])
gc.enable()
write = open("method", "w").write
print(write("through a method"), write.__name__, write.__self__.close())
if EXACT:
    file = open("exact", "w")
    print(
        type(file) is io.TextIOWrapper,
        type(file.buffer) is io.BufferedWriter,
        type(file.buffer.raw) is io.FileIO,
        re.sub("0x[0-9a-f]+", "0x", repr(file.write)),
    )
    print(
        file.fileno(), io.TextIOWrapper.write, io.TextIOWrapper.write.__doc__, open, open.__module__,
        sorted(vars(io.TextIOWrapper))
    )  # fmt: skip
    try:
        with open("exact") as file:
            file.write("not writable")
    except OSError:
        traceback.print_exc(file=sys.stdout)
    try:
        open("missing")
    except OSError:
        traceback.print_exc(file=sys.stdout)


class Own(io.TextIOWrapper):
    def write(self, text):
        return super().write(text.upper())


with Own(open("own", "wb")) as file:
    print(file.write("shouted"), file.writelines(["more"]))
print(open("own").read(), sorted(os.listdir()))
unclosed = open("at-exit", "w")
unclosed.write("written at the end")
