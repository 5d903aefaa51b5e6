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
 * At the end, SUMMARY gets lines `key value`. The kernel removes all probes with this process, whatever ends it.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

/* Newer headers have these. */
enum { UPROBE_MULTI = 48, UPROBE_SESSION = 57, RETURN = 1 };
enum { KERNEL_ENOTSUPP = 524 }; /* an error of the kernel that has no name in user space */
enum { BUFFER = 1 << 20 };
enum { DETACH_SECONDS = 2 }; /* how long to wait until the kernel has detached the probes */
enum { FUNCTION, ENTRY, EXIT, KINDS };
enum method { SESSION, MULTI, EVENTS, METHODS };

static const char *const method_names[METHODS] = {"session", "multi", "perf_event"};

/* Probes of one kind in one file: they are attached together. */
struct probes {
    uint64_t *offsets;
    uint64_t *cookies;
    uint64_t *semaphores;
    unsigned count;
    unsigned room;
};

struct file {
    char *path;
    struct probes probes[KINDS];
};

static struct file *files;
static unsigned file_count;
static struct perun_size *sizes;
static unsigned size_count;
static char libbpf_warnings[4096];
static volatile sig_atomic_t is_stopped;
static int output;
static char *buffer;
static size_t filled;
static uint64_t written;
static unsigned unprobed;

static void fail(const char *format, ...) {
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

static void *resized(void *old, size_t size) {
    void *new = realloc(old, size);
    if (!new)
        fail("out of memory");
    return new;
}

static void add_probe(struct probes *probes, uint64_t offset, uint64_t cookie, uint64_t semaphore) {
    if (probes->count == probes->room) {
        probes->room = probes->room ? 2 * probes->room : 64;
        probes->offsets = resized(probes->offsets, probes->room * sizeof(uint64_t));
        probes->cookies = resized(probes->cookies, probes->room * sizeof(uint64_t));
        probes->semaphores = resized(probes->semaphores, probes->room * sizeof(uint64_t));
    }
    probes->offsets[probes->count] = offset;
    probes->cookies[probes->count] = cookie;
    probes->semaphores[probes->count++] = semaphore;
}

static void add_size(char *line) {
    unsigned number = 0;
    int used = 0;
    struct perun_size size = {0};
    if (sscanf(line, "%u %d %d %d%n", &number, &size.place, &size.follow, &size.terms, &used) != 4 ||
        number >= PERUN_MAX_FUNCTIONS || size.terms > PERUN_MAX_TERMS)
        fail("cannot parse the size in the plan: %s", line);
    for (int term = 0; term < size.terms; term++) {
        int steps, width, is_signed, more = 0;
        if (sscanf(line + used, " %lld %d %d %d%n", &size.term[term].factor, &width, &is_signed, &steps, &more) != 4 ||
            steps > PERUN_MAX_STEPS)
            fail("cannot parse the size in the plan: %s", line);
        used += more;
        size.term[term].steps = (unsigned char)steps;
        size.term[term].width = (unsigned char)width;
        size.term[term].is_signed = (unsigned char)is_signed;
        for (int step = 0; step < steps; step++) {
            if (sscanf(line + used, " %d%n", &size.term[term].offsets[step], &more) != 1)
                fail("cannot parse the size in the plan: %s", line);
            used += more;
        }
    }
    if (number >= size_count) {
        sizes = resized(sizes, (number + 1) * sizeof(*sizes));
        memset(sizes + size_count, 0, (number + 1 - size_count) * sizeof(*sizes));
        size_count = number + 1;
    }
    sizes[number] = size;
}

/* The lines of the plan:
 *
 *     F path                       the following probes are in this file
 *     f offset number semaphore    the entry of a function, whose return is caught, too
 *     e offset number semaphore    an entry alone
 *     x offset number semaphore    an exit: an instruction that leaves the function
 *     S number place follow terms, for each term: factor width signed steps offset...; see struct perun_size
 */
static void read_plan(const char *path) {
    FILE *plan = fopen(path, "r");
    if (!plan)
        fail("cannot read %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, plan)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        unsigned long long offset, cookie, semaphore;
        char kind = line[0];
        if (kind == 'F') {
            files = resized(files, (file_count + 1) * sizeof(*files));
            memset(files + file_count, 0, sizeof(*files));
            files[file_count++].path = strdup(line + 2);
        } else if (kind == 'S') {
            add_size(line + 2);
        } else if (file_count && strchr("fex", kind) &&
                   sscanf(line + 2, "%llu %llu %llu", &offset, &cookie, &semaphore) == 3) {
            struct probes *probes = files[file_count - 1].probes;
            add_probe(&probes[kind == 'f' ? FUNCTION : kind == 'e' ? ENTRY : EXIT], offset, cookie, semaphore);
        } else {
            fail("cannot parse the line of the plan: %s", line);
        }
    }
    free(line);
    fclose(plan);
}

/* The attributes of BPF_LINK_CREATE for many uprobes, which older headers do not have. */
struct multi_attributes {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, semaphores, cookies;
    uint32_t count, multi_flags, pid, unused;
};

static int link_many(const char *path, struct probes probes, int program, uint32_t type, uint32_t flags) {
    struct multi_attributes attributes = {
        .program = (uint32_t)program,
        .type = type,
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)probes.offsets,
        .cookies = (uintptr_t)probes.cookies,
        .count = probes.count,
        .multi_flags = flags,
    };
    for (unsigned number = 0; number < probes.count; number++)
        if (probes.semaphores[number])
            attributes.semaphores = (uintptr_t)probes.semaphores;
    return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
}

