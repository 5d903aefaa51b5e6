/* Spends the CPU time of its thread in known shares: 10, 20, 30 and 40 % in `tenth`, `fifth`, `third` and `most`.
 *
 *     sampled MODE SECONDS
 *
 * How long a function works is measured by the clock of the thread for CPU time, so that no load of the machine changes
 * the shares. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static long used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

#define SPENDS(name, share)                                                  \
    __attribute__((noinline)) long name(long end) {                          \
        for (end += share * 50000L; used() < end;)                           \
            for (unsigned long i = 0, x = i; i < 20000; i++)                 \
                sink = x = x * 6364136223846793005UL + i;                    \
        return end;                                                          \
    }
SPENDS(tenth, 10)
SPENDS(fifth, 20)
SPENDS(third, 30)
SPENDS(most, 40)

__attribute__((noinline)) long around(long end) {
    end = tenth(end) + 1;
    end = fifth(end) + 1;
    end = third(end) + 1;
    return most(end) + 1;
}

__attribute__((noinline)) long deeper(int depth, long end) {
    return (depth ? deeper(depth - 1, end) : around(end)) + 1;
}

static double seconds;
static int depth;

static void *work(void *unused) {
    long end = used(), last = end + (long)(seconds * 1e9);
    while (end < last)
        end = deeper(depth, end);
    return unused;
}

__attribute__((noinline)) void nap(void) {
    nanosleep(&(struct timespec){1, 0}, NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_lock(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void on_signal(int number) {
    sink = (unsigned long)number;
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "plain";
    char text[64];
    seconds = count > 2 ? atof(words[2]) : 1;
    if (!strcmp(mode, "threads")) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "waits")) {
        pthread_t thread;
        pthread_mutex_lock(&lock);
        pthread_create(&thread, NULL, wait_for_lock, NULL);
        nap();
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    } else if (!strcmp(mode, "fork")) {
        if (!fork()) {
            work(NULL);
            _exit(0);
        }
        wait(NULL);
    } else if (!strcmp(mode, "exec") || !strcmp(mode, "vfork")) {
        pid_t child = mode[0] == 'v' ? vfork() : 0;
        if (!child) {
            execl("/proc/self/exe", "sampled", "plain", words[2], (char *)NULL);
            _exit(1);
        }
        wait(NULL);
    } else if (!strcmp(mode, "dlopen")) {
        void *(*loaded)(double) = (void *(*)(double))dlsym(dlopen(words[3], RTLD_NOW), "loaded");
        loaded(seconds);
    } else if (!strcmp(mode, "forks")) {
        seconds = 0;
        for (int i = 0; i < atoi(words[2]); i++) {
            if (!fork())
                _exit(0);
            wait(NULL);
        }
        seconds = 0.3;
        work(NULL);
    } else {
        if (!strcmp(mode, "deep"))
            depth = 200;
        if (!strcmp(mode, "closed"))
            for (int i = 3; i < 1024; i++)
                close(i);
        if (!strcmp(mode, "signals")) {
            struct itimerval often = {{0, 1000}, {0, 1000}};
            signal(SIGPROF, on_signal);
            setitimer(ITIMER_PROF, &often, NULL);
        }
        work(NULL);
    }
    if (fgets(text, sizeof(text), stdin))
        printf("read %s", text);
    fputs("to standard error\n", stderr);
    if (!strcmp(mode, "killed"))
        raise(SIGKILL);
    return !strcmp(mode, "fails") ? 7 : 0;
}

/* Of the library that this is, too. */
void *loaded(double how_long) {
    seconds = how_long;
    return work(NULL);
}
