/* Writes the records to a file, and does what the probes ask for in between. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

enum { BUFFER = 1 << 20 };
/* So many functions get probes at their exits one by one; then all do, because each time the program is held up. */
enum { SINGLE_REQUESTS = 8 };

/* A file that the command executed, and that is not traced. */
struct executed {
    unsigned long long device, inode;
    unsigned count;
    char *path;
};

static struct plan *plan;
static struct ring_buffer *ring;
static int output;
static char *buffer;
static size_t filled;
static uint64_t written;
static struct executed *executed;
static unsigned executed_count, held_up;

static void flush(void) {
    size_t done = 0;
    while (done < filled) {
        ssize_t now = write(output, buffer + done, filled - done);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            fail("cannot write the recording: %s", strerror(errno));
        done += (size_t)now;
    }
    written += filled;
    filled = 0;
}

static void keep(const void *record, size_t size) {
    if (filled + size > BUFFER)
        flush();
    memcpy(buffer + filled, record, size);
    filled += size;
}

/* Probe the exits of a function, let the process go on, and note for how long it could not. */
static void answer(const struct perun_request *request) {
    if (request->function >= plan->function_count)
        fail("a probe asks for the exits of an unknown function");
    if (!(plan->functions[request->function].flags & PERUN_AT_EXITS))
        is_switching() ? attach_switched_exits(request->function)
                       : attach_deep_exits(plan, held_up++ < SINGLE_REQUESTS ? request->function : UINT32_MAX, NULL);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t duration = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - request->time;
    const uint64_t pause[2] = {duration, request->thread | (uint64_t)PERUN_PAUSE << 32};
    keep(pause, sizeof(pause));
    kill((pid_t)request->process, SIGCONT);
}

static int is_traced_file(const struct perun_execution *execution) {
    struct stat file;
    for (unsigned number = 0; number < plan->file_count; number++)
        if (!stat(plan->files[number].path, &file) && file.st_ino == execution->inode &&
            (execution->device >> 20) == major(file.st_dev) && (execution->device & 0xfffff) == minor(file.st_dev))
            return 1;
    return 0;
}

static void note_execution(const struct perun_execution *execution) {
    if (execution->is_script || is_traced_file(execution))
        return;
    for (unsigned number = 0; number < executed_count; number++)
        if (executed[number].device == execution->device && executed[number].inode == execution->inode) {
            executed[number].count++;
            return;
        }
    if (execution->stopped && follow_program(execution, plan))
        return;
    executed = resized(executed, (executed_count + 1) * sizeof(*executed));
    executed[executed_count++] =
        (struct executed){execution->device, execution->inode, 1, copied(execution->path, sizeof(execution->path))};
}

static void on_execution(const struct perun_execution *execution) {
    note_execution(execution);
    if (execution->stopped)
        kill((pid_t)execution->stopped, SIGCONT);
}

static int on_record(void *unused, void *data, size_t size) {
    (void)unused;
    if (size == sizeof(struct perun_request))
        answer(data);
    else if (size == sizeof(struct perun_execution))
        on_execution(data);
    else if (size == sizeof(struct perun_limit))
        note_limit(((const struct perun_limit *)data)->function);
    else
        keep(data, size == 24 ? 24 : 16);
    return 0;
}

void open_recording(const char *path, struct plan *recorded) {
    plan = recorded;
    output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (output < 0)
        fail("cannot write %s: %s", path, strerror(errno));
    buffer = resized(NULL, BUFFER);
    ring = ring_buffer__new(map_of("records"), on_record, NULL, NULL);
    if (!ring)
        fail("cannot read the records: %s", strerror(errno));
}

void read_records(void) { ring_buffer__consume(ring); }

/* Read and write the last records; gives the number of bytes of all.
 *
 * The command may leave processes running. From here on none may stop for the loader, which lets nobody go on any more;
 * those that were about to stop have done so after a moment. */
uint64_t close_recording(void) {
    const struct timespec moment = {0, 1000000};
    set_start(0, 0);
    nanosleep(&moment, NULL);
    read_records();
    flush();
    return written;
}

void write_summary(FILE *summary) {
    fprintf(summary, "lost %llu\nuncaught %llu\nunprobed %u\n", (unsigned long long)summed("lost"),
            (unsigned long long)summed("uncaught"), count_unprobed());
    for (unsigned number = 0; number < executed_count; number++)
        fprintf(summary, "executed %u %s\n", executed[number].count, executed[number].path);
    write_switched(summary);
}
