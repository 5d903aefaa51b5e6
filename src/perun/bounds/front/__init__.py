"""The front end: a C source becomes functions and loops with their places in the original text."""

from .preprocessing import PreprocessorFailed, missing, preprocess
from .read import read
from .unit import LARGEST, Function, Loop, ReadOptions, Unit, Unreadable, UnreadLoop

__all__ = [
    "LARGEST", "Function", "Loop", "PreprocessorFailed", "ReadOptions", "Unit", "UnreadLoop", "Unreadable",
    "missing", "preprocess", "read",
]  # fmt: skip
