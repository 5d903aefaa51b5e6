/* The ways in which the kernel attaches probes. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader.h"

/* Newer headers have these. */
enum { UPROBE_MULTI = 48, UPROBE_SESSION = 57, RETURN = 1 };

const char *const method_names[METHODS] = {"session", "multi", "perf_event"};

uint32_t attach_type(enum method method) { return method == SESSION ? UPROBE_SESSION : method == MULTI ? UPROBE_MULTI : 0; }

/* The attributes of BPF_LINK_CREATE for many uprobes, which older headers do not have. */
struct multi_attributes {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, semaphores, cookies;
    uint32_t count, multi_flags, pid, unused;
};

int link_many(const char *path, struct probes probes, int program, enum method method, int of_returns) {
    struct multi_attributes attributes = {
        .program = (uint32_t)program,
        .type = attach_type(method),
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)probes.offsets,
        .cookies = (uintptr_t)probes.cookies,
        .count = probes.count,
        .multi_flags = of_returns ? RETURN : 0,
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
int link_one(const char *path, struct probes probe, int program, int of_returns) {
    struct perf_event_attr event = {
        .size = sizeof(event),
        .type = (uint32_t)uprobe_events(),
        .config = (*probe.semaphores << 32) | (of_returns ? RETURN : 0),
        .uprobe_path = (uintptr_t)path,
        .probe_offset = *probe.offsets,
    };
    int opened = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (opened < 0)
        return -1;
    LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = *probe.cookies);
    return bpf_link_create(program, opened, BPF_PERF_EVENT, &options);
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
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = (enum bpf_attach_type)attach_type(method));
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
        found = link_many("/", none, program, method, 0) < 0 && errno == EBADF;
    }
    close(program);
    return found;
}

enum method method_named(const char *name) {
    int is_known = 0;
    for (enum method method = SESSION; method < METHODS; method++) {
        if (strcmp(name, "any") && strcmp(name, method_names[method]))
            continue;
        is_known = 1;
        if (is_supported(method))
            return method;
    }
    fail("the kernel cannot attach probes (%s): %s", name, is_known ? strerror(errno) : "unknown method");
}
