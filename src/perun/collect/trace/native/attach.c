/* Loads the probes into the kernel, attaches and detaches them. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

enum { KERNEL_ENOTSUPP = 524 }; /* an error of the kernel that has no name in user space */
enum { DETACH_SECONDS = 2 }; /* how long to wait until the kernel has detached the probes */

/* The loaded programs; negative for those that the method does not need. */
static struct {
    int called, entered, left, returned;
} programs;
static enum method used;
static struct bpf_object *object;
static unsigned unprobed;

/* How to attach a probe that has no other one for the return. */
static enum method alone(void) { return used == SESSION ? MULTI : used; }

static struct probes part_of(struct probes probes, unsigned start, unsigned count) {
    return (struct probes){probes.offsets + start, probes.cookies + start, probes.semaphores + start, count, 0};
}

/* Some instructions cannot have a probe, for example those with the prefix `lock`. One of them makes the kernel refuse
 * all probes of a file. So they are attached by halves then, until only these instructions are left out. */
static void attach(enum method method, const char *path, struct probes probes, int program, int of_returns,
                   struct links *links) {
    if (!probes.count)
        return;
    if (method != EVENTS || probes.count == 1) {
        int link = method == EVENTS ? link_one(path, probes, program, of_returns)
                                    : link_many(path, probes, program, method, of_returns);
        if (link >= 0 && links) {
            links->files = resized(links->files, (links->count + 1) * sizeof(*links->files));
            links->files[links->count++] = link;
        }
        if (link >= 0)
            return;
        if (errno != KERNEL_ENOTSUPP)
            fail("cannot attach %u probes to %s (%s): %s", probes.count, path, method_names[method], strerror(errno));
        if (probes.count == 1) {
            unprobed += !of_returns;
            return;
        }
    }
    unsigned half = probes.count / 2;
    attach(method, path, part_of(probes, 0, half), program, of_returns, links);
    attach(method, path, part_of(probes, half, probes.count - half), program, of_returns, links);
}

static struct bpf_program *program_named(const char *name) {
    struct bpf_program *program = bpf_object__find_program_by_name(object, name);
    if (!program)
        fail("the probes lack the program %s: reinstall Perun", name);
    return program;
}

int map_of(const char *name) {
    int map = bpf_object__find_map_fd_by_name(object, name);
    if (map < 0)
        fail("the probes lack the map %s: reinstall Perun", name);
    return map;
}

/* Tell the probes what is known of the functions from number `first` on. */
static void tell_functions(const struct plan *plan, unsigned first) {
    int sizes = map_of("sizes"), functions = map_of("functions");
    for (unsigned number = first; number < plan->function_count; number++) {
        bpf_map_update_elem(sizes, &number, &plan->sizes[number], BPF_ANY);
        bpf_map_update_elem(functions, &number, &plan->functions[number], BPF_ANY);
    }
}

/* Tell the probes what has changed of a function. */
void tell_function(const struct plan *plan, unsigned function) {
    bpf_map_update_elem(map_of("functions"), &function, &plan->functions[function], BPF_ANY);
}

/* Load the file of the probes, and attach those that follow processes. */
void load(enum method method, const char *path, const struct plan *plan) {
    static const char *const by_function[] = {"sizes", "functions", "sampled", "counts"};
    static const char *const following[] = {"forked", "executed", "ended"};
    object = bpf_object__open_file(path, NULL);
    if (!object)
        fail("cannot open %s: %s", path, strerror(errno));
    struct bpf_program *called = program_named("called"), *entered = program_named("entered"),
                       *left = program_named("left"), *returned = program_named("returned");
    used = method;
    if (method == SESSION)
        bpf_program__set_expected_attach_type(called, (enum bpf_attach_type)attach_type(SESSION));
    else
        bpf_program__set_autoload(called, 0);
    bpf_program__set_expected_attach_type(entered, (enum bpf_attach_type)attach_type(alone()));
    bpf_program__set_expected_attach_type(left, (enum bpf_attach_type)attach_type(alone()));
    bpf_program__set_expected_attach_type(returned, (enum bpf_attach_type)attach_type(alone()));
    for (unsigned number = 0; number < sizeof(by_function) / sizeof(*by_function); number++)
        bpf_map__set_max_entries(bpf_object__find_map_by_name(object, by_function[number]),
                                 plan->follow ? PERUN_MAX_FUNCTIONS : plan->function_count ? plan->function_count : 1);
    if (bpf_object__load(object))
        fail("the kernel does not load the probes: %s", strerror(errno));
    tell_functions(plan, 0);
    for (unsigned number = 0; number < sizeof(following) / sizeof(*following); number++)
        if (!bpf_program__attach(program_named(following[number])))
            fail("cannot follow child processes: %s", strerror(errno));
    programs.called = bpf_program__fd(called);
    programs.entered = bpf_program__fd(entered);
    programs.left = bpf_program__fd(left);
    programs.returned = bpf_program__fd(returned);
}

