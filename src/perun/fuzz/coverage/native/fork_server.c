/* Runs the program that it is loaded into once for each request, each time in a copy of the process as it is
 * before `main`.
 *
 * Requests and answers are those of AFL, on two descriptors: the server writes four bytes when it is ready; for
 * each request of four bytes it answers with the status of the copy when it has ended. The process id of the copy
 * is in the record instead of in another answer, which would wake Perun while the copy runs.
 *
 * A copy is made before it is asked for, while Perun looks at the counters of the one before, and reads the request
 * itself: so the time to make it, and to wake the server for that, is not between a request and its answer.
 *
 * Counters lie in memory that is shared with Perun, so that they are complete however the program ends. Those of
 * gcc lie among other variables of the program: before each run all of their pages are set to what they were.
 */
#define _GNU_SOURCE
#include "fork_server.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_RUN 10000000u /* nanoseconds from which on it is worth asking how long a run waited for a core */
#define EXPORT __attribute__((visibility("default")))

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

/* A range as it is in this process. */
struct pages {
    char *address;
    char *before; /* its content before `main` */
    size_t length;
};

static struct perun_fuzz *shared;
static int shared_file = -1;
static struct pages *pages;
static size_t pages_count;
static main_function *program_main;

/* Counters of edges: private ones until Perun's are known, and where the program runs without Perun. */
static uint32_t edge_none;
static uint32_t *edges = &edge_none;
static uint64_t edges_capacity = 1;
static uint32_t edges_used;
static uint32_t *edges_before;

/* What Perun put into the environment is taken out of it, before any code of the program can see it. */
static void restore_environment(void)
{
    const char *preload = getenv("PERUN_FUZZ_PRELOAD");
    if (preload != NULL) {
        if (*preload != '\0')
            setenv("LD_PRELOAD", preload, 1);
        else
            unsetenv("LD_PRELOAD");
    }
    if (getenv("PERUN_FUZZ_BIND") != NULL)
        unsetenv("LD_BIND_NOW");
    unsetenv("PERUN_FUZZ_BIND");
    unsetenv("PERUN_FUZZ_PRELOAD");
    unsetenv("PERUN_FUZZ");
}

/* Maps the record. It happens once, by whatever of this library is called first. */
static void attach(void)
{
    static int attached;
    if (attached)
        return;
    attached = 1;
    const char *text = getenv("PERUN_FUZZ");
    if (text == NULL)
        return;
    int file = atoi(text);
    restore_environment();
    struct stat status;
    if (fstat(file, &status) != 0 || (size_t)status.st_size < PERUN_FUZZ_HEADER)
        return;
    void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return;
    struct perun_fuzz *record = mapped;
    if (record->magic != PERUN_FUZZ_MAGIC) {
        munmap(mapped, (size_t)status.st_size);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shared = record;
    shared_file = file;
    if (record->edges_capacity != 0) {
        edges = (uint32_t *)((char *)record + record->edges_offset);
        edges_capacity = record->edges_capacity;
    }
    record->state = PERUN_FUZZ_LOADED;
}

__attribute__((constructor)) static void loaded(void)
{
    attach();
}

/* Edges of clang, `-fsanitize-coverage=trace-pc-guard`: each has a number, the first one is 0 and means none. */

EXPORT void __sanitizer_cov_trace_pc_guard_init(uint32_t *first, uint32_t *end);
EXPORT void __sanitizer_cov_trace_pc_guard(uint32_t *guard);

EXPORT void __sanitizer_cov_trace_pc_guard_init(uint32_t *first, uint32_t *end)
{
    attach();
    if (first == end || *first != 0)
        return;
    while (first != end) {
        edges_used++;
        *first++ = edges_used;
    }
    if (shared != NULL)
        shared->edges = edges_used;
}

EXPORT void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    /* A count stays at its largest value, it does not begin anew. Threads may lose some, as with gcc. */
    uint32_t number = *guard;
    if (number < edges_capacity) {
        uint32_t count = edges[number] + 1;
        edges[number] = count != 0 ? count : UINT32_MAX;
    }
}

/* Sharing the counters of gcc. */

