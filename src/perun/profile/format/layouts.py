"""In which layout a profile is stored: JSON, which every release reads, or by columns where it is large."""

from __future__ import annotations

import io
from collections.abc import Container, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, Final

from perun.profile.format import columnar
from perun.profile.format.columns import is_packed
from perun.profile.format.compressed import CompressedColumn
from perun.profile.format.head import decode
from perun.profile.format.json import SIZE_LIMIT, dumps_object, loads, pending_pieces
from perun.profile.format.stacks import frames_in
from perun.profile.uid import may_have_uid

if TYPE_CHECKING:
    from perun.profile.format.core import Profile

COLUMNAR_FROM: Final = 1 << 20
"""Numbers in columns from which a profile is stored by columns, if no configuration says otherwise.

Up to there JSON has 10 MB, and is read in 0.2 s: most profiles stay what older releases and other tools read.
"""

FRAMES_FROM: Final = 1 << 12
"""Frames in the call stacks of all groups from which a job file is by columns, where each stack stands once.

JSON spells so many in half a megabyte, and those of larger profiles in several.
"""

_START: Final = 64
_PIECE: Final = 1 << 18


def is_stored_by_columns(profile: Profile, columnar_from: int) -> bool:
    """Whether the profile has at least `columnar_from` numbers in columns; 0 stands for never."""
    resources = profile.regions().get("resources")
    return 0 < columnar_from <= sum(
        len(column)
        for columns in (resources.values() if isinstance(resources, dict) else ())
        for column in (columns.values() if isinstance(columns, Mapping) else ())
        if isinstance(column, CompressedColumn) or is_packed(column)
    )


def object_body(profile: Profile, columnar_from: int) -> bytes:
    """The profile as the body of an object (manual 13.2.2), without `origin`.

    :raises ProfileError: if a value has no JSON, or the file that the profile was read from is damaged.
    """
    if not is_stored_by_columns(profile, columnar_from):
        return dumps_object(profile)
    regions = profile.regions()
    regions.pop("origin", None)
    buffer = io.BytesIO()  # hands out what it holds without a copy
    buffer.writelines(columnar.pieces(regions))
    return buffer.getvalue()


def job_pieces(profile: Profile, columnar_from: int) -> Iterator[bytes]:
    """The profile as a job file, piece by piece; errors as :func:`object_body`.

    Call stacks that repeat are a reason for columns here only: an object is compressed.
    """
    if is_stored_by_columns(profile, columnar_from) or (columnar_from and _has_many_frames(profile)):
        return columnar.pieces(profile.regions())
    return pending_pieces(profile)


def _has_many_frames(profile: Profile) -> bool:
    return frames_in(profile.regions().get("resource_type_map")) >= FRAMES_FROM


def load(
    file: BinaryIO, source: str, *, limit: int = SIZE_LIMIT, uids: Container[str] | None = None
) -> Profile:
    """The profile in a file, in any layout that Perun reads.

    :param source: where it comes from, for the message. :param limit: number of bytes that are read at most.
    :param uids: as for :func:`perun.profile.format.columnar.load`.
    :raises ProfileError: if it holds no profile, or is larger than `limit`.
    """
    if _is_columnar(file):
        return columnar.load(file, source, limit=limit, uids=uids)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    profile = loads(file.read(min(size, limit) + 1), source, limit=limit)
    return profile if uids is None else with_uids(profile, uids)


def verify(file: BinaryIO, source: str, *, limit: int, read_whole: int) -> bool:
    """Check that the file holds a profile; of JSON of more than `read_whole` bytes only the head.

    :return: whether all of it was checked.
    :raises ProfileError: as :func:`load`.
    """
    if _is_columnar(file):
        columnar.verify(file, source, limit=limit)
        return True
    data = file.read(read_whole + 1)
    if len(data) <= read_whole:
        loads(data, source, limit=limit)
        return True
    decode(chain([data], iter(lambda: file.read(_PIECE), b"")), source)
    return False


def _is_columnar(file: BinaryIO) -> bool:
    found = columnar.is_columnar(file.read(_START))
    file.seek(0)
    return found


def with_uids(profile: Profile, uids: Container[str]) -> Profile:
    """The profile with those groups of resources only that have one of these uids, flattened.

    A group whose resources differ in their uids is kept.
    """
    regions = profile.regions()
    constants = regions["resource_type_map"]
    kept = [key for key in regions["resources"] if may_have_uid(constants.get(key, {}), uids)]
    for region in ("resources", "resource_type_map"):
        regions[region] = {key: regions[region][key] for key in kept if key in regions[region]}
    return type(profile)(regions)
