/* Works for each blank of its input; other characters end it in ways of their own.
 * -DEARLY_THREAD, -DEARLY_READ, -DSTARTS_PROCESS make it hard to copy. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int runs;
static long kept[8];

#ifdef EARLY_THREAD
#include <pthread.h>
#ifdef __clang__
__attribute__((no_sanitize("coverage")))
#else
__attribute__((no_profile_instrument_function))
#endif
static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}
__attribute__((constructor)) static void early(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
}
#endif

#ifdef EARLY_READ
static char early_text[4096];
__attribute__((constructor)) static void early(int argc, char **argv)
{
    int file = argc > 1 ? open(argv[1], O_RDONLY) : 0;
    if (read(file, early_text, sizeof early_text - 1) < 0)
        _exit(7);
}
#endif

static int work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

static const char *read_all(int argc, char **argv)
{
    static char text[1 << 16];
    if (argc > 2)
        return argv[2];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
    if (file == NULL)
        exit(5);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    return text;
}

static void check_surroundings(void)
{
    if (getenv("LD_PRELOAD") || getenv("PERUN_FUZZ") || getenv("PERUN_FUZZ_PRELOAD")
        || getenv("LD_BIND_NOW") || getenv("PERUN_FUZZ_BIND"))
        _exit(90);
    if (fcntl(198, F_GETFD) != -1 || fcntl(199, F_GETFD) != -1)
        _exit(91);
}

int main(int argc, char **argv)
{
    const char *text = read_all(argc, argv);
#ifdef EARLY_READ
    text = early_text;
#endif
#ifdef STARTS_PROCESS
    if (fork() == 0) {
        if (strchr(text, 'S'))
            sleep(1000);
        work(3);
        exit(0);
    }
    if (!strchr(text, 'S'))
        wait(NULL);
#endif
    check_surroundings();
    runs++;
    kept[runs % 8] += runs;
    for (int i = 0; i < runs; i++)
        work(1);
    for (; *text; text++) {
        switch (*text) {
        case ' ':
            work(10);
            break;
        case '!':
            abort();
        case '_':
            _exit(3);
        case '~':
            for (;;)
                work(1);
        case '0':
            *(volatile int *)0 = 1;
            break;
        case 'm':
            if (malloc(1u << 30) == NULL)
                exit(4);
            break;
        }
    }
    return kept[0] != 0;
}