/* The type of perf events that uprobes have; -1 if the kernel has none. */
static int uprobe_events(void) {
    int type = -1;
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &type) != 1)
        type = -1;
    fclose(file);
    return type;
}

/* The event is of all processes, because those that the command starts are traced, too. */
static int link_one(const char *path, struct probes probe, int program, uint32_t flags) {
    struct perf_event_attr event = {
        .size = sizeof(event),
        .type = (uint32_t)uprobe_events(),
        .config = (*probe.semaphores << 32) | (flags & RETURN),
        .uprobe_path = (uintptr_t)path,
        .probe_offset = *probe.offsets,
    };
    int opened = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (opened < 0)
        return -1;
    LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = *probe.cookies);
    return bpf_link_create(program, opened, BPF_PERF_EVENT, &options);
}

static struct probes part_of(struct probes probes, unsigned start, unsigned count) {
    return (struct probes){probes.offsets + start, probes.cookies + start, probes.semaphores + start, count, 0};
}

/* Some instructions cannot have a probe, for example those with the prefix `lock`. One of them makes the kernel refuse
 * all probes of a file. So they are attached by halves then, until only these instructions are left out. */
static void attach(enum method method, const char *path, struct probes probes, int program, uint32_t flags) {
    if (!probes.count)
        return;
    if (method != EVENTS || probes.count == 1) {
        uint32_t type = method == SESSION ? UPROBE_SESSION : UPROBE_MULTI;
        int link = method == EVENTS ? link_one(path, probes, program, flags)
                                 : link_many(path, probes, program, type, flags);
        if (link >= 0)
            return;
        if (errno != KERNEL_ENOTSUPP)
            fail("cannot attach %u probes to %s (%s): %s", probes.count, path, method_names[method], strerror(errno));
        if (probes.count == 1) {
            unprobed += !(flags & RETURN);
            return;
        }
    }
    unsigned half = probes.count / 2;
    attach(method, path, part_of(probes, 0, half), program, flags);
    attach(method, path, part_of(probes, half, probes.count - half), program, flags);
}

/* Whether the kernel supports a method, found out by trying it with a small program that calls the same helper as the
 * real ones. Probes of a folder are refused with EBADF only by a kernel that knows the method. For single events it is
 * enough that the kernel loads the program. */
