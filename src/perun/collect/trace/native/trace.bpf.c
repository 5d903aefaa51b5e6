/* The probes: they record the entry and the exit of functions, in the traced processes only. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "record.h"

/* The layout in the kernel for x86-64. */
struct pt_regs {
    unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags,
        rsp, ss;
};

struct task_struct {
    int tgid;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 64 * 1024 * 1024);
} records SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, int);
    __type(value, int);
} traced SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* the loader raises this to the number of functions */
    __type(key, int);
    __type(value, struct perun_size);
} sizes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, unsigned long long);
} lost SEC(".maps");

#define NOT_READ (-0x7fffffffffffffffLL - 1)

static void count_lost(void) {
    int zero = 0;
    unsigned long long *count = bpf_map_lookup_elem(&lost, &zero);
    if (count)
        ++*count;
}

static unsigned long parameter(struct pt_regs *registers, int place) {
    switch (place) {
    case 0: return registers->rdi;
    case 1: return registers->rsi;
    case 2: return registers->rdx;
    case 3: return registers->rcx;
    case 4: return registers->r8;
    case 5: return registers->r9;
    }
    unsigned long value = 0;
    if (place < 0)
        bpf_probe_read_user(&value, sizeof(value), (void *)(registers->rsp + (-1 - place)));
    return value;
}

static long long narrowed(unsigned long long value, int width, int is_signed) {
    switch (width) {
    case 1: return is_signed ? (long long)(signed char)value : (long long)(unsigned char)value;
    case 2: return is_signed ? (long long)(short)value : (long long)(unsigned short)value;
    case 4: return is_signed ? (long long)(int)value : (long long)(unsigned int)value;
    }
    return (long long)value;
}

static long long read_size(struct pt_regs *registers, const struct perun_size *size) {
    unsigned long start = parameter(registers, size->place);
    long long sum = 0;
    for (int number = 0; number < PERUN_MAX_TERMS; number++) {
        if (number >= size->terms)
            break;
        const struct perun_term *term = &size->term[number];
        unsigned long value = start;
        for (int step = 0; step < PERUN_MAX_STEPS; step++) {
            if (step >= term->steps)
                break;
            unsigned long found = 0;
            /* The verifier accepts only a length with a known bound, hence the masks. */
            if (bpf_probe_read_user(&found, step + 1 == term->steps ? (term->width & 8 ? 8 : term->width & 7) : 8,
                                    (void *)(value + term->offsets[step])))
                return NOT_READ;
            value = found;
        }
        sum += term->factor * narrowed(value, term->width, term->is_signed);
    }
    return sum;
}

static int is_traced(unsigned long long process) {
    int group = process >> 32;
    return bpf_map_lookup_elem(&traced, &group) != 0;
}

static int record_entry(struct pt_regs *registers) {
    unsigned long long process = bpf_get_current_pid_tgid();
    if (!is_traced(process))
        return 0;
    int function = (int)bpf_get_attach_cookie(registers);
    const struct perun_size *size = bpf_map_lookup_elem(&sizes, &function);
    unsigned long long thread = process & 0xffffffff;
    if (size && size->follow) {
        unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
        if (!record) {
            count_lost();
            return 0;
        }
        record[0] = registers->rsp;
        record[1] = thread | (unsigned long long)PERUN_STACK << 32;
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    }
    if (size && size->terms) {
        long long sum = read_size(registers, size);
        unsigned long long *record = bpf_ringbuf_reserve(&records, 24, 0);
        if (!record) {
            count_lost();
            return 0;
        }
        record[1] = thread | (unsigned long long)(function | PERUN_SIZED) << 32;
        record[2] = sum;
        record[0] = bpf_ktime_get_ns(); /* last, so that the call does not include the reading of its size */
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
        return 1;
    }
    unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
    if (!record) {
        count_lost();
        return 0;
    }
    record[1] = thread | (unsigned long long)function << 32;
    record[0] = bpf_ktime_get_ns();
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 1;
}

static void record_exit(struct pt_regs *registers) {
    unsigned long long now = bpf_ktime_get_ns();
    unsigned long long process = bpf_get_current_pid_tgid();
    if (!is_traced(process))
        return;
    unsigned int function = (unsigned int)bpf_get_attach_cookie(registers);
    unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
    if (!record) {
        count_lost();
        return;
    }
    record[0] = now;
    record[1] = (process & 0xffffffff) | (unsigned long long)(function | PERUN_EXIT) << 32;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

SEC("kprobe/entry")
int entered(struct pt_regs *registers) {
    record_entry(registers);
    return 0;
}

SEC("kprobe/exit")
int left(struct pt_regs *registers) {
    record_exit(registers);
    return 0;
}

/* A session runs this at the entry and at the return of a call. Only at the entry the instruction pointer is at the
 * probed function; at the return it is in the caller. The result 1 at the entry tells the kernel not to catch the
 * return, because the entry was not recorded. */
SEC("kprobe/call")
int called(struct pt_regs *registers) {
    if (registers->rip == bpf_get_func_ip(registers))
        return !record_entry(registers);
    record_exit(registers);
    return 0;
}

/* The child processes of a traced process are traced, too. */
SEC("tp_btf/sched_process_fork")
int forked(unsigned long long *arguments) {
    struct task_struct *parent = (void *)arguments[0];
    struct task_struct *child = (void *)arguments[1];
    int group = parent->tgid;
    if (!bpf_map_lookup_elem(&traced, &group))
        return 0;
    int child_group = child->tgid;
    int one = 1;
    bpf_map_update_elem(&traced, &child_group, &one, BPF_ANY);
    return 0;
}

char perun_license[] SEC("license") = "GPL";
