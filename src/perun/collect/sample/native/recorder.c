/* Samples a command, or a process that runs, by the clock of the kernel for the CPU time of its threads.
 *
 *     perun_sample FILE HZ STACK EVENT KERNEL PID SECONDS WAITS PYTHON [COMMAND...]
 *
 * STACK is how many bytes of each stack are copied, 0 to follow frame pointers instead; EVENT is `task-clock` or `cycles`;
 * KERNEL is 1 to sample what the kernel does, too; PID is 0 for the command; WAITS is 1 to look at what waits;
 * PYTHON is 1 to read the functions of Python. With none but EVENT and KERNEL it looks whether
 * it can sample these: it ends with 0, or with the errno of what was refused.
 *
 * The kernel passes events on to threads and children only where they belong to one processor, so that there is one for
 * each, with a buffer. What is in the buffers is taken in the order of time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <dirent.h>

#include "output.h"
#include "python.h"
#include "spaces.h"

#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, which headers before Linux 6.0 lack */
#define REGISTERS_OF_USER 0xff01ffu /* all but flags and segments */
enum { MAX_GUESS = 512, LOOKS = 2000, LOOK = 10000000 };
enum { MAX_FRAMES = 2048, RECORD = 1 << 17, NEWS = 256, DRAWN = 64 };
enum { LARGEST = 1 << 22, SMALLEST = 1 << 15 }; /* bytes of a buffer */
enum { WAIT = 100, SETTLED = 20, JUST = 1000000, WRITTEN = 500000000, REDRAWN = 200000000 };
enum { MISSES = 64, PAUSE = 20000000, SLICE = 100000 }; /* of a reader; in ns */

struct ring {
    int file; /* of the event that the buffer belongs to */
    struct perf_event_mmap_page *page;
    uint8_t *data;
    uint64_t size, tail, head, seen;
    int processor;
    pthread_mutex_t lock;
    struct python_stack *first, **last; /* what the reader found, in the order of time */
};

static struct ring *rings;
static size_t ring_count;
/* Those of the events that are of this process, not of threads or children that got copies of them. */
static struct own {
    int file;
    uint64_t id;
} *events;
static size_t event_count;
/* The periods that were drawn, the last one at `draws` - 1. */
static struct drawn {
    uint64_t time, period;
} drawn[DRAWN];
static uint64_t draws;
static uint32_t stack_bytes;
static int is_cycles;
static pid_t target;
static int is_waits;
static int is_python;

