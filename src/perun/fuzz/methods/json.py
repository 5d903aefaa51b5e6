"""Rules for JSON, as chapter 9.2 of the manual suggests: nesting, long arrays and many keys are what is slow.

They read the text, and write it down anew in one line; of text that is no JSON, after mutations of other
rules, they change brackets and values as they find them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any, Final

_VALUE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|[\[\]{}]')
_DEEPEST: Final = 64
_LARGEST: Final = 1 << 20
_MOST: Final = 16

Changed = bytes | None
Place = tuple[Any, Any]
"""A container, and the key or index of one of its values."""


def nest_value(data: bytes, random: Random) -> Changed:
    """Rule J.1: Put a random value into several arrays or objects of its own."""
    found = random.choice(list(_VALUE.finditer(data)) or [None])
    if found is None or found.group() in (b"[", b"]", b"{", b"}"):
        return None
    times = random.randint(1, _MOST)
    before, after = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return data[: found.start()] + before * times + found.group() + after * times + data[found.end() :]


def repeat_element(data: bytes, random: Random) -> Changed:
    """Rule J.2: Repeat a random element of a random array several times."""
    document = _load(data)
    places = [place for place in _places(document) if isinstance(place[0], list)]
    if not places:
        return None
    array, index = random.choice(places)
    array[index:index] = [array[index]] * random.randint(1, _MOST)
    return _dump(document)


def add_keys(data: bytes, random: Random) -> Changed:
    """Rule J.3: Add several keys with the value of a random one to its object."""
    document = _load(data)
    places = [place for place in _places(document) if isinstance(place[0], dict)]
    if not places:
        return None
    container, key = random.choice(places)
    for number in range(random.randint(1, _MOST)):
        container[f"{key}{number}"] = container[key]
    return _dump(document)


def remove_value(data: bytes, random: Random) -> Changed:
    """Rule J.4: Remove a random element or key."""
    document = _load(data)
    places = list(_places(document))
    if not places:
        return None
    container, key = random.choice(places)
    del container[key]
    return _dump(document)


def grow_number(data: bytes, random: Random) -> Changed:
    """Rule J.5: Add digits to a random number."""
    numbers = [found for found in _VALUE.finditer(data) if found.group()[-1:].isdigit()]
    if not numbers:
        return None
    end = random.choice(numbers).end()
    digits = "".join(random.choice("0123456789") for _ in range(random.randint(1, _MOST)))
    return data[:end] + digits.encode() + data[end:]


def remove_bracket(data: bytes, random: Random) -> Changed:
    """Rule J.6: Remove a random bracket."""
    found = [one for one in _VALUE.finditer(data) if one.group() in (b"[", b"]", b"{", b"}")]
    if not found:
        return None
    bracket = random.choice(found)
    return data[: bracket.start()] + data[bracket.end() :]


RULES: Final = (
    ("J.1", nest_value),
    ("J.2", repeat_element),
    ("J.3", add_keys),
    ("J.4", remove_value),
    ("J.5", grow_number),
    ("J.6", remove_bracket),
)
"""The rules of this kind, by their labels."""


def _load(data: bytes) -> Any:
    """The document; None for what is no JSON, or too large or deep to be worth it."""
    if len(data) > _LARGEST:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _dump(document: Any) -> bytes | None:
    try:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return None


def _places(document: Any) -> Iterator[Place]:
    """All values in containers of a document, but for those that are very deep."""
    level = [document] if isinstance(document, (list, dict)) else []
    for _ in range(_DEEPEST):
        below = []
        for container in level:
            keys = range(len(container)) if isinstance(container, list) else list(container)
            for key in keys:
                yield container, key
                if isinstance(container[key], (list, dict)):
                    below.append(container[key])
        level = below
        if not level:
            return
