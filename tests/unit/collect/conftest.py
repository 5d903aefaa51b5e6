"""A real program to measure, that does on request what measured programs do."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.plugin.api import Run

SOURCE = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void busy(double seconds) {
    struct timespec used;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec + used.tv_nsec / 1e9 < seconds);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const char *with = argc > 2 ? argv[2] : "";
    if (!strcmp(what, "sleep")) usleep(1e6 * atof(with));
    if (!strcmp(what, "busy")) busy(atof(with));
    if (!strcmp(what, "child")) {            /* the work is done by a descendant */
        if (!fork()) { busy(atof(with)); _exit(0); }
        wait(NULL);
    }
    if (!strcmp(what, "family")) {           /* a descendant that outlives its parent, its pid in a file */
        pid_t pid = fork();
        if (!pid) { sleep(60); _exit(0); }
        FILE *file = fopen(with, "w");
        fprintf(file, "%d %d\n", getpid(), pid);
        fclose(file);
        sleep(60);
    }
    if (!strcmp(what, "fail")) {             /* that many lines of complaint */
        for (int i = 1; i <= atoi(with); i++) fprintf(stderr, "complaint %d\033[31m\n", i);
        return 3;
    }
    if (!strcmp(what, "third")) {            /* only the third run fails */
        int file = open(with, O_RDWR | O_APPEND | O_CREAT, 0600);
        if (write(file, "x", 1) != 1) return 9;
        return lseek(file, 0, SEEK_END) == 3 ? 7 : 0;
    }
    if (!strcmp(what, "signal")) raise(atoi(with));
    if (!strcmp(what, "stop")) {             /* stops itself; a descendant lets it go on */
        pid_t self = getpid();
        if (!fork()) { usleep(20000); kill(self, SIGCONT); _exit(0); }
        raise(SIGSTOP);
        wait(NULL);
    }
    if (!strcmp(what, "count")) {            /* the exit status is the number of bytes on standard input */
        int count = 0;
        while (getchar() != EOF) count++;
        return count;
    }
    if (!strcmp(what, "terminal")) {
        char byte;
        return read(open("/dev/tty", O_RDONLY), &byte, 1) != 1;
    }
    if (!strcmp(what, "describe")) {         /* where and how it runs, into a file */
        char folder[4096];
        struct sigaction pipe;
        sigset_t blocked;
        sigaction(SIGPIPE, NULL, &pipe);
        sigprocmask(SIG_BLOCK, NULL, &blocked);
        FILE *file = fopen(with, "w");
        fprintf(file, "%s\n%s\n%d %d %d\n", argv[0], getcwd(folder, sizeof folder), getpgrp() == getpid(),
                pipe.sa_handler == SIG_DFL, sigismember(&blocked, SIGINT) || sigismember(&blocked, SIGTERM));
        for (int fd = 0; fd < 64; fd++)
            if (fcntl(fd, F_GETFD) != -1 && fd != fileno(file)) fprintf(file, "%d ", fd);
        fprintf(file, "\n");
        for (char **entry = environ; *entry; entry++) fprintf(file, "%s\n", *entry);
        fclose(file);
    }
    puts("this goes nowhere");
    return 0;
}
"""


@pytest.fixture(scope="session")
def program_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled program `prog`."""
    folder = tmp_path_factory.mktemp("program")
    source = folder / "prog.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", folder / "prog", source], check=True)
    return folder


@pytest.fixture
def make_run(program_folder: Path) -> Callable[..., Run]:
    """A run of `prog` with the given arguments and workload, in its folder, with almost no environment."""

    def make(args: str = "", workload: str = "", **changes: object) -> Run:
        values: dict[str, object] = {
            "cmd": "./prog", "args": args, "workload": workload, "cwd": program_folder,
            "environ": {"PATH": "/usr/bin:/bin"}
        }  # fmt: skip
        return Run(**(values | changes))  # type: ignore[arg-type]

    return make