static void fail(const char *form, ...) {
    va_list given;
    va_start(given, form);
    fputs("perun_sample: ", stderr);
    vfprintf(stderr, form, given);
    fputc('\n', stderr);
    va_end(given);
    exit(125);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t nanoseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* Opening. */

static struct perf_event_attr attributes(uint64_t period, int kernel) {
    struct perf_event_attr found = {0};
    found.size = sizeof(found);
    found.type = is_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
    found.config = is_cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES : (uint64_t)PERF_COUNT_SW_TASK_CLOCK;
    if (is_cycles) {
        found.freq = 1;
        found.sample_freq = 1000000000u / period;
    } else
        found.sample_period = period;
    found.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                        PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
    if (stack_bytes) {
        found.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        found.sample_regs_user = REGISTERS_OF_USER;
        found.sample_stack_user = stack_bytes;
    }
    found.disabled = 1;
    found.inherit = 1;
    found.exclude_kernel = !kernel;
    found.exclude_callchain_kernel = !kernel;
    found.exclude_hv = found.exclude_guest = 1;
    found.mmap = found.mmap2 = found.comm = found.comm_exec = found.task = 1;
    found.build_id = 1;
    found.read_format = FORMAT_LOST;
    found.sample_id_all = 1;
    found.use_clockid = 1;
    found.clockid = CLOCK_MONOTONIC;
    found.wakeup_events = 1;
    return found;
}

static int open_event(struct perf_event_attr *what, pid_t pid, int processor) {
    int file = (int)syscall(SYS_perf_event_open, what, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0 && errno == EINVAL && (what->read_format || what->build_id)) { /* before Linux 6.0 and 5.12 */
        what->build_id = what->read_format ? what->build_id : 0;
        what->read_format = 0;
        return open_event(what, pid, processor);
    }
    return file;
}

/* A buffer for an event: as large as the system allows. */
static int map_ring(int file, int processor, uint64_t size) {
    struct ring ring = {.file = file, .processor = processor, .lock = PTHREAD_MUTEX_INITIALIZER};
    long page = sysconf(_SC_PAGESIZE);
    for (ring.size = size; ring.size >= SMALLEST; ring.size /= 2) {
        ring.page = mmap(NULL, ring.size + (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (ring.page == MAP_FAILED)
            continue;
        ring.data = (uint8_t *)ring.page + page;
        rings[ring_count++] = ring;
        return 1;
    }
    return 0;
}

static void open_all(pid_t pid, uint64_t period, int kernel, int on_exec) {
    static long processors;
    struct perf_event_attr what = attributes(period, kernel);
    size_t before = event_count;
    what.enable_on_exec = on_exec ? 1 : 0;
    processors = sysconf(_SC_NPROCESSORS_CONF);
    events = realloc(events, (event_count + (size_t)processors) * sizeof(*events));
    rings = rings ? rings : calloc((size_t)processors, sizeof(*rings));
    if (!events || !rings)
        fail("out of memory");
    for (long processor = 0; processor < processors; processor++) {
        int file = open_event(&what, pid, (int)processor);
        if (file < 0 && (errno == ENODEV || errno == ESRCH))
            continue; /* the processor is off, or the thread has ended */
        if (file < 0)
            fail("perf_event_open: %s", strerror(errno));
        size_t number = event_count - before;
        if (!before || number >= ring_count) {
            if (!map_ring(file, (int)processor, stack_bytes ? LARGEST / 2 : LARGEST / 8))
                fail("no buffer for samples: %s", strerror(errno));
        } else if (ioctl(file, PERF_EVENT_IOC_SET_OUTPUT, rings[number].file)) {
            close(file);
            continue;
        }
        events[event_count].file = file;
        events[event_count].id = 0;
        ioctl(file, PERF_EVENT_IOC_ID, &events[event_count++].id);
    }
}

/* A period at random; 0 where none is drawn. */
static uint64_t drawn_between(uint64_t least, uint64_t most) {
    uint32_t random = 0;
    if (is_cycles || getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
        return 0;
    return least + (most - least) * random / UINT32_MAX;
}

/* Periods are drawn anew again and again, so that the samples do not keep step with what the program does. Threads and
 * children keep for life the period that was drawn last. */
static void draw_period(void) {
    uint64_t period = drawn_between(header.period / 4 * 3, header.period / 4 * 5);
    if (!period)
        return;
    drawn[draws++ % DRAWN] = (struct drawn){now(), period};
    for (size_t i = 0; i < event_count && i < NEWS; i++)
        ioctl(events[i].file, PERF_EVENT_IOC_PERIOD, &period);
}

/* That of the first samples: whole periods would lie at the same places of each run, and of a short one no others. */
static uint64_t first_period(uint64_t period) {
    uint64_t first = drawn_between(period / 8, period);
    return first ? first : period;
}

/* For how much a sample stands: the kernel tells of an event of this process the period that it began with. */
static uint64_t weight_of(uint64_t stream, uint64_t time, uint64_t told) {
    for (size_t i = 0; i < event_count && !is_cycles; i++)
        if (events[i].id == stream && i < NEWS) {
            for (uint64_t draw = draws; draw-- && draw + DRAWN > draws;)
                if (drawn[draw % DRAWN].time <= time)
                    return drawn[draw % DRAWN].period;
            return told;
        }
    return told;
}

/* Stacks. */

struct chain {
    uint64_t frames[MAX_FRAMES];
    size_t count;
    uint64_t flags;
    const struct python_stack *python;
    const struct module *interpreter;
    uint32_t python_at;            /* the first frame of Python that is not there yet */
    uint32_t top;                  /* of those that a native frame evaluates; they go to `place` */
    size_t place;                  /* 0 for none: an outer native frame may be it as well */
    int evaluations, is_different; /* native frames that evaluate those of Python; and whether they do not fit these */
};

static uint64_t frame_at(const struct mapping *mapping, uint64_t address) {
    uint64_t place = mapping ? address - mapping->start + mapping->offset : address;
    uint64_t module = mapping ? mapping->module->number : MODULE_UNKNOWN;
    return module << MODULE_SHIFT | (place & (((uint64_t)1 << MODULE_SHIFT) - 1));
}

static void add(struct chain *chain, uint64_t frame) {
    if (chain->count < MAX_FRAMES)
        chain->frames[chain->count++] = frame;
}

/* Frames of Python. The native code that evaluates frames has the address of the innermost of them, and in this the place in
 * its bytecode, in registers or in its part of the stack: so what was read is what ran when the sample was taken. What it calls
 * keeps both, so that it is the outermost of the native frames that have them: by its name it is not always known. */

static int is_evaluation(const struct python_stack *python, uint64_t address) {
    return address - python->evaluation[0] < python->evaluation[1] - python->evaluation[0] ||
           address - python->evaluation[2] < python->evaluation[3] - python->evaluation[2];
}

static int is_evaluated(const struct python_frame *frame, const uint64_t *registers, const struct stack_copy *stack,
                        uint64_t end) {
    int has_frame = 0, has_place = 0;
    uint64_t word;
    for (size_t i = 0; i < REGISTERS; i++) {
        has_frame |= registers[i] == frame->address;
        has_place |= python_executes(frame, registers[i]);
    }
    for (uint64_t at = registers[REGISTER_SP]; at < end && !(has_frame && has_place) && stack_word(stack, at, &word); at += 8) {
        has_frame |= word == frame->address;
        has_place |= python_executes(frame, word);
    }
    return has_frame && has_place;
}

static uint32_t after_group(const struct python_stack *python, uint32_t at) {
    while (at < python->count && !python->frames[at].is_last)
        at++;
    return at + 1;
}

/* Put the frames of Python down to one before a native frame. */
static void add_python(struct chain *chain, size_t place, uint32_t until) {
    const struct python_frame *frames = chain->python->frames + chain->python_at;
    size_t count = until - chain->python_at;
    count = chain->count + count < MAX_FRAMES ? count : MAX_FRAMES - chain->count;
    memmove(chain->frames + place + count, chain->frames + place, (chain->count - place) * sizeof(*chain->frames));
    for (size_t i = 0; i < count; i++)
        chain->frames[place + i] = python_place(&frames[i]);
    chain->count += count;
    chain->python_at = until;
    chain->place = 0;
}

/* A native frame of the interpreter, the last one in the chain. Its innermost evaluation may just begin, or have ended, so that
 * it has no frame of Python, or another has two groups. */
static void enter_python(struct chain *chain, const uint64_t *registers, const struct stack_copy *stack, uint64_t end,
                         int is_evaluation) {
    const struct python_stack *python = chain->python;
    int is_same = chain->place && is_evaluated(&python->frames[chain->top], registers, stack, end);
    if (chain->place && !is_same)
        add_python(chain, chain->place - 1, after_group(python, chain->top));
    uint32_t at = is_same ? chain->top : chain->python_at, tries = 0;
    while (!is_same && stack && at < python->count && !is_evaluated(&python->frames[at], registers, stack, end))
        at = ++tries < 2 ? after_group(python, at) : python->count;
    if (at < python->count) {
        chain->top = at;
        chain->place = chain->count;
    } else if (is_evaluation && chain->evaluations)
        chain->is_different = 1;
    if (chain->place && is_evaluation)
        add_python(chain, chain->place - 1, after_group(python, chain->top));
    chain->evaluations += is_evaluation;
}

/* The rest of a stack as the kernel followed frame pointers, from behind an address on. */
static int add_rest(struct chain *chain, uint32_t pid, const uint64_t *addresses, size_t count, uint64_t from) {
    size_t at = 0;
    while (at < count && addresses[at] != from)
        at++;
    if (at + 1 >= count)
        return 0;
    for (at++; at < count; at++)
        add(chain, frame_at(space_find(pid, addresses[at] - 1), addresses[at] - 1));
    chain->flags = STACK_FRAME_POINTERS;
    return 1;
}

/* The frame pointer is not known of a thread that waits: the nearest place that looks like one, which holds that of a
 * caller and behind it an address of code. */
static uint64_t guessed_frame(uint32_t pid, const struct stack_copy *stack, uint64_t from) {
    uint64_t saved, caller;
    for (uint64_t at = from; at < from + MAX_GUESS; at += 8)
        if (stack_word(stack, at, &saved) && stack_word(stack, at + 8, &caller) && saved > at &&
            saved < stack->start + stack->size && !(saved & 7) && space_find(pid, caller - 1))
            return at;
    return 0;
}

/* Follow a copy of the stack: by the tables of the files, and where these have nothing by frame pointers. */
static void unwind(struct chain *chain, uint32_t pid, uint64_t *registers, const struct stack_copy *stack,
                   const uint64_t *addresses, size_t count) {
    int is_caller = 0;
    while (chain->count < MAX_FRAMES) {
        uint64_t address = registers[REGISTER_IP] - (is_caller ? 1 : 0);
        const struct mapping *mapping = space_find(pid, address);
        struct image *image = mapping ? module_image(mapping->module) : NULL;
        enum step step = STEP_UNKNOWN;
        if (is_caller && (!registers[REGISTER_IP] || (!mapping && !registers[REGISTER_FP]))) {
            chain->flags |= STACK_WHOLE;
            return;
        }
        add(chain, frame_at(mapping, address));
        uint64_t before[REGISTERS];
        int is_entered = chain->python && mapping && mapping->module == chain->interpreter;
        if (is_entered)
            memcpy(before, registers, sizeof(before));
        if (image)
            step = image_step(image, image_address(image, address - mapping->start + mapping->offset), registers, stack);
        if ((step == STEP_UNKNOWN || step == STEP_CUT) && image && !count && !registers[REGISTER_FP] && is_caller) {
            registers[REGISTER_FP] = guessed_frame(pid, stack, registers[REGISTER_SP]);
            uint64_t place = address - mapping->start + mapping->offset;
            step = registers[REGISTER_FP] ? image_step(image, image_address(image, place), registers, stack) : step;
        }
        if (step == STEP_UNKNOWN) {
            uint64_t frame = registers[REGISTER_FP], caller = 0, next = 0;
            if (!frame && is_caller) {
                chain->flags |= STACK_WHOLE;
                return;
            }
            if (frame < registers[REGISTER_SP] || frame & 7 || !stack_word(stack, frame + 8, &caller) ||
                !stack_word(stack, frame, &next) || !space_find(pid, caller - 1)) {
                add_rest(chain, pid, addresses, count, registers[REGISTER_IP]);
                return;
            }
            registers[REGISTER_IP] = caller;
            registers[REGISTER_FP] = next;
            registers[REGISTER_SP] = frame + 16;
            step = STEP_CALLER;
        }
        if (is_entered && step == STEP_CALLER)
            enter_python(chain, before, stack, registers[REGISTER_SP], is_evaluation(chain->python, address));
        if (step == STEP_OUTMOST)
            chain->flags |= STACK_WHOLE;
        if (step == STEP_CUT && !add_rest(chain, pid, addresses, count, registers[REGISTER_IP]))
            chain->flags |= STACK_CUT;
        if (step == STEP_OUTMOST || step == STEP_CUT)
            return;
        is_caller = step == STEP_CALLER;
    }
    chain->flags |= STACK_CUT;
}

/* From the order of the kernel to that of DWARF. */
static void take_registers(const uint64_t *given, uint64_t *registers) {
    static const uint8_t order[REGISTERS] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8};
    for (unsigned i = 0; i < REGISTERS; i++)
        registers[i] = given[order[i]];
}

static void start_chain(struct chain *chain, const struct python_stack *python, uint32_t pid) {
    chain->count = 0;
    chain->flags = 0;
    chain->python = python && python->status != PYTHON_CHANGED ? python : NULL;
    const struct mapping *code = chain->python ? space_find(pid, python->evaluation[0]) : NULL;
    chain->interpreter = code ? code->module : NULL;
    chain->python_at = 0;
    chain->place = 0;
    chain->evaluations = chain->is_different = 0;
}

/* Whether the frames of Python fit the native ones, so that the stack is good. Where the copy of the stack ends, the callers
 * are there without the native code between them. */
static int end_chain(struct chain *chain) {
    const struct python_stack *python = chain->python;
    if (!python)
        return 1;
    if (chain->place)
        add_python(chain, chain->place - 1, after_group(python, chain->top));
    int is_cut = chain->flags & STACK_CUT || !(chain->flags & STACK_WHOLE);
    if (chain->is_different || (chain->python_at < python->count && !is_cut) || (!python->count && chain->evaluations))
        return 0;
    if (chain->python_at < python->count) {
        add_python(chain, chain->count, python->count);
        chain->flags = STACK_WHOLE;
    }
    return 1;
}

static void count_python(const struct python_stack *python, int is_good, uint32_t pid) {
    if (!python)
        header.late += is_python && python_knows(pid);
    else if (!is_good || python->status == PYTHON_CHANGED)
        header.changed++;
    else if (python->status == PYTHON_READ)
        header.python++;
    else
        header.bare++;
}

/* What the reader found for a sample; NULL where it came too late. */
static struct python_stack *take_python(struct ring *ring, uint64_t time, uint32_t tid) {
    struct python_stack *found = NULL;
    pthread_mutex_lock(&ring->lock);
    while (ring->first && ring->first->time <= time && !found) {
        struct python_stack *first = ring->first;
        if (!(ring->first = first->next))
            ring->last = &ring->first;
        if (first->time == time && first->tid == tid)
            found = first;
        else
            free(first);
    }
    pthread_mutex_unlock(&ring->lock);
    return found;
}

static int fill_chain(struct chain *chain, const struct python_stack *python, uint32_t pid, const uint64_t *addresses, size_t count,
                      uint64_t address, const uint64_t *rest, const uint64_t *end) {
    int is_user = 1;
    start_chain(chain, python, pid);
    while (count && addresses[0] >= (uint64_t)PERF_CONTEXT_MAX) {
        is_user = addresses[0] != (uint64_t)PERF_CONTEXT_KERNEL;
        addresses++, count--;
        for (; count && !is_user && addresses[0] < (uint64_t)PERF_CONTEXT_MAX; addresses++, count--)
            add(chain, (uint64_t)MODULE_KERNEL << MODULE_SHIFT | (addresses[0] & (((uint64_t)1 << MODULE_SHIFT) - 1)));
    }
    if (stack_bytes && rest < end && rest[0] == 2 /* PERF_SAMPLE_REGS_ABI_64 */) {
        uint64_t registers[REGISTERS];
        const uint64_t *copy = rest + 1 + REGISTERS;
        take_registers(rest + 1, registers);
        struct stack_copy stack = {(const uint8_t *)(copy + 1), registers[REGISTER_SP], 0};
        if (copy < end && copy[0] && copy + 1 + copy[0] / 8 < end)
            stack.size = copy[1 + copy[0] / 8];
        stack.size = stack.size <= copy[0] ? stack.size : 0;
        unwind(chain, pid, registers, &stack, addresses, count);
    } else {
        for (size_t i = 0; i < count || !i; i++) {
            uint64_t at = count ? addresses[i] - (i ? 1 : 0) : address;
            add(chain, frame_at(space_find(pid, at), at));
            if (chain->python && is_evaluation(chain->python, at))
                enter_python(chain, NULL, NULL, 0, 1);
        }
        chain->flags = STACK_FRAME_POINTERS;
    }
    return end_chain(chain);
}

static void take_sample(struct ring *ring, const uint64_t *word, const uint64_t *end) {
    static struct chain chain;
    uint32_t ids[2];
    uint64_t address = word[0], time = word[2], stream = word[3], period = word[5], count = word[6];
    memcpy(ids, &word[1], sizeof(ids));
    const uint64_t *addresses = &word[7], *rest = addresses + count;
    if (count > RECORD / 8 || rest > end)
        return;
    struct python_stack *python = take_python(ring, time, ids[1]);
    int is_good = fill_chain(&chain, python, ids[0], addresses, count, address, rest, end);
    if (!is_good)
        fill_chain(&chain, NULL, ids[0], addresses, count, address, rest, end);
    count_python(python, is_good, ids[0]);
    free(python);
    uint64_t weight = weight_of(stream, time, period);
    struct record_sample sample = {time, ids[0], ids[1], output_stack(chain.frames, chain.count, chain.flags),
                                   (uint32_t)(weight < UINT32_MAX ? weight : UINT32_MAX)};
    output_sample(&sample);
}

/* Threads that wait, of which the kernel tells where: only of processes that this user may look into. */

static uint64_t looked, elapsed;
static unsigned threads_seen;

static void take_wait(uint32_t pid, uint32_t tid) {
    static struct chain chain;
    static uint8_t data[1 << 14];
    char text[256], *space;
    snprintf(text, sizeof(text), "/proc/%u/task/%u/syscall", pid, tid);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof(text) - 1);
    if (file >= 0)
        close(file);
    text[size > 0 ? size : 0] = 0;
    threads_seen++;
    if (!(space = strrchr(text, ' '))) /* it runs, or has ended */
        return;
    uint64_t registers[REGISTERS] = {0};
    registers[REGISTER_IP] = strtoull(space, NULL, 16);
    *space = 0;
    registers[REGISTER_SP] = (space = strrchr(text, ' ')) ? strtoull(space, NULL, 16) : 0;
    struct stack_copy stack = {data, registers[REGISTER_SP], 0};
    struct iovec here = {data, sizeof(data)}, there[5];
    uint64_t at = stack.start, end = at + sizeof(data);
    for (size_t i = 0; i < 5; i++) { /* by pages, as the stack may end */
        uint64_t next = (at | 4095) + 1 < end && i < 4 ? (at | 4095) + 1 : end;
        there[i] = (struct iovec){(void *)at, next - at};
        at = next;
    }
    ssize_t got = process_vm_readv((pid_t)pid, &here, 1, there, 5, 0);
    stack.size = got > 0 ? (uint64_t)got : 0;
    uint64_t kept[REGISTERS];
    struct python_stack *python = is_python ? python_read(pid, tid, stack.start) : NULL;
    memcpy(kept, registers, sizeof(kept));
    for (const struct python_stack *one = python;; one = NULL) {
        start_chain(&chain, one, pid);
        memcpy(registers, kept, sizeof(kept));
        unwind(&chain, pid, registers, &stack, NULL, 0);
        if (end_chain(&chain))
            break;
    }
    free(python);
    struct record_sample sample = {looked, pid, tid, output_stack(chain.frames, chain.count, chain.flags),
                                   (uint32_t)(elapsed < UINT32_MAX ? elapsed : UINT32_MAX)};
    output_wait(&sample);
}

static void take_waits(uint32_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/task", pid);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            take_wait(pid, (uint32_t)atoi(entry->d_name));
    if (threads)
        closedir(threads);
}

/* Look at all threads, about a hundred times a second, less often where there are many. */
static void look(uint64_t time) {
    uint64_t gap = LOOK + LOOK / 2 * (time % 7) / 7;
    if (threads_seen > LOOKS / 100)
        gap = gap * threads_seen / (LOOKS / 100);
    if (looked && time - looked < gap)
        return;
    elapsed = looked ? time - looked : 0;
    looked = time;
    threads_seen = 0;
    if (elapsed)
        space_each(take_waits);
}

/* What the kernel tells. */

static void take_mapping(const uint8_t *data, const uint8_t *end, int has_id) {
    struct {
        uint32_t pid, tid;
        uint64_t address, size, offset;
        uint8_t id[24]; /* a size and a build id, or numbers of device and file */
        uint32_t protection, flags;
    } found;
    if ((size_t)(end - data) <= sizeof(found) || !memchr(data + sizeof(found), 0, (size_t)(end - data) - sizeof(found)))
        return;
    memcpy(&found, data, sizeof(found));
    uint8_t id[24] = {0};
    memcpy(id, has_id ? found.id + 4 : found.id, has_id ? 20 : 24);
    space_map(found.pid, found.address, found.size, found.offset, (const char *)data + sizeof(found), id,
              has_id ? found.id[0] : 0);
}

static void take_record(struct ring *ring, const struct perf_event_header *head, const uint8_t *data, uint64_t time) {
    const uint8_t *end = (const uint8_t *)head + head->size;
    const uint64_t *words = (const uint64_t *)data;
    uint32_t ids[4];
    memcpy(ids, data, sizeof(ids));
    switch (head->type) {
    case PERF_RECORD_SAMPLE: take_sample(ring, words, (const uint64_t *)end); break;
    case PERF_RECORD_MMAP2: take_mapping(data, end, head->misc & PERF_RECORD_MISC_MMAP_BUILD_ID); break;
    case PERF_RECORD_LOST: header.lost += words[1]; break;
    case PERF_RECORD_LOST_SAMPLES: header.lost += words[0]; break;
    case PERF_RECORD_THROTTLE: header.throttled++; break;
    case PERF_RECORD_COMM:
        if (head->misc & PERF_RECORD_MISC_COMM_EXEC)
            space_exec(ids[0]);
        output_task(head->misc & PERF_RECORD_MISC_COMM_EXEC ? RECORD_EXEC : RECORD_NAME, time, ids[0], ids[1], 0,
                    (const char *)data + 8);
        break;
    case PERF_RECORD_FORK: /* process, parent, thread, thread of the parent */
        if (ids[0] != ids[1])
            space_fork(ids[0], ids[1]);
        else
            space_thread(ids[0]);
        output_task(RECORD_FORK, time, ids[0], ids[2], ids[0] != ids[1] ? ids[1] : ids[3], "");
        break;
    case PERF_RECORD_EXIT:
        space_exit(ids[0]);
        output_task(RECORD_EXIT, time, ids[0], ids[2], 0, "");
        break;
    }
}

static void copy_out(const struct ring *ring, uint64_t from, void *into, size_t size) {
    size_t at = from & (ring->size - 1), first = ring->size - at < size ? ring->size - at : size;
    memcpy(into, ring->data + at, first);
    memcpy((uint8_t *)into + first, ring->data, size - first);
}

static struct perf_event_header head_of(const struct ring *ring) {
    struct perf_event_header head;
    copy_out(ring, ring->tail, &head, sizeof(head));
    return head;
}

/* The time of the next record: of a sample the third word, of others before their last two. */
static uint64_t next_time(const struct ring *ring) {
    struct perf_event_header head = head_of(ring);
    uint64_t time, place = head.type == PERF_RECORD_SAMPLE ? 24 : head.size - 24u;
    copy_out(ring, ring->tail + place, &time, sizeof(time));
    return time;
}

/* Take what is older than a time, in the order of time: what is newer may have older things come after it. */
static int drain(uint64_t until) {
    static uint64_t record[RECORD / 8];
    int taken = 0;
    for (size_t i = 0; i < ring_count; i++)
        rings[i].head = __atomic_load_n(&rings[i].page->data_head, __ATOMIC_ACQUIRE);
    for (;;) {
        struct ring *first = NULL;
        uint64_t earliest = until, time;
        for (size_t i = 0; i < ring_count; i++)
            if (rings[i].tail < rings[i].head && (time = next_time(&rings[i])) <= earliest) {
                earliest = time;
                first = &rings[i];
            }
        if (!first)
            break;
        struct perf_event_header head = head_of(first);
        if (head.size < sizeof(head) || first->tail + head.size > first->head) {
            first->tail = first->head;
            continue;
        }
        const uint64_t *place = (const uint64_t *)(first->data + (first->tail & (first->size - 1)));
        if ((first->tail & (first->size - 1)) + head.size > first->size) {
            copy_out(first, first->tail, record, head.size);
            place = record;
        }
        take_record(first, (const struct perf_event_header *)place, (const uint8_t *)(place + 1), earliest);
        first->tail += head.size;
        __atomic_store_n(&first->page->data_tail, first->tail, __ATOMIC_RELEASE);
        taken = 1;
    }
    return taken;
}

/* Readers of Python, one for each processor: it takes this from the thread that was sampled, which stands still where it was
 * meanwhile. */

static void read_record(struct ring *ring, const uint64_t *words, const struct perf_event_header *head, unsigned *misses) {
    uint32_t ids[2];
    memcpy(ids, &words[head->type == PERF_RECORD_SAMPLE ? 1 : 0], sizeof(ids));
    if ((head->type == PERF_RECORD_EXIT && ids[0] == (uint32_t)words[1]) ||
        (head->type == PERF_RECORD_COMM && head->misc & PERF_RECORD_MISC_COMM_EXEC))
        python_forget(ids[0], now());
    if (head->type != PERF_RECORD_SAMPLE)
        return;
    struct python_stack *found = python_read(ids[0], ids[1], words[7]);
    *misses = found && found->status != PYTHON_NONE ? 0 : *misses + 1;
    if (*misses || !found) {
        free(found);
        return;
    }
    found->time = words[2];
    found->next = NULL;
    pthread_mutex_lock(&ring->lock);
    ring->last = ring->first ? ring->last : &ring->first;
    *ring->last = found;
    ring->last = &found->next;
    pthread_mutex_unlock(&ring->lock);
}

/* Take what is new in a buffer; the other thread throws away there what is old. */
static void read_new(struct ring *ring, unsigned *misses) {
    uint64_t end = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), old;
    while (ring->seen < end) {
        struct perf_event_header head;
        uint64_t words[8] = {0}, stack, count;
        copy_out(ring, ring->seen, &head, sizeof(head));
        copy_out(ring, ring->seen + sizeof(head), words, sizeof(words) - 8);
        count = words[6];
        stack = ring->seen + sizeof(head) + 8 * (7 + count + 1 + REGISTER_SP); /* the kernel has it there, too */
        if (head.type == PERF_RECORD_SAMPLE && stack_bytes && count < RECORD / 8)
            copy_out(ring, stack, &words[7], 8);
        old = __atomic_load_n(&ring->page->data_tail, __ATOMIC_ACQUIRE);
        if (ring->seen < old || head.size < sizeof(head)) {
            ring->seen = ring->seen < old ? old : end;
            continue;
        }
        ring->seen += head.size;
        if (head.type == PERF_RECORD_SAMPLE || head.type == PERF_RECORD_EXIT || head.type == PERF_RECORD_COMM)
            read_record(ring, words, &head, misses);
    }
}

static void *read_pythons(void *given) {
    struct ring *ring = given;
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } schedule = {sizeof(schedule), 0, 0, 0, 0, SLICE, 0, 0};
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(ring->processor, &own);
    sched_setaffinity(0, sizeof(own), &own);
    schedule.nice = -20; /* where it may; and a short slice, so that it comes soon: from Linux 6.12 on */
    if (syscall(SYS_sched_setattr, 0, &schedule, 0)) {
        schedule.nice = getpriority(PRIO_PROCESS, 0);
        syscall(SYS_sched_setattr, 0, &schedule, 0);
    }
    for (unsigned misses = 0;;) {
        struct pollfd file = {ring->file, POLLIN, 0};
        poll(&file, 1, -1);
        read_new(ring, &misses);
        if (misses >= MISSES || file.revents & (POLLHUP | POLLERR)) { /* no Python; or a thread that has ended */
            struct timespec pause = {0, misses >= MISSES ? PAUSE : PAUSE / 20};
            nanosleep(&pause, NULL);
        }
    }
    return NULL;
}