static int is_supported(enum method method) {
    const struct bpf_insn code[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = method == SESSION ? BPF_FUNC_get_func_ip : BPF_FUNC_get_attach_cookie},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    const uint32_t types[METHODS] = {UPROBE_SESSION, UPROBE_MULTI, 0};
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = (enum bpf_attach_type)types[method]);
    int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "tried", "GPL", code, sizeof(code) / sizeof(*code), &options);
    if (program < 0)
        return 0;
    int found;
    if (method == EVENTS) {
        found = uprobe_events() >= 0;
        if (!found)
            errno = ENOENT;
    } else {
        uint64_t nothing = 0;
        const struct probes none = {&nothing, &nothing, &nothing, 1, 1};
        found = link_many("/", none, program, types[method], 0) < 0 && errno == EBADF;
    }
    close(program);
    return found;
}

static enum method method_named(const char *name) {
    int is_known = 0;
    for (enum method method = SESSION; method < METHODS; method++) {
        if (strcmp(name, "any") && strcmp(name, method_names[method]))
            continue;
        is_known = 1;
        if (is_supported(method))
            return method;
    }
    fail("the kernel cannot attach probes (%s): %s", name, is_known ? strerror(errno) : "unknown method");
    return METHODS;
}

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

static int on_record(void *unused, void *data, size_t size) {
    (void)unused;
    size_t whole = size == 24 ? 24 : 16;
    if (filled + whole > BUFFER)
        flush();
    memcpy(buffer + filled, data, whole);
    filled += whole;
    return 0;
}

