"""What `typing` has for annotations and named tuples, at a fraction of its price.

For what `perun status` and `perun log` load. Annotations are text that nobody reads there (PEP 563), and yet
`typing` takes 5 ms to import, and 0.3 ms for each named tuple, whose annotations it parses. For mypy and ruff
the names are those of `typing`. As a program runs, those that stand in annotations alone are placeholders: a
class that a library fills by its annotations, such as a dataclass of parameters, wants the real ones.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # as the module `collections` has it

__all__ = [
    "IO", "TYPE_CHECKING", "Any", "BinaryIO", "ClassVar", "Final", "Generic", "Literal", "NamedTuple",
    "NoReturn", "Protocol", "TextIO", "TypeAlias", "TypeGuard", "TypeVar", "cast",
]  # fmt: skip
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import (
        IO,
        Any,
        BinaryIO,
        ClassVar,
        Final,
        Generic,
        Literal,
        NamedTuple,
        NoReturn,
        Protocol,
        TextIO,
        TypeAlias,
        TypeGuard,
        TypeVar,
        cast,
    )
else:

    class _Placeholder:
        def __getitem__(self, _):
            return self

    IO = Any = BinaryIO = ClassVar = Final = Literal = _Placeholder()
    NoReturn = TextIO = TypeAlias = TypeGuard = Any

    class Generic:
        """A base of classes with parameters, which say nothing as a program runs."""

        __slots__ = ()

        def __class_getitem__(cls, _):
            return cls

    class Protocol:
        """A base of classes of which others have but the form."""

    def TypeVar(name, *_, **__):
        """A parameter of a class or function, which says nothing as a program runs."""
        return name

    def cast(_, value):
        """The value."""
        return value

    class _Tuple(tuple):
        """What named tuples have in common; those of `collections` hold it once each."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **values):
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

        def __getnewargs__(self):
            return tuple(self)

    class _Maker(type):
        """Makes a class with the base `NamedTuple` the class of tuples that it describes."""

        def __new__(maker, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}

            def first(cls, *values, **named):
                """Most classes never have an instance: what makes one is compiled for the first."""
                names = "".join(f"{field}, " for field in fields)
                scope = {"_new": tuple.__new__, "__builtins__": {}, "__name__": f"namedtuple_{name}"}
                new = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", scope)
                new.__name__, new.__defaults__ = "__new__", tuple(defaults.values())
                made.__new__ = staticmethod(new)
                return new(cls, *values, **named)

            for number, field in enumerate(fields):
                namespace[field] = _tuplegetter(number, "")
            own = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__new__": first}
            made = type(name, (_Tuple,), {**namespace, **own, "__slots__": ()})
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
