/* Starts a command from a process so small that its own memory does not count as the command's.
 *
 * Linux begins to count the peak memory of a process with that of the process that started it: `wait4` says of
 * `true` that it took 120 MB where a Python program with a few libraries started it. So where the peak is wanted,
 * Perun starts this program, which starts the command, and ends as that did.
 *
 * Usage: perun_launch RESULT PROGRAM ARGUMENT...
 *        perun_launch --duet SIDE SIDE ARGUMENT...
 *
 * RESULT gets one line: real, user and system time in microseconds, the peak in bytes, and the status as `wait4` gives
 * it. ARGUMENT is the argument vector of PROGRAM, its name included.
 *
 * A duet is two programs that start at the same moment, each on a processor of its own. SIDE is six words: PROCESSOR
 * FOLDER INPUT ERRORS RESULT PROGRAM; INPUT and ERRORS are files, standard input and standard error of that side. Where
 * one of them fails, the other is killed, with all of the process group that this program leads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOT_STARTED 127
#define NOT_WRITTEN 126

enum { PROCESSOR, FOLDER, INPUT, ERRORS, RESULT, PROGRAM, WORDS };

extern char **environ;

/* Whether this process was asked to end, as its program was: that has time to do so, and its end is no failure. */
static volatile sig_atomic_t asked;

static void ask(int number)
{
    (void)number;
    asked = 1;
}

static long long microseconds(const struct timeval *time) { return time->tv_sec * 1000000LL + time->tv_usec; }

static long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void end_as(int status)
{
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

/* Writes a line to the file, which is opened with this mode. */
static int note(const char *result, const char *mode, double real, const struct rusage *usage, int status)
{
    FILE *file = fopen(result, mode);

    if (!file)
        return -1;
    /* The kernel counts `ru_maxrss` in KiB. */
    fprintf(file, "%.3f %lld %lld %lld %d\n", real, microseconds(&usage->ru_utime), microseconds(&usage->ru_stime),
            usage->ru_maxrss * 1024LL, status);
    return fclose(file);
}

/* Runs the program to its end, and ends as it did. */
static void launch(const char *result, const char *program, char **arguments)
{
    struct rusage usage;
    long long start = now();
    pid_t pid;
    int status, problem = posix_spawn(&pid, program, NULL, NULL, arguments, environ);

    if (problem) {
        fprintf(stderr, "cannot start %s: %s\n", program, strerror(problem));
        _exit(NOT_STARTED);
    }
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            _exit(NOT_WRITTEN);
    if (note(result, "we", (now() - start) / 1e3, &usage, status))
        _exit(NOT_WRITTEN);
    if (asked)
        _exit(0);
    end_as(status);
}

static void need(int number, const char *what)
{
    if (number < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        _exit(NOT_STARTED);
    }
}

static void redirect(int number, const char *path, int flags)
{
    int file = open(path, flags | O_CLOEXEC, 0600);

    need(file, path);
    need(dup2(file, number), path);
}

/* One side: is ready when it closes `ready`, and begins when nobody can write to `gate` any more. */
static void play(char **side, char **arguments, int ready, int gate)
{
    cpu_set_t *processors;
    int number = atoi(side[PROCESSOR]);
    size_t size = CPU_ALLOC_SIZE(number + 1);
    char nothing;

    signal(SIGTERM, ask);
    redirect(STDERR_FILENO, side[ERRORS], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    redirect(STDIN_FILENO, side[INPUT], O_RDONLY);
    need(chdir(side[FOLDER]), side[FOLDER]);
    processors = CPU_ALLOC(number + 1);
    CPU_ZERO_S(size, processors);
    CPU_SET_S(number, size, processors);
    need(sched_setaffinity(0, size, processors), "processor");
    close(ready);
    need(read(gate, &nothing, 1), "gate");
    launch(side[RESULT], side[PROGRAM], arguments);
}

static int duet(char **sides, char **arguments)
{
    static const struct rusage none;
    pid_t pids[2], pid;
    int ready[2], gate[2], number, status = 0;
    char nothing;

    need(pipe2(ready, O_CLOEXEC), "pipe");
    need(pipe2(gate, O_CLOEXEC), "pipe");
    for (number = 0; number < 2; number++) {
        pids[number] = fork();
        need(pids[number], "fork");
        if (!pids[number]) {
            close(gate[1]);
            play(sides + number * WORDS, arguments, ready[1], gate[0]);
        }
    }
    close(ready[1]);
    while (read(ready[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    close(gate[1]);
    while ((pid = wait(&status)) > 0 || errno == EINTR)
        if (pid > 0 && status) {
            /* Of what could not be started there is no result yet. */
            note(sides[(pid == pids[1]) * WORDS + RESULT], "wxe", 0, &none, status);
            if (getpgrp() == getpid())
                kill(0, SIGKILL);
            end_as(status);
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 + 2 * WORDS && !strcmp(argv[1], "--duet"))
        return duet(argv + 2, argv + 2 + 2 * WORDS);
    if (argc < 4) {
        fprintf(stderr, "usage: perun_launch RESULT PROGRAM ARGUMENT...\n");
        return 2;
    }
    launch(argv[1], argv[2], argv + 3);
    return NOT_WRITTEN;
}
