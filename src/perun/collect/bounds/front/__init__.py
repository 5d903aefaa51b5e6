"""The front end: a C source becomes functions and loops with their places in the original text."""

from .preprocessing import missing, preprocess
from .read import read
from .unit import Function, Loop, ReadOptions, Unit, Unreadable, UnreadLoop

__all__ = [
    "Function", "Loop", "ReadOptions", "Unit", "UnreadLoop", "Unreadable", "missing", "preprocess", "read",
]  # fmt: skip