/* What this process starts is traced, if it is `process`; with 0 nothing more is, and no process stops any more. See struct
 * perun_start for `follow`. */
void set_start(pid_t process, int follow) {
    int zero = 0;
    struct stat own = {0};
    if (stat("/proc/self/ns/pid", &own))
        own.st_ino = 0;
    const struct perun_start start = {.device = own.st_dev, .inode = own.st_ino, .process = (unsigned)process,
                                      .follow = (unsigned)follow};
    bpf_map_update_elem(map_of("start"), &zero, &start, BPF_ANY);
}

static void attach_kind(const char *path, int kind, struct probes probes, struct links *links) {
    if (kind == FUNCTION && used == SESSION) {
        attach(SESSION, path, probes, programs.called, 0, links);
    } else if (kind == FUNCTION) {
        attach(used, path, probes, programs.entered, 0, links);
        attach(used, path, probes, programs.returned, 1, links);
    } else {
        attach(alone(), path, probes, kind == ENTRY ? programs.entered : programs.left, 0, links);
    }
}

/* Of two probes at one instruction the kernel runs the one that was attached last first. A function that only jumps
 * into another has its entry and its exit at one instruction. */
static const int order[] = {FUNCTION, EXIT, ENTRY};

static void attach_files(const struct plan *plan, unsigned first) {
    for (unsigned number = first; number < plan->file_count; number++)
        for (unsigned place = 0; place < sizeof(order) / sizeof(*order); place++)
            attach_kind(plan->files[number].path, order[place], plan->files[number].probes[order[place]], NULL);
}

/* Attach the probes of the functions that are wanted, by links of their own: `links` has those of each function by its
 * number. */
void attach_functions(const struct plan *plan, const char *wanted, struct links *links) {
    for (unsigned number = 0; number < plan->file_count; number++)
        for (unsigned place = 0; place < sizeof(order) / sizeof(*order); place++) {
            const struct probes *all = &plan->files[number].probes[order[place]];
            for (unsigned one = 0, end; one < all->count; one = end) {
                for (end = one + 1; end < all->count && all->cookies[end] == all->cookies[one];)
                    end++;
                if (wanted[all->cookies[one]])
                    attach_kind(plan->files[number].path, order[place], part_of(*all, one, end - one),
                                &links[all->cookies[one]]);
            }
        }
}

/* Detach the probes of a function. */
void detach_function(struct links *links) {
    for (unsigned number = 0; number < links->count; number++)
        close(links->files[number]);
    links->count = 0;
}

void attach_all(const struct plan *plan) {
    if (!is_switching())
        attach_files(plan, 0);
}

/* Attach the probes of files and functions that the plan has got since. */
void attach_more(const struct plan *plan, unsigned first_file, unsigned first_function) {
    tell_functions(plan, first_function);
    attach_files(plan, first_file);
}

/* Probe the exits of a function, or those of all with UINT32_MAX. */
void attach_deep_exits(const struct plan *plan, unsigned function, struct links *links) {
    for (unsigned number = 0; number < plan->file_count; number++) {
        const struct probes *all = &plan->files[number].probes[DEEP_EXIT];
        struct probes chosen = {0};
        for (unsigned one = 0; one < all->count; one++)
            if ((function == UINT32_MAX || all->cookies[one] == function) &&
                !(plan->functions[all->cookies[one]].flags & PERUN_AT_EXITS))
                add_probe(&chosen, all->offsets[one], all->cookies[one], 0);
        attach(alone(), plan->files[number].path, chosen, programs.left, 0, links);
        free(chosen.offsets);
        free(chosen.cookies);
        free(chosen.semaphores);
    }
    int functions = map_of("functions");
    for (unsigned number = 0; number < plan->function_count; number++) {
        struct perun_function *known = &plan->functions[number];
        if ((function != UINT32_MAX && number != function) || !(known->flags & PERUN_HAS_EXITS))
            continue;
        known->flags |= PERUN_AT_EXITS;
        bpf_map_update_elem(functions, &number, known, BPF_ANY);
    }
}

/* The sum of a count over all processors. */
uint64_t summed(const char *map) {
    int cpus = libbpf_num_possible_cpus();
    uint64_t *counts = calloc((size_t)cpus, sizeof(*counts)), sum = 0;
    int zero = 0;
    if (counts && !bpf_map_lookup_elem(map_of(map), &zero, counts))
        for (int cpu = 0; cpu < cpus; cpu++)
            sum += counts[cpu];
    free(counts);
    return sum;
}

unsigned count_unprobed(void) { return unprobed; }

/* Detach all probes; false if that goes on in the background after DETACH_SECONDS.
 *
 * The kernel detaches a probe when the last descriptor of its link is closed, which nothing can interrupt. Single events
 * take a quarter of a second each; and with all methods the kernel may wait for a program of another run, for as long
 * as that program calls probed functions. So a child process holds the descriptors, and its end closes them. */
int detach(void) {
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
