"""The scripts of `perun completion`, and what they are answered (click's protocol for shells)."""

import shutil
import subprocess

import pytest


@pytest.fixture
def complete(perun):
    """What completes the last word of a line, as bash asks for it: `complete("perun add 0")`."""

    def complete(line, **options):
        env = {
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
            "_PERUN_COMPLETE": "bash_complete",
        }
        done = perun(env=env, check=False, **options)
        assert done.code in (0, 5)
        assert done.err == ""
        return [one.partition(",")[2] for one in done.lines if one.startswith("plain,")]

    return complete


@pytest.fixture
def profiles(perun, write_profile):
    write_profile("first.perf")
    perun("add", "0@p")
    write_profile("second.perf")
    write_profile("third.perf")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_right(perun, tmp_path, shell):
    script = perun("completion", shell).out
    assert f"_PERUN_COMPLETE={shell}_complete" in script
    assert "perun completion" in script.splitlines()[-1]  # where to put it
    if shutil.which(shell):
        done = subprocess.run(
            [shell, "-n", "/dev/stdin"], input=script, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_in_bash_itself(environment, command, project, profiles, tmp_path):
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    program = tmp_path / "bin" / "perun"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    program.chmod(0o755)
    env = {**environment, "PATH": f"{program.parent}:{environment['PATH']}"}
    script = (
        'eval "$(perun completion bash)"\n'
        'COMP_WORDS=(perun add ""); COMP_CWORD=2; _perun_completion perun; echo "${COMPREPLY[@]}"'
    )
    # As bash divides `perun show HEAD:0`, of which it replaces the last word.
    script += (
        "\nCOMP_WORDS=(perun show HEAD : 0); COMP_CWORD=4; COMPREPLY=(); _perun_completion perun; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0@p 1@p\n0@i\n", "")


def test_profiles_of_a_version(complete, perun, project, write_profile):
    write_profile("old.perf", origin="HEAD~1")
    perun("add", "--to-origin", "0@p")
    write_profile("new.perf")
    assert complete("perun show HEAD~1:") == ["HEAD~1:0@i", "HEAD~1:old.perf"]
    # bash takes a colon for a word, and puts what completes it behind that.
    assert complete("perun show HEAD~1 :") == ["0@i", "old.perf"]
    assert complete("perun check profiles 0@p HEAD~1 : ol") == ["old.perf"]
    assert complete("perun rm HEAD:") == []
    assert complete("perun show 0@p flamegraph --diff HEAD~1 : 0") == ["0@i"]


def test_commands_and_options(complete, tmp_path):
    assert complete("perun st") == ["status", "stats"]
    assert complete("perun utils cr") == ["create"]
    assert set(complete("perun utils create ")) >= {"collect", "postprocess", "view", "check", "workload"}
    assert complete("perun stats delete fi") == ["file"]
    assert complete("perun temp list --sort-by si") == ["size"]
    assert set(complete("perun ")) >= {"init", "config", "add", "rm", "status", "log", "run", "check", "show"}
    assert set(complete("perun config ")) == {"edit", "get", "reset", "set"}
    assert complete("perun status --sh") == ["--short"]
    assert complete("perun status --sort-by ti") == ["time"]
    assert complete("perun completion z") == ["zsh"]


def test_tags_and_names(complete, project, profiles):
    assert complete("perun add ") == ["0@p", "1@p"]
    assert complete("perun add 1") == ["1@p"]
    assert complete("perun add th") == ["third.perf"]
    assert complete("perun rm ") == ["0@i", "0@p", "1@p"]
    assert complete("perun rm fi") == ["first.perf"]
    assert complete("perun show 0") == ["0@i", "0@p"]


def test_versions(complete, project):
    project.git("branch", "feature")
    assert complete("perun log fe") == ["feature"]
    assert complete("perun log ")[:3] == ["HEAD", "feature", "main"]
    assert complete(f"perun log {project.head[:6]}") == [project.head[:10]]
    assert complete("perun add -m fe") == ["feature"]


def test_metrics_and_versions_of_a_comparison(complete, project):
    assert complete("perun compare --metric c") == ["cpu", "complexity"]
    project.git("branch", "feature")
    assert complete("perun compare fe") == complete("perun compare HEAD fe") == ["feature"]


def test_keys_of_the_configuration(complete, tmp_path):
    assert complete("perun config get vcs.") == ["vcs.type", "vcs.url", "vcs.main_branch"]
    assert "degradation.strategies" in complete("perun config set degr")


def test_plugins(complete, project, profiles):
    assert complete("perun show 0@i ra") == ["raw"]
    assert complete("perun show nothing ta") == ["tableof"]
    assert "time" in complete("perun collect ")
    assert "--repeat" in complete("perun collect time --re")


def test_outside_of_a_repository_nothing_is_found(complete, tmp_path):
    assert complete("perun add ") == []
    assert complete("perun log ") == []
    assert complete("perun show x ra") == ["raw"]


def test_a_broken_configuration_is_no_obstacle(complete, project, profiles):
    (project.path / ".perun" / "local.yml").write_text("{")
    assert complete("perun add ") == []
    assert complete("perun stat") == ["status", "stats"]
    assert complete("perun show x ") == []