static void start_readers(void) {
    pthread_t thread;
    for (size_t i = 0; i < ring_count && is_python; i++)
        if (pthread_create(&thread, NULL, read_pythons, &rings[i]))
            fail("no thread to read Python");
}

/* The command. */

static int waiting[2] = {-1, -1};

static pid_t start(char **command) {
    if (pipe2(waiting, O_CLOEXEC))
        fail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail("fork: %s", strerror(errno));
    if (!child) {
        char letter;
        close(waiting[1]);
        if (read(waiting[0], &letter, 1) != 1)
            _exit(125);
        close(waiting[0]);
        execvp(command[0], command);
        fprintf(stderr, "perun_sample: cannot start %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    close(waiting[0]);
    return child;
}

/* What a buffer lost is told by the next record in it, and of the last ones by none: but the events count it. */
static void count_all(void) {
    uint64_t lost = 0;
    header.cpu = 0;
    for (size_t i = 0; i < event_count; i++) {
        uint64_t values[2] = {0};
        if (read(events[i].file, values, sizeof(values)) >= (ssize_t)sizeof(*values)) {
            header.cpu += values[0];
            lost += values[1];
        }
    }
    header.lost = lost > header.lost ? lost : header.lost;
}

static void watch(int signals, uint64_t end) {
    uint64_t written = now(), redrawn = 0;
    /* An eighth of the buffers, by the period: who waits for them would take the news from the readers. */
    uint64_t room = ring_count ? rings[0].size / (stack_bytes + 2048) / 8 * header.period / 1000000 : 0;
    int wait = room < 1 ? 1 : room < WAIT ? (int)room : WAIT;
    uint64_t settled = (uint64_t)(wait < SETTLED ? wait : SETTLED) * 1000000;
    struct pollfd file = {signals, POLLIN, 0};
    /* Until the first draw all children get the period of the first samples, which may be short. */
    int first = (int)(drawn_between(header.period, header.period * 4) / 1000000);
    wait = is_waits && wait > LOOK / 1000000 ? LOOK / 1000000 : wait;
    for (int is_over = 0; !is_over;) {
        poll(&file, 1, redrawn || first > wait ? wait : first);
        struct signalfd_siginfo which;
        while (read(signals, &which, sizeof(which)) == sizeof(which)) {
            if (which.ssi_signo != SIGCHLD && header.period && end == UINT64_MAX)
                kill(target, (int)which.ssi_signo);
            else if (which.ssi_signo != SIGCHLD)
                is_over = 1;
        }
        struct rusage usage;
        if (end == UINT64_MAX && wait4(target, &header.status, WNOHANG, &usage) == target) {
            header.user = nanoseconds(usage.ru_utime);
            header.system = nanoseconds(usage.ru_stime);
            is_over = 1;
        }
        uint64_t time = now();
        if (end != UINT64_MAX && (time >= end || (kill(target, 0) && errno == ESRCH)))
            is_over = 1;
        uint64_t until = time - (python_is_found() ? settled : JUST);
        drain(is_over ? UINT64_MAX : until);
        python_free(until);
        python_tell();
        if (is_waits && !is_over)
            look(time);
        if (time - redrawn >= REDRAWN) {
            draw_period();
            redrawn = time + (draws * 2654435761u) % REDRAWN;
        }
        if (time - written >= WRITTEN) {
            output_flush();
            written = time;
        }
    }
}

static void attach(pid_t pid, uint64_t period, int kernel) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    struct dirent *entry;
    if (!threads)
        fail("there is no process %d: %s", pid, strerror(errno));
    while ((entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            open_all((pid_t)atoi(entry->d_name), period, kernel, 0);
    closedir(threads);
    if (!event_count)
        fail("process %d has no threads", pid);
    for (size_t i = 0; i < event_count; i++)
        ioctl(events[i].file, PERF_EVENT_IOC_ENABLE, 0);
    space_read((uint32_t)pid);
}

static int can_sample(int kernel) {
#ifdef __x86_64__
    stack_bytes = 4096;
#endif
    struct perf_event_attr what = attributes(2000000, kernel);
    return open_event(&what, 0, -1) < 0 ? errno : 0;
}

int main(int count, char **words) {
    if (count < 10) {
        is_cycles = count > 1 && !strcmp(words[1], "cycles");
        return can_sample(count > 2 && atoi(words[2]));
    }
    uint64_t period = 1000000000u / (uint64_t)atoi(words[2]);
    stack_bytes = (uint32_t)atoi(words[3]) & ~7u;
    is_cycles = !strcmp(words[4], "cycles");
    int kernel = atoi(words[5]);
    double seconds = atof(words[7]);
    target = atoi(words[6]);
    int is_command = !target;
    is_waits = atoi(words[8]);
    is_python = atoi(words[9]);
    header.stack_bytes = stack_bytes;
    header.period = period;
    if (is_command)
        target = start(words + 10);
    signal(SIGCHLD, SIG_DFL);
    sigset_t handled;
    sigemptyset(&handled);
    for (const int *one = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *one; one++)
        sigaddset(&handled, *one);
    sigprocmask(SIG_BLOCK, &handled, NULL);
    int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (is_command)
        open_all(target, first_period(period), kernel, 1);
    if (!output_open(words[1]))
        fail("%s: %s", words[1], strerror(errno));
    header.start = now();
    if (is_command) {
        if (write(waiting[1], "g", 1) != 1)
            fail("cannot start the command");
        close(waiting[1]);
    } else
        attach(target, period, kernel);
    output_flush();
    start_readers();
    watch(signals, is_command ? UINT64_MAX : header.start + (uint64_t)(seconds * 1e9));
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    header.own_cpu = nanoseconds(own.ru_utime) + nanoseconds(own.ru_stime);
    count_all();
    header.end = now();
    output_flush();
    return 0;
}
