/* Loads the probes, attaches them, runs the command and writes what is recorded to a file.
 *
 *     perun_trace METHOD OBJECT PLAN RECORDS SUMMARY COMMAND ARGUMENT...
 *     perun_trace METHOD
 *
 * METHOD is how probes are attached, and `any` the best of them that the kernel has; the others are for tests:
 *
 *     session      one link catches entries and returns of all functions of a file (Linux 6.13 or newer)
 *     multi        two links do (Linux 6.6 or newer)
 *     perf_event   two events and two links for each function, which takes long (Linux 5.15 or newer)
 *
 * With METHOD alone it prints the method, or why the kernel supports none. read_plan() describes the lines of PLAN.
 * At the end, SUMMARY gets lines `key value`. The kernel removes all probes with this process, whatever ends it, and
 * then the command and all that it has started are killed; see command.c.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

static char libbpf_warnings[4096];
static volatile sig_atomic_t is_stopped;

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "perun_trace: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n%s", libbpf_warnings);
    va_end(arguments);
    exit(125);
}

static int keep_warning(enum libbpf_print_level level, const char *format, va_list arguments) {
    size_t length = strlen(libbpf_warnings);
    if (level == LIBBPF_WARN && length < sizeof(libbpf_warnings) - 1)
        vsnprintf(libbpf_warnings + length, sizeof(libbpf_warnings) - length, format, arguments);
    return 0;
}

void *resized(void *old, size_t size) {
    void *new = realloc(old, size);
    if (!new)
        fail("out of memory");
    return new;
}

char *copied(const char *text, size_t room) {
    size_t length = strnlen(text, room);
    char *copy = memcpy(resized(NULL, length + 1), text, length);
    copy[length] = 0;
    return copy;
}

static void stop(int number) {
    (void)number;
    is_stopped = 1;
}

int must_stop(void) { return is_stopped; }

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Read records until the command has ended; gives its status. */
static int record(const struct command *command) {
    const struct timespec pause = {0, 2000000};
    int status = SIGKILL;
    start_command(command);
    for (;;) {
        int ended = has_ended(command, &status);
        read_records();
        switch_probes();
        if (ended)
            return status;
        if (is_stopped) {
            kill_command(command->supervisor);
            return SIGKILL;
        }
        nanosleep(&pause, NULL);
    }
}

static FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file)
        fail("cannot write %s: %s", path, strerror(errno));
    return file;
}

int main(int count, char **arguments) {
    if (count != 2 && count < 7)
        fail("usage: perun_trace METHOD [OBJECT PLAN RECORDS SUMMARY COMMAND ARGUMENT...]");
    libbpf_set_print(keep_warning);
    enum method method = method_named(*++arguments);
    if (count == 2)
        return puts(method_names[method]) < 0;
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (getppid() != parent)
        return 125;
    struct plan plan = {0};
    read_plan(arguments[2], &plan);
    struct command command = prepare_command(arguments + 5);
    start_switching(&plan);
    load(method, arguments[1], &plan);
    set_start(command.supervisor, plan.follow != NULL);
    double start = seconds();
    attach_all(&plan);
    switch_probes();
    double attached = seconds() - start;
    if (is_stopped) { /* before the command began: it does not, and no summary says what it recorded */
        kill_command(command.supervisor);
        detach();
        return 125;
    }
    open_recording(arguments[3], &plan);

    int status = record(&command);
    unsigned long long bytes = close_recording();
    FILE *summary = opened(arguments[4], "w");
    fprintf(summary, "status %d\nway %s\nattached %.6f\nbytes %llu\n", status, method_names[method], attached, bytes);
    write_summary(summary);
    fclose(summary);
    if (!detach()) {
        summary = opened(arguments[4], "a");
        fprintf(summary, "detaching 1\n");
        fclose(summary);
    }
    return 0;
}
