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

#define FOUND_BY_NAME __attribute__((preserve_access_index))

struct signal_struct {
    struct {
        int counter;
    } live; /* threads that have not ended */
} FOUND_BY_NAME;

struct task_struct {
    int pid;
    int tgid;
    struct signal_struct *signal;
} FOUND_BY_NAME;

struct super_block {
    unsigned int s_dev;
} FOUND_BY_NAME;

struct inode {
    unsigned long i_ino;
    struct super_block *i_sb;
} FOUND_BY_NAME;

struct file {
    struct inode *f_inode;
} FOUND_BY_NAME;

struct linux_binprm {
    struct file *file;
    const char *filename;
    const char *interp;
} FOUND_BY_NAME;

/* The open calls of a thread whose returns the kernel catches, the innermost last: where the return address is, shifted
 * by 16 bits, and the number of the function; with SKIPPED those that are not recorded. */
struct thread {
    unsigned int depth;
    unsigned int unused;
    unsigned long long open[64];
};

#define SKIPPED (1ULL << 63)

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 64 * 1024 * 1024);
} records SEC(".maps");

/* Numbers of processes and threads are those of the outermost namespace: a program may make namespaces of its own. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, int);
    __type(value, int);
} traced SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct thread);
} new_thread SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct perun_start);
} start SEC(".maps");

/* The loader raises the number of entries of these four to the number of functions. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct perun_function);
} functions SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, unsigned long long);
} sampled SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct perun_size);
} sizes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, struct perun_count);
} counts SEC(".maps");

/* Whether the timer has switched recording off. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, int);
} paused SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, unsigned long long);
} lost SEC(".maps");

/* Calls whose exits are not caught, because they are nested too deeply and their function has no known exits. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, int);
    __type(value, unsigned long long);
} uncaught SEC(".maps");

#define NOT_READ (-0x7fffffffffffffffLL - 1)

static void count_in(void *counts) {
    int zero = 0;
    unsigned long long *count = bpf_map_lookup_elem(counts, &zero);
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

/* What is known of the current thread; null if its process is not traced. */
static struct thread *traced_thread(unsigned long long process) {
    int number = (int)process, group = process >> 32, zero = 0;
    struct thread *known = bpf_map_lookup_elem(&threads, &number);
    if (known || !bpf_map_lookup_elem(&traced, &group))
        return known;
    struct thread *empty = bpf_map_lookup_elem(&new_thread, &zero);
    if (!empty)
        return 0;
    bpf_map_update_elem(&threads, &number, empty, BPF_ANY);
    known = bpf_map_lookup_elem(&threads, &number);
    if (!known)
        count_in(&lost);
    return known;
}

/* Forget the calls that a longjmp or an exception has left: the stack grows down, and is at `stack` now.
 * Gives the number of open calls. */
static unsigned int drop_left_calls(struct thread *thread, unsigned long stack) {
    unsigned int depth = thread->depth;
    for (int number = 0; number < PERUN_MAX_RETURNS; number++) {
        if (!depth || (thread->open[(depth - 1) & 63] & ~SKIPPED) >> 16 >= stack)
            break;
        depth--;
    }
    thread->depth = depth;
    return depth;
}

/* Whether the innermost open call is one of this function with its return address at `stack`. */
static int is_innermost(const struct thread *thread, unsigned long stack, int function) {
    unsigned int depth = thread->depth;
    return depth && (thread->open[(depth - 1) & 63] & ~SKIPPED) == ((unsigned long long)stack << 16 | function);
}

/* The number of this process for the loader; false if the loader has ended, so that no process may wait for it. */
static int namespaced_process(struct bpf_pidns_info *numbers) {
    int zero = 0;
    const struct perun_start *process = bpf_map_lookup_elem(&start, &zero);
    if (!process || !process->process)
        return 0;
    if (process->inode)
        return !bpf_get_ns_current_pid_tgid(process->device, process->inode, numbers, sizeof(*numbers));
    numbers->tgid = bpf_get_current_pid_tgid() >> 32;
    return 1;
}

