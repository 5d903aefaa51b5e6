import os
import socket

import pytest

from perun.core.regular import IrregularFile, TooLarge, open_regular, read_regular


def test_a_file_up_to_its_limit_is_read_whole(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"


def test_a_larger_file_is_refused_with_both_numbers_before_it_is_read(tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(TooLarge, match="1099511627776 bytes, more than the limit of 100"):
        read_regular(tmp_path / "file", 100)


def test_a_high_limit_takes_no_memory(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 1 << 62) == b"12345"


def test_a_file_that_grows_while_it_is_read_is_read_up_to_the_limit():
    # The system says of these that they have no bytes, as of one that has got its first ones only now.
    assert b"PATH" in read_regular("/proc/self/environ", 1 << 20)
    with pytest.raises(TooLarge, match="more than the limit of 10"):
        read_regular("/proc/self/environ", 10)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "file", 5)


def make_link(path):
    (path.parent / "target").write_bytes(b"x")
    path.symlink_to("target")


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # a whole path may be too long for a socket


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_link, "symbolic link"),
        (lambda path: path.symlink_to("/dev/zero"), "symbolic link"),
        (os.mkfifo, "not a regular file"),
        (make_socket, "not a regular file"),
        (lambda path: path.mkdir(), "not a regular file"),
    ],
)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, make, reason):
    make(tmp_path / "file")
    with pytest.raises(IrregularFile, match=reason):
        open_regular(tmp_path / "file", 5)
