"""What the dashboard says of a batch that is measured."""

from __future__ import annotations

from perun.repository import journal as journal_file
from perun.running.run import journal as journals
from perun.running.run import matrix
from perun.web.data.versions import running


def test_a_batch_is_told_while_a_process_works_on_it(measured):
    repo = measured.open()
    assert running(repo) is None
    plan = {"versions": [1, 2], "stops": [["a", 0, [[0, 0], [1, 1]]], ["b", 0, [[2, 0]]]]}
    journal = journal_file.create(matrix.folder(repo), plan)
    found = running(repo)
    assert (found.title, found.done, found.total, found.seconds_left) == ("measuring 2 versions", 0, 3, None)
    for line in (["saving", 0, "x"], ["done", 0], ["failed", 1, "why"]):
        journal.append(*line)
    found = running(repo)
    assert (found.done, found.total) == (2, 3)
    assert 0 <= found.seconds_left < 3600
    journal.close()
    assert running(repo) is None


def test_a_pause_does_not_count(measured):
    """A batch that was begun years ago, whose failures are measured again now."""
    repo = measured.open()
    journal = journal_file.create(matrix.folder(repo), {"versions": [1], "stops": [["a", 0, [[0, 0]] * 4]]})
    for line in (["done", 0], ["failed", 1, "why"]):
        journal.append(*line)
    journal.close()
    journal.path.rename(journal.path.with_name("20200101-000000-000000-1.jsonl"))
    with journals.newest(matrix.folder(repo)) as resumed:
        resumed.resumed()
        found = running(repo)
        assert (found.done, found.total, found.seconds_left) == (1, 4, None)
        resumed.done(1)
        found = running(repo)
        assert (found.done, found.total) == (2, 4)
        assert 0 <= found.seconds_left < 3600


def test_a_journal_of_another_form_is_told_without_numbers(measured):
    repo = measured.open()
    journal = journal_file.create(matrix.folder(repo), {"stops": "nonsense", "versions": None})
    assert (running(repo).done, running(repo).total) == (0, 0)
    journal.close()
