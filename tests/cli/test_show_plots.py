"""`perun show bars`, `flow` and `scatter`: files, the browser, the terminal, and what is refused."""

import pytest

from perun.view._common.chart_view import bokeh_script

KEYS = "known are: amount, order, snapshots, subtype, type, uid"
OPTIONS = {
    "bars": ("--of", "amount", "--per", "order"),
    "flow": ("--of", "amount", "--through", "order", "--by", "uid"),
    "scatter": ("--per", "order"),
}
HEADINGS = {
    "bars": "Time of ./app input.txt per run",
    "flow": "Accumulated time of ./app input.txt per run",
    "scatter": "Time of ./app input.txt per run: ./app",
}


@pytest.fixture(params=OPTIONS)
def view(request):
    return request.param


def test_a_page_gets_a_name_that_is_free(perun, project, write_profile, view):
    write_profile()
    first = perun("show", "0@p", view, *OPTIONS[view])
    assert (first.out, first.err) == (f"{view}-time-app-input.txt.html\n", "")
    page = (project.path / first.lines[0]).read_bytes()
    assert perun("show", "0@p", view, *OPTIONS[view]).out == f"{view}-time-app-input.txt(1).html\n"
    assert (project.path / first.lines[0]).read_bytes() == page
    assert len(page) - len(bokeh_script().encode()) < 100_000  # what is Perun's


def test_a_page_that_is_named_is_replaced(perun, project, write_profile, view):
    write_profile()
    (project.path / "x.html").write_text("what was there")
    labels = ("-gt", "My <title>", "-xl", "the order", "-yl", "how long")
    assert perun("show", "0@p", view, *OPTIONS[view], "-f", "x.html", *labels).out == "x.html\n"
    page = (project.path / "x.html").read_text("utf-8")
    assert "<title>My &lt;title&gt;</title>" in page
    assert '"axis_label":"the order"' in page
    assert '"axis_label":"how long"' in page
    assert "what was there" not in page
    refused = perun("show", "0@p", view, *OPTIONS[view], "-f", "new/folder/x.html", check=False)
    assert (refused.code, refused.out) == (2, "")
    assert "x.html: there is no folder new/folder\nhint: make the folder" in refused.err
    assert not (project.path / "new").exists()


def test_no_browser_is_a_message(perun, project, write_profile, view):
    write_profile()
    nothing = {"BROWSER": "/no/such/browser", "DISPLAY": None, "WAYLAND_DISPLAY": None}
    shown = perun("show", "0@p", view, *OPTIONS[view], "-v", "-f", "x.html", env=nothing)
    assert (shown.code, shown.out) == (0, "x.html\n")
    assert shown.err == "cannot open a browser; open x.html in one\n"
    assert (project.path / "x.html").exists()


def test_text_where_there_is_no_terminal(perun, project, write_profile, view):
    write_profile()
    shown = perun("show", "0@p", view, *OPTIONS[view], "--terminal")
    assert shown.out == perun("show", "0@p", view, "--terminal").out  # no option is needed
    assert shown.lines[0] == HEADINGS[view]
    assert "\x1b" not in shown.out
    assert shown.err == ""
    assert max(map(len, shown.lines)) <= 80
    plain = perun("show", "0@p", view, *OPTIONS[view], "--terminal", env={"PYTHONIOENCODING": "ascii"})
    assert plain.out.isascii()
    assert not list(project.path.glob("*.html"))


def test_as_wide_as_the_terminal_and_with_its_colours(terminal, project, write_profile, view):
    write_profile()
    shown = terminal("show", "0@p", view, *OPTIONS[view], "--terminal", columns=120)
    assert shown.lines[0].rstrip() == HEADINGS[view]
    assert "\x1b[38;5;33m" in shown.out


REFUSED = [
    (("bars", "--of", "amuont"), "--of: no resource has a key 'amuont'", f"did you mean 'amount'?; {KEYS}"),
    (("bars", "-o", "amount", "-p", "nope"), "--per: no resource has a key 'nope'", KEYS),
    (("bars", "-o", "amount", "-b", "nope"), "--by: no resource has a key 'nope'", KEYS),
    (("bars", "-o", "uid"), "--of: no resource has a number in 'uid'", "keys with numbers: amount, order"),
    (("bars", "-o", "amount", "-s"), "--stacked needs a key to divide the bars by", "add --by"),
    (("bars", "-o", "amount", "-g"), "--grouped needs a key to divide the bars by", "add --by"),
    (("bars", "-o", "amount", "-b", "uid", "-s", "-g"), "--stacked and --grouped", "leave out one"),
    (("bars", "summ", "-o", "amount"), "'summ' is not one of 'sum'", "bars --help"),
    (("flow", "-o", "amount", "-b", "uid", "-t", "nope"), "--through: no resource has a key 'nope'", KEYS),
    (("bars", "--y-scale", "logarithmic"), "'logarithmic' is not one of 'auto', 'linear', 'log'", "bars"),
    (("flow", "-s", "--y-scale", "log"), "--y-scale log cannot show areas that add up", "leave out --st"),
    (("scatter", "-p", "order", "-o", "uid"), "--of: no resource has a number in 'uid'", "amount, order"),
    (("scatter", "-p", "order", "--uid", "./ap"), "no resource has the uid './ap'", "did you mean './app'?"),
    (("scatter", "-p", "order", "--terminal", "-f", "x"), "--terminal and --filename", "leave out --t"),
    (("scatter", "-p", "order", "--terminal", "-v"), "--terminal and --view-in-browser", "leave out --t"),
    (("scatter", "-p", "order", "-f", "file.txt/x.html"), "cannot write", "--filename"),
    (("scatter", "-p", "order", "-f", "."), "cannot write .", "--filename"),
]
"""Arguments, with parts of the error and of its hint."""


def test_what_is_refused(perun, project, write_profile):
    write_profile()
    for arguments, message, hint in REFUSED:
        failed = perun("show", "0@p", *arguments, code=2)
        assert failed.out == ""
        error, *rest = failed.err.splitlines()
        assert error.startswith("error: ")
        assert message in error
        assert hint in " ".join(rest)
        assert not list(project.path.glob("*.html"))


def test_a_profile_without_resources(perun, project, write_profile, view):
    write_profile(amounts=())
    perun("show", "0@p", view, *OPTIONS[view], code=6, err=("has no resources", "hint: "))
