/* Follows programs that the command executes, with --follow-children.
 *
 * The process stops before the first instruction of the program. The loader writes its path to the pipe `ask`, and reads
 * the path of a plan from the pipe `answer`: its probes go on with the numbers of the functions. An empty answer means
 * that nothing in the program is to be traced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader.h"

enum { ASK, ANSWER };

static int opened_pipe(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int file = open(path, O_RDWR | O_CLOEXEC); /* does not wait for the other side */
    if (file < 0)
        fail("cannot open %s: %s", path, strerror(errno));
    return file;
}

/* Read a line without its end; false if the run is to end. */
static int read_line(int file, char *line, size_t room) {
    struct pollfd input = {.fd = file, .events = POLLIN};
    for (size_t length = 0; length < room && !must_stop();) {
        if (poll(&input, 1, 100) <= 0)
            continue;
        if (read(file, line + length, 1) != 1)
            continue;
        if (line[length] == '\n') {
            line[length] = 0;
            return 1;
        }
        length++;
    }
    return 0;
}

/* The path of the program that a stopped process executes; false if it is another file here than there. */
static int find_program(const struct perun_execution *execution, char *path, size_t room) {
    char link[64];
    struct stat file;
    snprintf(link, sizeof(link), "/proc/%u/exe", execution->stopped);
    ssize_t length = readlink(link, path, room - 1);
    if (length <= 0 || memchr(path, '\n', (size_t)length))
        return 0;
    path[length] = 0;
    return !stat(path, &file) && file.st_ino == execution->inode &&
           (execution->device >> 20) == major(file.st_dev) && (execution->device & 0xfffff) == minor(file.st_dev);
}

/* Probe a program that was not traced so far; false if nothing of it is traced. */
int follow_program(const struct perun_execution *execution, struct plan *plan) {
    static int pipes[2];
    char path[PATH_MAX], answer[PATH_MAX];
    if (!find_program(execution, path, sizeof(path)))
        return 0;
    if (!pipes[ANSWER]) {
        pipes[ASK] = opened_pipe(plan->follow, "ask");
        pipes[ANSWER] = opened_pipe(plan->follow, "answer");
    }
    if (dprintf(pipes[ASK], "%s\n", path) < 0 || !read_line(pipes[ANSWER], answer, sizeof(answer)) || !*answer)
        return 0;
    unsigned files = plan->file_count, functions = plan->function_count;
    read_plan(answer, plan);
    attach_more(plan, files, functions);
    return 1;
}
