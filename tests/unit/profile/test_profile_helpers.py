"""The head of a profile, sorting lists, names of job files (manual 11.2) and of benchmarks, and units."""

import os
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import ConfigError
from perun.profile.amounts import larger_is_better, locations_of_larger
from perun.profile.factory import Profile
from perun.profile.head import Configuration, ProfileHeader, shortest
from perun.profile.helpers import MAX_NAME_BYTES, ProfileInfo, file_name, sort_key
from shared import examples

NOW = datetime(2017, 4, 2, 13, 13, 34, tzinfo=UTC)
DEFAULT = "%collector%-%cmd%-%args%-%workload%-%date%"
ORIGIN = "f7f3dcea69b97f2b03c421a223a770917149cfaf"


def profile(cmd: str = "echo", args: str = "", workload: str = "hello", **regions: Any) -> Profile:
    return Profile(
        header={"type": "time", "cmd": cmd, "args": args, "workload": workload},
        collector_info={"name": "time", "params": {"warmup": 3, "files": ["a", "b"], "sampling-step": 0.5}},
        postprocessors=[
            {"name": "normalizer", "params": {}},
            {"name": "regression_analysis", "params": {"method": "full"}},
        ],
        origin=ORIGIN,
        **regions,
    )


def name(template: str, of: Profile | None = None, counter: int = 0) -> str:
    return file_name(template, of if of is not None else profile(), now=NOW, counter=counter)


def test_the_head_of_a_profile() -> None:
    assert ProfileHeader.of(profile(args="-e")) == ProfileHeader(
        "time", "echo", "-e", "hello", "time", ("normalizer", "regression_analysis")
    )
    assert ProfileHeader.of({}) == ProfileHeader("", "", "", "", "", ())


@pytest.mark.parametrize(("template", "expected"), [
    (DEFAULT, "time-echo-[_]-[hello]-2017-04-02-13-13-34"),
    ("%cmd%-%collector%-%workload%-%date%", "echo-time-[hello]-2017-04-02-13-13-34"),
    ("%postprocessors%", "normalizer-and-regression-analysis"),
    ("%time.warmup%x%time.files%x%time.sampling_step%", "3xa,bx0.5"),
    ("%regression-analysis.method%%regression_analysis.none%%trace.rules%", "full__"),
    ("%type%-%origin%-%counter%", f"time-{ORIGIN}-7"),
    ("50%-%cmd%/..", "50_-echo_.."),
    ("plain", "plain"),
    ("", "_"),
    (".%cmd%", "_echo"),
    ("-%cmd%", "_echo"),
])  # fmt: skip
def test_names_from_templates(template: str, expected: str) -> None:
    assert name(template, counter=7) == expected


@pytest.mark.parametrize(("of", "expected"), [
    (profile("./bin/target", "-a b", "data/in.txt"), "time-target-[-a_b]-[in.txt]"),
    (profile("/", "", "dir/"), "time-_-[_]-[dir]"),
    (
        profile("a#b%c&d{e}f\\g<h>i*j?k", "l/m$n!o'p\"q:r@s", ""),
        "time-a_b_c_d_e_f_g_h_i_j_k-[l_m_n_o_p_q_r_s]-[_]",
    ),
    (profile("a\nb\0c\x1b[0m", "\u202e", "\ud800"), "time-a_b_c_[0m-[_]-[_]"),
    (profile("žluť", "", "< in.txt"), "time-žluť-[_]-[__in.txt]"),
    (profile("..", "..", ".."), "time-..-[..]-[..]"),
    (Profile(), "_-_-[_]-[_]"),
])  # fmt: skip
def test_values_are_made_safe(of: Profile, expected: str) -> None:
    assert name("%collector%-%cmd%-%args%-%workload%", of) == expected


def test_the_date_is_utc() -> None:
    at = datetime(2017, 4, 2, 23, 30, 0, tzinfo=timezone(timedelta(hours=-2)))
    assert file_name("%date%", profile(), now=at, counter=0) == "2017-04-03-01-30-00"
    assert file_name("%date%", profile(), now=at.replace(tzinfo=None), counter=0) == "2017-04-02-23-30-00"


def test_an_unknown_tag_is_named_with_its_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"format.output_profile_template: unknown tag %colector%"
    ) as caught:
        name("%colector%-%cmd%")
    assert "'collector'" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        name("%qqqq%")
    assert "%" not in caught.value.message.replace("%qqqq%", "") and "workload" in caught.value.hint


def test_long_values_are_cut_and_the_date_stays() -> None:
    cut = name(DEFAULT, profile("c" * 300, "a" * 5000, "é" * 300))
    assert len(cut.encode()) <= MAX_NAME_BYTES
    assert cut.startswith("time-c") and cut.endswith("]-2017-04-02-13-13-34")
    assert len(name("x" * 400)) == MAX_NAME_BYTES


texts = st.text(max_size=400) | st.text(st.sampled_from("ab./ -%[]é\n\0"), max_size=400)