static int share(struct pages *made, uint64_t base, const struct perun_fuzz_range *range)
{
    made->address = (char *)(uintptr_t)(base + range->address);
    made->length = range->length;
    made->before = mmap(NULL, made->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made->before == MAP_FAILED)
        return -1;
    memcpy(made->before, made->address, made->length);
    memcpy((char *)shared + range->offset, made->before, made->length);
    void *mapped = mmap(made->address, made->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared_file,
                        (off_t)range->offset);
    return mapped == MAP_FAILED ? -1 : 0;
}

static int share_module(struct dl_phdr_info *module, size_t size, void *data)
{
    (void)size;
    (void)data;
    const char *path = module->dlpi_name != NULL && *module->dlpi_name != '\0' ? module->dlpi_name : "/proc/self/exe";
    struct stat status;
    if (stat(path, &status) != 0)
        return 0;
    for (uint32_t i = 0; i < shared->ranges; i++) {
        const struct perun_fuzz_range *range = &shared->range[i];
        if (range->device != status.st_dev || range->inode != status.st_ino)
            continue;
        if (share(&pages[pages_count], module->dlpi_addr, range) != 0)
            return -1;
        pages_count++;
    }
    return 0;
}

static int share_counters(void)
{
    if (shared->ranges == 0)
        return 0;
    pages = calloc(shared->ranges, sizeof *pages);
    return pages == NULL ? -1 : dl_iterate_phdr(share_module, NULL);
}

/* A process that the program itself starts gets variables of its own again; it is not counted. */
static void take_own_pages(void)
{
    for (size_t i = 0; i < pages_count; i++) {
        struct pages *each = &pages[i];
        memcpy(each->before, each->address, each->length);
        if (mremap(each->before, each->length, each->length, MREMAP_MAYMOVE | MREMAP_FIXED, each->address)
            == MAP_FAILED)
            abort();
    }
    pages_count = 0;
}

static size_t edges_size(void)
{
    uint64_t count = (uint64_t)edges_used + 1;
    return (count < edges_capacity ? count : edges_capacity) * sizeof *edges;
}

static void reset_counters(void)
{
    for (size_t i = 0; i < pages_count; i++)
        memcpy(pages[i].address, pages[i].before, pages[i].length);
    if (edges_before != NULL)
        memcpy(edges, edges_before, edges_size());
}

/* The last of all handlers of `exit`. The destructors of gcc's library would write counters to files: the process
 * ends before they run. */
static void end_at_exit(int status, void *data)
{
    (void)data;
    fflush(NULL);
    _exit(status);
}

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    if (folder == NULL)
        return 1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void limit_memory(void)
{
    if (shared->memory != 0) {
        struct rlimit limit = {shared->memory, shared->memory};
        setrlimit(RLIMIT_AS, &limit);
    }
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

static void set_argument(int argc, char **argv)
{
    if (shared->argument != 0 && shared->argument < (uint32_t)argc)
        argv[shared->argument] = (char *)shared + shared->argument_offset;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int send_word(int32_t word)
{
    return write(PERUN_FUZZ_CONTROL + 1, &word, sizeof word) == sizeof word ? 0 : -1;
}

static int read_request(void)
{
    int32_t request;
    ssize_t count;
    do {
        count = read(PERUN_FUZZ_CONTROL, &request, sizeof request);
    } while (count < 0 && errno == EINTR);
    return count == sizeof request ? 0 : -1;
}

/* Nanoseconds that a copy, which has ended, has waited for a core; 0 where the kernel does not tell. */
static uint64_t nanoseconds_waited(pid_t copy)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)copy);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = '\0';
    const char *second = strchr(text, ' '); /* the first number is of those on a core */
    return second != NULL ? strtoull(second, NULL, 10) : 0;
}

/* What a run took of the time that has passed: at least its time on a core, as it may have waited before it. */
static uint64_t nanoseconds_taken(uint64_t passed, uint64_t waited, const struct rusage *usage)
{
    uint64_t seconds = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec);
    uint64_t microseconds = (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
    uint64_t computed = seconds * 1000000000u + microseconds * 1000u;
    uint64_t rest = waited < passed ? passed - waited : 0;
    uint64_t taken = rest > computed ? rest : computed;
    return taken < passed ? taken : passed;
}

