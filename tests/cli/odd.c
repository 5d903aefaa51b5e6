/* Loaded into a process: a clock that is wrong by ODD_CLOCK seconds, and a file system that cannot lock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    const char *off = getenv("ODD_CLOCK");
    if (status == 0 && clock == CLOCK_REALTIME && off)
        now->tv_sec += atol(off);
    return status;
}

int flock(int file, int operation)
{
    static int (*next)(int, int);
    if (!next)
        next = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    const char *number = getenv("ODD_FLOCK");
    if (!number)
        return next(file, operation);
    errno = atoi(number);
    return -1;
}