@given(texts, texts, texts, st.sampled_from([DEFAULT, "%cmd%", "%args%", "%workload%", "%time.x%"]) | texts)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200))
def test_any_command_gives_a_name_that_a_file_can_have(tmp_path, cmd, args, workload, template) -> None:
    of = profile(cmd, args, workload)
    of["collector_info"]["params"]["x"] = args
    try:
        result = name(template, of)
    except ConfigError:
        return
    full = f"{result}(999999).perf"
    assert result and result[0] not in ".-" and os.sep not in result
    assert not any(char in result for char in " #%&{}\\<>*?/$!'\":@") and result.isprintable()
    assert len(os.fsencode(full)) <= 255
    (tmp_path / full).write_bytes(b"")
    assert [entry.name for entry in tmp_path.iterdir()] == [full]
    (tmp_path / full).unlink()


def info(source: str, time: int = 0, collector: str = "time") -> ProfileInfo:
    return ProfileInfo(source, "/jobs/" + source, ProfileHeader("time", "ls", collector=collector), time)


def test_a_listed_profile_has_the_configuration_of_the_profile() -> None:
    of = profile(args="-e")
    listed = ProfileInfo("a", "", ProfileHeader.of(of), 0)
    assert listed.configuration == of.configuration
    assert listed.configuration.postprocessors == ("normalizer", "regression_analysis")


def test_lists_are_sorted_by_any_valid_attribute() -> None:
    old, new = info("b", 1, "trace"), info("a", 2)
    for attribute in ProfileInfo.valid_attributes:
        sorted([old, new], key=sort_key(attribute))
    assert sorted([new, old], key=sort_key("time")) == [old, new]
    assert sorted([old, new], key=sort_key("source")) == [new, old]
    assert sorted([old, new], key=sort_key(["collector", "time"])) == [new, old]
    assert sorted([new, old], key=sort_key(["stem", "copy"])) == [new, old]


def test_an_attribute_that_cannot_be_sorted_by_is_named() -> None:
    with pytest.raises(ConfigError, match=r"format.sort_profiles_by.*'tme'") as caught:
        sort_key("tme")
    assert "'time'" in caught.value.hint
    with pytest.raises(ConfigError):
        sort_key(["time", "qqqq"])


def test_the_attributes_of_the_manual() -> None:
    assert ProfileInfo.valid_attributes == (
        ["realpath", "type", "time", "cmd", "args", "workload", "collector", "checksum", "source"]
    )
    assert not info("a").is_registered and info("a").checksum == ""


# -- the shortest names of benchmarks ------------------------------------------------------------------------


def named(*commands: str, collector: str = "time") -> list[str]:
    """The names of benchmarks that are written as command, arguments and workload with `|` between."""
    texts = [(one + "||").split("|")[:3] for one in commands]
    found = [Configuration(collector, *text, ()) for text in texts]
    names = shortest(found)
    return [names[one] for one in found]


@pytest.mark.parametrize(("commands", "names"), [
    (["./app|-n 5|big.txt"], ["./app"]),
    (["/opt/build/bin/app|-n 5"], ["app"]),
    (["old/app", "new/app"], ["old/app", "new/app"]),
    (["./app|-n 5|big.txt", "./app|-n 5|small.txt"], ["./app big.txt", "./app small.txt"]),
    (["./app|-n 5 -v", "./app|-n 6 -v", "./app|-v"], ["./app -n 5", "./app -n 6", "./app"]),
    (["./app|--fast", "./app", "./other|x"], ["./app --fast", "./app", "./other"]),
    (["python3|bench/sort.py 10", "python3|bench/sort.py 20"], ["sort.py 10", "sort.py 20"]),
    (["python3|-m app 10"], ["python3"]),
    (["./app 10", "./app||10"], ["./app 10", "./app (workload 10)"]),
    (["./app|10|", "./app||10"], ["./app (arguments 10)", "./app (workload 10)"]),
    ([""], ["time"]),
])  # fmt: skip
def test_the_program_and_what_differs(commands: list[str], names: list[str]) -> None:
    assert named(*commands) == names


def test_what_else_is_seen_decides() -> None:
    one = Configuration("time", "./app", "", "10", ())
    assert shortest([one, one]) == {one: "./app"}
    other = one._replace(collector="memory")
    assert shortest([one, other]) == {one: "./app", other: "./app"}, "the collector is said beside it"


# -- units ---------------------------------------------------------------------------------------------------


def test_where_more_is_better() -> None:
    header = {"type": "mixed", "units": {"mixed(req/s)": "req/s"}, "larger_is_better": ["req/s"]}
    profile = Profile({"header": header})
    values = [("web", "mixed", "req/s"), ("web", "time", "real"), ("bulk", "mixed", "req/s")]
    profile.update_resources(
        {"uid": uid, "type": kind, "subtype": subtype, "amount": 1.0} for uid, kind, subtype in values
    )
    assert larger_is_better(profile) == {"req/s"}
    # That of `web` alone may mean its time.
    assert locations_of_larger(profile) == {"web [req/s]", "bulk", "bulk [req/s]"}
    assert larger_is_better({}) == larger_is_better({"header": 1}) == frozenset()