/* Waits for the copy, and writes down what it took. */
static int32_t wait_for(pid_t copy)
{
    siginfo_t end;
    while (waitid(P_PID, (id_t)copy, &end, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    uint64_t passed = nanoseconds() - shared->begun;
    uint64_t waited = passed < LONG_RUN ? 0 : nanoseconds_waited(copy);
    int status = 0;
    struct rusage usage = {0};
    while (wait4(copy, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    if (shared->running) {
        shared->nanoseconds = nanoseconds_taken(passed, waited, &usage);
        kill(-copy, SIGKILL); /* what it has started and left */
    }
    return status;
}

/* A new copy: all that can be done before its request, then waits for that. */
static void await_request(void)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1)
        _exit(1);
    if (pages_count != 0)
        pthread_atfork(NULL, NULL, take_own_pages);
    if (read_request() != 0)
        _exit(0);
    shared->copy = getpid(); /* not before: what Perun ends is never one that waits */
    shared->begun = nanoseconds();
    __atomic_store_n(&shared->running, 1, __ATOMIC_RELEASE);
    reset_counters();
    close(PERUN_FUZZ_CONTROL);
    close(PERUN_FUZZ_CONTROL + 1);
    close(shared_file);
    limit_memory();
}

/* Serves requests until Perun goes; returns in each copy. */
static void serve(void)
{
    if (send_word(0) != 0)
        _exit(0);
    for (;;) {
        pid_t copy = fork();
        if (copy == 0) {
            await_request();
            return;
        }
        if (copy < 0) {
            shared->problem = (uint32_t)errno;
            shared->state = PERUN_FUZZ_REFUSED;
            _exit(1);
        }
        int32_t status = wait_for(copy);
        uint32_t has_run = shared->running;
        shared->running = 0; /* before the answer, after which Perun looks at it again */
        if (!has_run && WIFSIGNALED(status)) /* as memory was short, before it had a request */
            continue;
        if (!has_run || send_word(status) != 0)
            _exit(0);
    }
}

static int serving_main(int argc, char **argv, char **environment)
{
    (void)environment;
    if (shared->flags & PERUN_FUZZ_ONCE) {
        close(shared_file);
        pthread_atfork(NULL, NULL, take_own_pages);
        return program_main(argc, argv, environ);
    }
    if (count_threads() > 1) {
        shared->state = PERUN_FUZZ_THREADS;
        _exit(1);
    }
    serve();
    set_argument(argc, argv);
    return program_main(argc, argv, environ);
}

/* What constructors have counted before `main` is kept, and is part of each run. */
static int keep_counters(void)
{
    size_t size = edges_size();
    if (shared->edges_capacity != 0) {
        edges_before = malloc(size);
        if (edges_before == NULL)
            return -1;
        memcpy(edges_before, edges, size);
    }
    return share_counters();
}

static int ready_main(int argc, char **argv, char **environment)
{
    if (!(shared->flags & PERUN_FUZZ_ONCE) && keep_counters() != 0) {
        shared->problem = (uint32_t)errno;
        shared->state = PERUN_FUZZ_REFUSED;
        _exit(1);
    }
    shared->state = PERUN_FUZZ_READY;
    return serving_main(argc, argv, environment);
}

EXPORT int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end);

EXPORT int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end)
{
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    attach();
    if (start == NULL)
        abort();
    if (shared == NULL)
        return start(main, argc, argv, init, fini, rtld_fini, stack_end);
    program_main = main;
    if ((shared->flags & PERUN_FUZZ_ONCE) && share_counters() != 0) { /* before it can have threads */
        shared->problem = (uint32_t)errno;
        shared->state = PERUN_FUZZ_REFUSED;
        _exit(1);
    }
    if (shared->ranges != 0) {
        on_exit(end_at_exit, NULL);
        rtld_fini = NULL;
    }
    return start(ready_main, argc, argv, init, fini, rtld_fini, stack_end);
}
