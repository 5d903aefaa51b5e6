"""A real `sshd` of the tests' own, with a port and keys of its own, and an `ssh` that knows it by names."""

import getpass
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from pools import eventually

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/server
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
CLIENT = """\
Host down
  Port 1
Host locked
  IdentityFile {folder}/stranger
Host * !locked
  IdentityFile {folder}/user
Host unknown
  UserKnownHostsFile /dev/null
Host *
  HostName 127.0.0.1
  HostKeyAlias machines
  Port {port}
  User {user}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


class SshServer:
    """A server that runs: any name of a machine leads to it, but for `down`, whose port is closed. It lets
    nobody in as `locked`, and `unknown` has another key than the known one.

    :ivar tools: a folder with an `ssh` that knows these names, for PATH.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.tools = folder / "bin"
        self.tools.mkdir()

    def script(self, name: str, environment: Mapping[str, str], program: str) -> str:
        """A program that runs another one with this environment and nothing else; its path."""
        words = "".join(f' "{key}={value}"' for key, value in environment.items())
        return self._executable(name, f'#!/bin/sh\nexec env -i{words} "{program}" "$@"\n')

    def _executable(self, name: str, text: str) -> str:
        path = self.tools / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve until the end of the block."""
        for name in ("server", "user", "stranger"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)]
            subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self._folder / "user.pub", self._folder / "authorized")
        key = (self._folder / "server.pub").read_text()
        (self._folder / "known").write_text(f"machines {key}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        filled = {"folder": self._folder, "port": port, "user": getpass.getuser()}
        for name, text in (("sshd_config", SERVER), ("ssh_config", CLIENT)):
            (self._folder / name).write_text(text.format(**filled))
        ssh = shutil.which("ssh")
        self._executable("ssh", f'#!/bin/sh\nexec "{ssh}" -F "{self._folder}/ssh_config" "$@"\n')
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # without it sshd does not start
        with open(self._folder / "sshd.log", "wb") as log:
            words = [str(SSHD), "-D", "-e", "-f", str(self._folder / "sshd_config")]
            with subprocess.Popen(words, stdout=log, stderr=log) as server:
                try:
                    eventually(lambda: _answers(port), server)
                    yield
                finally:
                    server.terminate()


@contextmanager
def served(folder: Path) -> Iterator[SshServer]:
    """A server until the end of the block; its files are in the folder."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("sshd is not installed: tools/install_tools.sh servers")
    server = SshServer(folder)
    with server.served():
        yield server


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as one:
            return one.recv(4) == b"SSH-"
    except OSError:
        return False
