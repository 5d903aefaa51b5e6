/* What a program built by AFL is for Perun: the fork server of AFL, and counters of 8 bits in its map. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned char *__afl_area_ptr;
#ifdef LOOP
const char *volatile loops = "##SIG_AFL_PERSISTENT##";
#endif

static void serve(void)
{
    int word = 0, status;
#ifdef NEWER
    const char words[] = "some words";
    int answers[] = {0x41464c01, 0x801, 100000, sizeof words}, reply = 0;
    if (write(199, answers, 4) != 4 || read(198, &reply, 4) != 4 || reply != ~answers[0]
        || write(199, answers + 1, 12) != 12 || write(199, words, sizeof words) != sizeof words
        || write(199, answers, 4) != 4)
        _exit(1);
#else
    if (write(199, &word, 4) != 4)
        return;
#endif
    pid_t copy = 0;
    while (read(198, &word, 4) == 4) {
        if (copy)
            kill(copy, SIGCONT);
        else
            copy = fork();
        if (copy == 0) {
            close(198);
            close(199);
            return;
        }
        int how = getenv("__AFL_PERSISTENT") ? WUNTRACED : 0;
        if (write(199, &copy, 4) != 4 || waitpid(copy, &status, how) < 0 || write(199, &status, 4) != 4)
            _exit(1);
        if (!WIFSTOPPED(status))
            copy = 0;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *number = getenv("__AFL_SHM_ID");
    if (getenv("AFL_DUMP_MAP_SIZE")) {
        puts("100000");
        return 0;
    }
    if (number == NULL || argc < 2)
        return 9;
    __afl_area_ptr = shmat(atoi(number), NULL, 0);
    serve();
    int rounds = 0;
again:;
    char text[4096] = "";
    FILE *file = fopen(argv[1], "rb");
    if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0)
        return 5;
    for (char *at = text; *at; at++) {
        __afl_area_ptr[99999]++;
        __afl_area_ptr[(unsigned char)*at]++;
        if (*at == '!')
            abort();
        while (*(volatile char *)at == '~')
            ;
    }
    fclose(file);
#ifdef LOOP
    __afl_area_ptr[200] = ++rounds;
    if (getenv("__AFL_PERSISTENT") && raise(SIGSTOP) == 0)
        goto again;
#endif
    return rounds;
}
