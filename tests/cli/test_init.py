from __future__ import annotations


def test_smoke(project, perun, write_profile):
    write_profile()
    print(perun("status").out)
    print(perun("add", "0@p").out)
    print(perun("log", "-s").out)
