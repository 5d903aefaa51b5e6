"""The manual's page on security: each of its promises is held by a test, which this list names."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
UNTESTED = ("What this does not protect from", "Reporting")
"""Sections that promise nothing of Perun."""

HELD_BY = {
    "You can look at the repository of a stranger": "clone::test_what_reads_runs_nothing_and_works",
    "commands, with their arguments": "clone::test_what_would_run_something_names_it_and_runs_nothing",
    "builds": "clone::test_what_would_run_something_names_it_and_runs_nothing",
    "collectors, postprocessors": "clone::test_what_would_run_something_names_it_and_runs_nothing",
    "generators of workloads": "sentences::test_the_doctor_runs_no_generator_of_a_stranger",
    "plugins": "clone::test_plugins_are_named_but_not_loaded",
    "another version control": "clone::test_a_bare_repository_inside_the_working_tree_is_not_used",
    "places to share profiles at": "sentences::test_the_remote_of_a_stranger_is_not_used",
    "a database of profiles": "sentences::test_the_database_of_a_stranger_is_not_opened",
    "the editor": "clone::test_the_editor_of_a_repository_is_asked_about_too",
    "filters of git": "clone::test_what_reads_runs_nothing_and_works",
    "a folder of hooks": "places::test_the_folder_that_a_stranger_names_is_asked_about",
    "what is left to be done": "left::test_the_batch_and_the_saved_state_of_a_pull_are_asked_about",
    "All of this needs one decision": "clone::test_what_would_run_something_names_it_and_runs_nothing",
    "`status`, `log`, `show`": "clone::test_what_reads_runs_nothing_and_works",
    "Perun leaves files for later": ("left::test_a_mark_is_of_this_user_this_repository_and_this_command"),
    "Journals without your mark": "left::test_the_bisection_of_a_pull_is_asked_about",
    "`fuzz --resume`, `--replay`": "left::test_the_campaign_of_somebody_else_is_asked_about",
    "Of the queue of the hooks": (
        "places::test_what_others_put_into_the_queue_is_neither_measured_nor_removed"
    ),
    "`bisect` and `explain` take": "left::test_a_command_that_only_profiles_name_is_asked_about",
    "Builds in `.perun/cache/builds`": (
        "../unit/running/test_builds::test_builds_that_came_with_a_clone_are_not_used"
    ),
    "The machines of `--on ssh:FILE`": "left::test_the_machines_of_a_tracked_file_are_asked_about",
    "Where nobody can be asked": "left::test_a_yes_to_a_campaign_holds_for_that_campaign",
    "URLs of remotes and of stores": "secrets::test_nothing_stores_or_shows_them",
    "On a terminal Perun asks once": "clone::test_trust_is_asked_for_once_on_a_terminal",
    "What you make yourself is trusted": (
        "decision::test_what_one_makes_oneself_is_trusted_however_it_is_edited"
    ),
    "The decision holds for that place": "decision::test_what_a_pull_changes_is_asked_about",
    "The decision lies with your settings": (
        "decision::test_the_record_is_private_and_outside_of_the_repository"
    ),
    "In continuous integration": "clone::test_the_environment_trusts_in_continuous_integration",
    "The key `plugins.trusted`": "decision::test_the_setting_of_earlier_releases_trusts_the_whole",
    "Perun uses the nearest": "places::test_the_search_ends_at_the_top_of_the_git_repository",
    "The search ends at the top": "places::test_the_search_ends_at_the_top_of_the_git_repository",
    "One that belongs to another user": "places::test_the_perun_of_another_user_is_not_used",
    "Settings of instances above": "places::test_an_untrusted_parent_gives_nothing_to_those_below",
    "Hooks of git": "clone::test_where_the_repository_is_trusted_only_its_filters_run",
    "Where Perun only reads": (
        "clone::test_missing_objects_are_not_fetched_even_where_the_repository_is_trusted"
    ),
    "A bare repository inside": "clone::test_a_bare_repository_inside_the_working_tree_is_not_used",
    "Code from caches": "files::test_the_cache_lies_among_those_of_the_user_and_is_private",
    "Files of a `.perun` are opened only": "files::test_nothing_waits_for_a_pipe_or_reads_a_device",
    "`perun web serve` listens on this machine": "web::test_reading_needs_the_token_where_it_is_asked_for",
    "Nothing can be changed through it": "web::test_nobody_else_changes_anything",
    "It answers under its own names": "web::test_other_names_are_refused",
    "A page of another site reads nothing": "web::test_pages_of_others_read_nothing",
    "Pages run no script but": "web::test_each_page_comes_with_the_policy_and_without_scripts_in_it",
    "Addresses name pieces": "web::test_other_addresses_are_told_so",
    "Other users of the machine": "web::test_reading_needs_the_token_where_it_is_asked_for",
    "A request has to come within": "../unit/web/test_server::test_a_byte_now_and_then_is_not_waited_for",
    "`perun ci report` runs with rights": (
        "../ci/test_strangers::test_commands_that_are_proposed_hold_no_text_of_a_stranger"
    ),
    "A profile that is damaged": "pages::test_no_text_of_a_profile_becomes_part_of_the_page",
    "A damaged program is named": (
        "../fuzz/test_damaged_programs::test_a_damaged_unit_leaves_functions_by_their_symbols"
    )
}  # fmt: skip


def promises() -> list[str]:
    """The rows of tables, items of lists and paragraphs of the page."""
    text = re.sub(r"```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.S)
    found = []
    for section in re.split(r"^#+ ", text, flags=re.M):
        title, _, body = section.partition("\n")
        if title in UNTESTED:
            continue
        for block in re.split(r"\n\n|\n(?=- |\| )", body):
            block = block.strip().removeprefix("- ")
            if block.startswith("|"):
                cells = [cell.strip() for cell in block.strip("|").split("|")]
                block = "" if cells[0] in ("what", "---") else cells[0]
            if block:
                found.append(" ".join(block.split()))
    return found


def test_each_promise_has_a_test() -> None:
    unheld = [one for one in promises() if not any(one.startswith(start) for start in HELD_BY)]
    assert unheld == []


@pytest.mark.parametrize("start", HELD_BY)
def test_each_test_is_there_and_its_promise_is_made(start: str) -> None:
    assert any(one.startswith(start) for one in promises())
    module, _, name = HELD_BY[start].partition("::")
    file = module if "/" in module else f"test_{module}"
    tree = ast.parse((Path(__file__).parent / f"{file}.py").read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_doctor_runs_no_generator_of_a_stranger(perun, clone, traps):
    told = perun("doctor", check=False)
    assert "perun trust" in told.out + told.err and traps.sprung == []


def test_the_database_of_a_stranger_is_not_opened(perun, clone, tmp_path):
    database = tmp_path / "profiles.db"
    (clone.path / ".perun" / "local.yml").write_text(f"store: {{url: 'sqlite:///{database}'}}\n", "utf-8")
    refused = perun("status", check=False)
    assert (refused.code, "store.url" in refused.err) == (11, True), refused.err
    assert not database.exists()


def test_the_remote_of_a_stranger_is_not_used(perun, clone, tmp_path):
    remotes = f"remotes: [{{name: team, url: 'file://{tmp_path}/shared'}}]\n"
    (clone.path / ".perun" / "local.yml").write_text(remotes, "utf-8")
    for words in (("push",), ("pull",), ("fetch",), ("fsck", "--remote", "team"), ("gc", "--remote", "team")):
        refused = perun(*words, check=False)
        assert (refused.code, "using the remote team" in refused.err) == (11, True), (words, refused)
    assert not (tmp_path / "shared").exists()
