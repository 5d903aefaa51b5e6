/* Starts a command from a process so small that its own memory does not count as the command's.
 *
 * Linux begins to count the peak memory of a process with that of the process that started it: `wait4` says of
 * `true` that it took 120 MB where a Python program with a few libraries started it. So where the peak is wanted,
 * Perun starts this program, which starts the command, and ends as that did.
 *
 * Usage: perun_launch RESULT PROGRAM ARGUMENT...
 *
 * RESULT gets one line: real, user and system time in microseconds, and the peak in bytes. ARGUMENT is the argument
 * vector of PROGRAM, its name included.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long microseconds(const struct timeval *time) { return time->tv_sec * 1000000LL + time->tv_usec; }

static long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    long long start;
    double real;
    FILE *file;
    pid_t pid;
    int status, problem;

    if (argc < 4) {
        fprintf(stderr, "usage: perun_launch RESULT PROGRAM ARGUMENT...\n");
        return 2;
    }
    start = now();
    problem = posix_spawn(&pid, argv[2], NULL, NULL, argv + 3, environ);
    if (problem) {
        fprintf(stderr, "cannot start %s: %s\n", argv[2], strerror(problem));
        return 127;
    }
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return 126;
    real = (now() - start) / 1e3;

    file = fopen(argv[1], "we");
    if (!file)
        return 126;
    /* The kernel counts `ru_maxrss` in KiB. */
    fprintf(file, "%.3f %lld %lld %lld\n", real, microseconds(&usage.ru_utime), microseconds(&usage.ru_stime),
            usage.ru_maxrss * 1024LL);
    if (fclose(file))
        return 126;

    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
