"""Names of functions of Rust and C++: how they are shown, which are the program's own, which a user means."""

from __future__ import annotations

import shutil
from typing import NamedTuple

import pytest

from perun.native.function_names import demangled, is_own, is_rust, match, plain_name


class Named(NamedTuple):
    symbol: str
    name: str


LEGACY = {
    "_ZN4list4List4push17h9f3b7184a47ffaa0E": "list::List::push",
    "_ZN48_$LT$list..List$u20$as$u20$list..shape..Area$GT$4area17h0123456789abcdefE": (
        "<list::List as list::shape::Area>::area"
    ),
    "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h76111196bd863648E": (
        "alloc::raw_vec::RawVec<T,A>::grow_one"
    ),
    "_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17hb7e2571a5e1191bbE.llvm.1036713079": (
        "hashbrown::raw::RawTable<T,A>::reserve_rehash"
    ),
}
OWN_WAY = {
    "_RNvCs6GmmlP4bgsG_1r4fill": "r::fill",
    "_RNvMCs6GmmlP4bgsG_1rNtB2_3Bag3add": "r::Bag::add",
    "_RNvXs_Cs6GmmlP4bgsG_1rNtB4_2SqNtNtB4_5inner4Area4area": "<r::Sq as r::inner::Area>::area",
}


@pytest.mark.parametrize(("symbol", "name"), LEGACY.items())
def test_names_of_rust_have_no_hash(symbol: str, name: str) -> None:
    assert demangled([symbol]) == {symbol: name}
    assert is_rust(symbol)


@pytest.mark.parametrize(("symbol", "name"), OWN_WAY.items())
def test_names_in_the_own_way_of_rust(symbol: str, name: str) -> None:
    if not shutil.which("c++filt"):
        pytest.skip("c++filt is not installed (binutils)")
    assert demangled([symbol]) == {symbol: name}
    assert is_rust(symbol)


def test_names_of_c_and_cpp_stay() -> None:
    symbols = ["list_push", "_ZN4list4pushEi", "_Reset", "_ZN2ns17hash_of_somethingEv"]
    assert demangled(symbols) == dict(
        zip(symbols, ["list_push", "list::push(int)", "_Reset", "ns::hash_of_something()"], strict=True)
    )
    assert not any(map(is_rust, symbols))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("list::List::push", True),
        ("<list::List as core::fmt::Display>::fmt", True),
        ("<u8 as list::Encoded>::encode", True),
        ("<&mut list::List as core::iter::Iterator>::next", True),
        ("alloc::raw_vec::RawVec<T,A>::grow_one", False),
        ("core::ptr::drop_in_place<list::List>", False),
        ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", False),
        ("<u8 as core::fmt::Display>::fmt", False),
        ("<str>::trim_start_matches", False),
        ("<&[u8] as std::io::Read>::read", False),
        ("stdlike::push", True),
        ("hashbrown::raw::RawTable<T,A>::reserve_rehash", False),
    ],
)
def test_which_functions_of_rust_are_the_programs_own(name: str, own: bool) -> None:
    assert is_own("_ZN1a1b17h0123456789abcdefE", name) == own


def test_what_a_name_means() -> None:
    functions = [Named(symbol, name) for symbol, name in demangled(LEGACY).items()]
    for wanted in ("push", "List::push", "list::List::push"):
        assert [one.name for one in match(functions, wanted)] == ["list::List::push"]
    assert [one.name for one in match(functions, "area")] == ["<list::List as list::shape::Area>::area"]
    assert [one.name for one in match(functions, "RawTable::reserve_rehash")] == [
        "hashbrown::raw::RawTable<T,A>::reserve_rehash"
    ]
    assert not match(functions, "ist::push")
    assert plain_name("r::main::{closure#0}") == "r::main::{closure#0}"