/* Stop the process before the call goes on, so that the loader can probe the exits of the function. */
static void request_exits(int function, unsigned int thread) {
    struct bpf_pidns_info numbers = {};
    struct perun_request *request;
    if (!namespaced_process(&numbers) || !(request = bpf_ringbuf_reserve(&records, sizeof(*request), 0))) {
        count_in(&uncaught);
        return;
    }
    request->time = bpf_ktime_get_ns();
    request->thread = thread;
    request->process = numbers.tgid;
    request->function = function;
    if (bpf_send_signal(19 /* SIGSTOP */)) {
        bpf_ringbuf_discard(request, BPF_RB_NO_WAKEUP);
        count_in(&uncaught);
    } else {
        bpf_ringbuf_submit(request, BPF_RB_NO_WAKEUP);
    }
}

enum entered { NOT_RECORDED, CAUGHT, TOO_DEEP };

/* Note that a call begins: CAUGHT if its return is caught, TOO_DEEP if it is to be found at its exits. */
static enum entered note_call(struct thread *thread, unsigned long stack, int function, unsigned long long skipped) {
    unsigned int depth = drop_left_calls(thread, stack);
    if (depth >= PERUN_MAX_RETURNS)
        return TOO_DEEP;
    thread->open[depth & 63] = (unsigned long long)stack << 16 | function | skipped;
    thread->depth = depth + 1;
    return CAUGHT;
}

static int write_entry(struct pt_regs *registers, int function, unsigned long long thread) {
    const struct perun_size *size = bpf_map_lookup_elem(&sizes, &function);
    if (size && size->follow) {
        unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
        if (!record)
            return 0;
        record[0] = registers->rsp;
        record[1] = thread | (unsigned long long)PERUN_STACK << 32;
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    }
    if (size && size->terms) {
        long long sum = read_size(registers, size);
        unsigned long long *record = bpf_ringbuf_reserve(&records, 24, 0);
        if (!record)
            return 0;
        record[1] = thread | (unsigned long long)(function | PERUN_SIZED) << 32;
        record[2] = sum;
        record[0] = bpf_ktime_get_ns(); /* last, so that the call does not include the reading of its size */
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
        return 1;
    }
    unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
    if (!record)
        return 0;
    record[1] = thread | (unsigned long long)function << 32;
    record[0] = bpf_ktime_get_ns();
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 1;
}