static void stop(int number) {
    (void)number;
    is_stopped = 1;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The loaded programs; negative for those that the method does not need. */
struct programs {
    int called, entered, left;
};

static struct bpf_object *loaded(enum method method, const char *path, struct programs *programs) {
    struct bpf_object *object = bpf_object__open_file(path, NULL);
    if (!object)
        fail("cannot open %s: %s", path, strerror(errno));
    struct bpf_program *called = bpf_object__find_program_by_name(object, "called");
    struct bpf_program *entered = bpf_object__find_program_by_name(object, "entered");
    struct bpf_program *left = bpf_object__find_program_by_name(object, "left");
    struct bpf_map *map = bpf_object__find_map_by_name(object, "sizes");
    if (!called || !entered || !left || !map)
        fail("%s lacks a program or a map: reinstall Perun", path);
    if (method == SESSION)
        bpf_program__set_expected_attach_type(called, (enum bpf_attach_type)UPROBE_SESSION);
    else
        bpf_program__set_autoload(called, 0);
    if (method != EVENTS) {
        bpf_program__set_expected_attach_type(entered, (enum bpf_attach_type)UPROBE_MULTI);
        bpf_program__set_expected_attach_type(left, (enum bpf_attach_type)UPROBE_MULTI);
    }
    bpf_map__set_max_entries(map, size_count ? size_count : 1);
    if (bpf_object__load(object))
        fail("the kernel does not load the probes: %s", strerror(errno));
    for (unsigned number = 0; number < size_count; number++)
        bpf_map__update_elem(map, &number, sizeof(number), &sizes[number], sizeof(sizes[number]), BPF_ANY);
    *programs = (struct programs){bpf_program__fd(called), bpf_program__fd(entered), bpf_program__fd(left)};
    return object;
}

static void attach_all(enum method method, const struct programs *programs) {
    enum method alone = method == SESSION ? MULTI : method;
    for (unsigned number = 0; number < file_count; number++) {
        const char *path = files[number].path;
        const struct probes *probes = files[number].probes;
        if (method == SESSION) {
            attach(SESSION, path, probes[FUNCTION], programs->called, 0);
        } else {
            attach(method, path, probes[FUNCTION], programs->entered, 0);
            attach(method, path, probes[FUNCTION], programs->left, RETURN);
        }
        /* Of two probes at one instruction the kernel runs the one that was attached last first. A function that only
         * jumps into another has its entry and its exit at one instruction. */
        attach(alone, path, probes[EXIT], programs->left, 0);
        attach(alone, path, probes[ENTRY], programs->entered, 0);
    }
}

static uint64_t count_lost(struct bpf_object *object) {
    int cpus = libbpf_num_possible_cpus();
    uint64_t *counts = calloc((size_t)cpus, sizeof(*counts)), sum = 0;
    int zero = 0;
    struct bpf_map *map = bpf_object__find_map_by_name(object, "lost");
    if (counts && map && !bpf_map__lookup_elem(map, &zero, sizeof(zero), counts, (size_t)cpus * sizeof(*counts), 0))
        for (int cpu = 0; cpu < cpus; cpu++)
            sum += counts[cpu];
    free(counts);
    return sum;
}

/* Detach all probes; false if that goes on in the background after DETACH_SECONDS.
 *
 * The kernel detaches a probe when the last descriptor of its link is closed, which nothing can interrupt. Single events
 * take a quarter of a second each; and with all methods the kernel may wait for a program of another run, for as long
 * as that program calls probed functions. So a child process holds the descriptors, and its end closes them. */
static int detach(void) {
    int held[2];
    if (pipe(held))
        return 1; /* the end of this process detaches them */
    pid_t last = fork();
    if (!last) {
        char nothing;
        close(held[1]);
        for (int file = 0; file < 3; file++)
            close(file); /* so that no reader of the command's output waits for this process */
        _exit(read(held[0], &nothing, 1) != 0);
    }
    dup2(held[1], 0);
    syscall(SYS_close_range, 3, ~0u, 0);
    close(0);
    const struct timespec pause = {0, 1000000};
    for (double start = seconds(); last > 0 && seconds() - start < DETACH_SECONDS; nanosleep(&pause, NULL))
        if (waitpid(last, NULL, WNOHANG))
            return 1;
    return last < 0;
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
    read_plan(arguments[2]);
    output = open(arguments[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    buffer = resized(NULL, BUFFER);
    if (output < 0)
        fail("cannot write %s: %s", arguments[3], strerror(errno));

    int go[2];
    if (pipe2(go, O_CLOEXEC))
        fail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail("fork: %s", strerror(errno));
    if (!child) {
        char letter;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        close(go[1]);
        if (read(go[0], &letter, 1) != 1)
            _exit(125);
        execvp(arguments[5], arguments + 5);
        fprintf(stderr, "%s: %s\n", arguments[5], strerror(errno));
        _exit(127);
    }
    close(go[0]);

    int one = 1;
    struct programs programs;
    struct bpf_object *object = loaded(method, arguments[1], &programs);
    struct bpf_map *traced = bpf_object__find_map_by_name(object, "traced");
    bpf_map__update_elem(traced, &child, sizeof(child), &one, sizeof(one), BPF_ANY);
    struct bpf_program *forked = bpf_object__find_program_by_name(object, "forked");
    if (!bpf_program__attach(forked))
        fail("cannot trace child processes: %s", strerror(errno));
    double start = seconds();
    attach_all(method, &programs);
    double attached = seconds() - start;
    int records = bpf_map__fd(bpf_object__find_map_by_name(object, "records"));
    struct ring_buffer *ring = ring_buffer__new(records, on_record, NULL, NULL);
    if (!ring)
        fail("cannot read the records: %s", strerror(errno));
    if (write(go[1], "g", 1) != 1)
        fail("cannot start the command");

    int status = 0;
    const struct timespec pause = {0, 2000000};
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        ring_buffer__consume(ring);
        if (ended == child)
            break;
        if (is_stopped) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            ring_buffer__consume(ring);
            break;
        }
        nanosleep(&pause, NULL);
    }
    flush();
    FILE *summary = fopen(arguments[4], "w");
    if (!summary)
        fail("cannot write %s: %s", arguments[4], strerror(errno));
    fprintf(summary, "status %d\nlost %llu\nunprobed %u\nway %s\nattached %.6f\nbytes %llu\n", status,
            (unsigned long long)count_lost(object), unprobed, method_names[method], attached, (unsigned long long)written);
    fclose(summary);
    if (!detach() && (summary = fopen(arguments[4], "a"))) {
        fprintf(summary, "detaching 1\n");
        fclose(summary);
    }
    return 0;
}