static void write_exit(unsigned long long time, int function, unsigned long long thread) {
    unsigned long long *record = bpf_ringbuf_reserve(&records, 16, 0);
    if (!record) {
        count_in(&lost);
        return;
    }
    record[0] = time;
    record[1] = thread | (unsigned long long)((unsigned int)function | PERUN_EXIT) << 32;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Whether sampling leaves out this call of a function. */
static int is_left_out(int function, unsigned int sampling) {
    if (sampling < 2)
        return 0;
    unsigned long long *count = bpf_map_lookup_elem(&sampled, &function);
    return !count || __sync_fetch_and_add(count, 1) % sampling;
}

/* Whether the calls of a function are not recorded now: it has reached its limit, or the timer says so. */
static int is_off(int function, const struct perun_function *known) {
    int zero = 0;
    if (!known || !(known->flags & PERUN_COUNTED))
        return 0;
    struct perun_count *count = bpf_map_lookup_elem(&counts, &function);
    if (!count)
        return 0;
    if (known->flags & PERUN_TIMED) {
        const int *off = bpf_map_lookup_elem(&paused, &zero);
        if (off && *off)
            return 1;
    }
    unsigned long long before = __sync_fetch_and_add(&count->calls, 1);
    if (!known->limit || before < known->limit)
        return 0;
    if (before == known->limit) {
        struct perun_limit *limit = bpf_ringbuf_reserve(&records, sizeof(*limit), 0);
        if (limit) {
            limit->function = function;
            bpf_ringbuf_submit(limit, BPF_RB_NO_WAKEUP);
        }
    }
    return 1;
}

/* Count the calls that are recorded and have not ended. */
static void count_open(int function, const struct perun_function *known, int change) {
    struct perun_count *count = 0;
    if (known && (known->flags & PERUN_COUNTED))
        count = bpf_map_lookup_elem(&counts, &function);
    if (count)
        __sync_fetch_and_add(&count->open, change);
}

/* The number of what the call is nested in: of the thread, or of the goroutine, which is at an address. */
static unsigned int number_of(struct pt_regs *registers, unsigned long long process, unsigned int flags) {
    return flags & PERUN_GOROUTINE ? (unsigned int)(registers->r14 >> 3) | PERUN_NO_THREAD : (unsigned int)process;
}

/* The entry of a call. With `may_refuse` the caller keeps the kernel from catching the return if the result is not
 * CAUGHT; else the kernel catches it in any case, up to its own limit. */
static enum entered record_entry(struct pt_regs *registers, int may_refuse) {
    unsigned long long process = bpf_get_current_pid_tgid();
    struct thread *thread = traced_thread(process);
    if (!thread)
        return NOT_RECORDED;
    int function = (int)bpf_get_attach_cookie(registers);
    const struct perun_function *known = bpf_map_lookup_elem(&functions, &function);
    unsigned int flags = known ? known->flags : 0, sampling = known ? known->sampling : 0;
    unsigned int number = number_of(registers, process, flags);
    enum entered entered = CAUGHT;
    if (is_off(function, known) || is_left_out(function, sampling)) {
        if ((flags & PERUN_RETURNS) && !may_refuse)
            note_call(thread, registers->rsp, function, SKIPPED);
        return NOT_RECORDED;
    }
    if ((flags & PERUN_RETURNS) || sampling > 1)
        entered = note_call(thread, registers->rsp, function, 0);
    if (entered == TOO_DEEP && sampling > 1) {
        count_in(&lost); /* so deeply the exits of recorded calls cannot be told from those of calls left out */
        return NOT_RECORDED;
    }
    if (!write_entry(registers, function, number)) {
        count_in(&lost);
        if (entered == CAUGHT && ((flags & PERUN_RETURNS) || sampling > 1)) {
            if (may_refuse || !(flags & PERUN_RETURNS))
                thread->depth--;
            else
                thread->open[(thread->depth - 1) & 63] |= SKIPPED;
        }
        return NOT_RECORDED;
    }
    count_open(function, known, 1);
    if (entered == TOO_DEEP && !(flags & PERUN_AT_EXITS)) {
        if (flags & PERUN_HAS_EXITS)
            request_exits(function, number);
        else
            count_in(&uncaught);
    }
    return entered;
}

/* The return of a call, whose return address the processor has taken from the stack. */
static void record_return(struct pt_regs *registers) {
    unsigned long long now = bpf_ktime_get_ns();
    unsigned long long process = bpf_get_current_pid_tgid();
    struct thread *thread = traced_thread(process);
    if (!thread)
        return;
    int function = (int)bpf_get_attach_cookie(registers);
    unsigned long stack = registers->rsp - 8;
    drop_left_calls(thread, stack);
    const struct perun_function *known = bpf_map_lookup_elem(&functions, &function);
    if (!is_innermost(thread, stack, function)) {
        /* Recorded at an exit, or left out; else of a thread that changes between several stacks. */
        if (known && !(known->flags & (PERUN_AT_EXITS | PERUN_COUNTED)) && known->sampling < 2 &&
            thread->depth < PERUN_MAX_RETURNS)
            write_exit(now, function, (unsigned int)process);
        return;
    }
    unsigned int depth = thread->depth - 1;
    thread->depth = depth;
    if (!(thread->open[depth & 63] & SKIPPED)) {
        write_exit(now, function, (unsigned int)process);
        count_open(function, known, -1);
    }
}

/* An instruction that leaves a function: a return, or a jump into another function. */
static void record_exit(struct pt_regs *registers) {
    unsigned long long now = bpf_ktime_get_ns();
    unsigned long long process = bpf_get_current_pid_tgid();
    struct thread *thread = traced_thread(process);
    if (!thread)
        return;
    int function = (int)bpf_get_attach_cookie(registers);
    const struct perun_function *known = bpf_map_lookup_elem(&functions, &function);
    if (known && ((known->flags & PERUN_RETURNS) || known->sampling > 1)) {
        drop_left_calls(thread, registers->rsp);
        int is_noted = is_innermost(thread, registers->rsp, function);
        if (is_noted == !!(known->flags & PERUN_RETURNS))
            return; /* its return is caught, or it was left out */
        if (is_noted)
            thread->depth--;
    }
    count_open(function, known, -1);
    write_exit(now, function, number_of(registers, process, known ? known->flags : 0));
}

SEC("kprobe/entry")
int entered(struct pt_regs *registers) {
    record_entry(registers, 0);
    return 0;
}

SEC("kprobe/exit")
int left(struct pt_regs *registers) {
    record_exit(registers);
    return 0;
}

SEC("kprobe/return")
int returned(struct pt_regs *registers) {
    record_return(registers);
    return 0;
}

/* A session runs this at the entry and at the return of a call. Only at the entry the instruction pointer is at the
 * probed function; at the return it is in the caller. The result 1 at the entry tells the kernel not to catch the
 * return. */
SEC("kprobe/call")
int called(struct pt_regs *registers) {
    if (registers->rip == bpf_get_func_ip(registers))
        return record_entry(registers, 1) != CAUGHT;
    record_return(registers);
    return 0;
}

/* The command and the child processes of a traced process are traced. This runs in the parent. */
SEC("tp_btf/sched_process_fork")
int forked(unsigned long long *arguments) {
    struct task_struct *parent = (void *)arguments[0];
    struct task_struct *child = (void *)arguments[1];
    int group = parent->tgid, child_group = child->tgid, one = 1, zero = 0;
    if (child_group == group)
        return 0; /* a thread */
    if (!bpf_map_lookup_elem(&traced, &group)) {
        const struct perun_start *process = bpf_map_lookup_elem(&start, &zero);
        struct bpf_pidns_info numbers = {};
        if (!process || !process->process || !namespaced_process(&numbers) || numbers.tgid != process->process)
            return 0;
    }
    if (bpf_map_update_elem(&traced, &child_group, &one, BPF_ANY))
        count_in(&lost);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int executed(unsigned long long *arguments) {
    struct task_struct *task = (void *)arguments[0];
    struct linux_binprm *program = (void *)arguments[2];
    int group = task->tgid, thread = (int)arguments[1]; /* its number before it became that of the process */
    if (!bpf_map_lookup_elem(&traced, &group))
        return 0;
    bpf_map_delete_elem(&threads, &thread); /* the stack is a new one */
    bpf_map_delete_elem(&threads, &group);
    int zero = 0;
    struct bpf_pidns_info numbers = {};
    const struct perun_start *process = bpf_map_lookup_elem(&start, &zero);
    int follow = process && process->follow && namespaced_process(&numbers);
    struct perun_execution *execution = bpf_ringbuf_reserve(&records, sizeof(*execution), 0);
    if (!execution) {
        count_in(&lost); /* nobody would name the program, or trace it */
        return 0;
    }
    execution->stopped = follow && !bpf_send_signal(19 /* SIGSTOP */) ? numbers.tgid : 0;
    struct inode *inode = program->file->f_inode;
    execution->device = inode->i_sb->s_dev;
    execution->inode = inode->i_ino;
    execution->is_script = program->filename != program->interp;
    bpf_probe_read_kernel_str(execution->path, sizeof(execution->path), program->filename);
    bpf_ringbuf_submit(execution, BPF_RB_NO_WAKEUP);
    return 0;
}

/* The kernel gives the numbers of threads and processes that have ended to others. */
SEC("tp_btf/sched_process_exit")
int ended(unsigned long long *arguments) {
    struct task_struct *task = (void *)arguments[0];
    int thread = task->pid, group = task->tgid;
    bpf_map_delete_elem(&threads, &thread);
    if (!task->signal->live.counter)
        bpf_map_delete_elem(&traced, &group);
    return 0;
}

/* The kernel offers some of the helpers to programs under the GPL only; this file may be used under GPL-2.0, too. */
char perun_license[] SEC("license") = "GPL";
