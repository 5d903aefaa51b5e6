/* The format of the file that the sampler writes: a header, and blocks one after the other.
 *
 * All numbers have the byte order of the machine. A block is complete or the file ends within it: what was written before
 * stays readable wherever the sampler is killed or the disk is full. The header is written again with each flush, in its
 * place, so that it tells what was lost even if nothing more can be written.
 */
#ifndef PERUN_SAMPLE_RECORD_H
#define PERUN_SAMPLE_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC "PERUNSMP"
enum { RECORD_BYTE_ORDER = 0x01020304, RECORD_VERSION = 2 };

struct record_header {
    char magic[8];
    uint32_t byte_order, version;
    uint64_t start, end;       /* CLOCK_MONOTONIC in ns; `end` is 0 while the sampler runs */
    uint64_t period;           /* mean ns of CPU time from one sample to the next */
    uint64_t stack_bytes;      /* of each copy of a stack; 0 where frame pointers were followed */
    uint64_t samples, lost;    /* taken; and lost by the kernel, as nobody read them in time */
    uint64_t unwritten;        /* samples for which there was no room in the file */
    uint64_t cpu;              /* ns that the processes had a processor, whether sampled or not */
    uint64_t own_cpu;          /* ns that the sampler used itself */
    uint64_t user, system;     /* ns of the command, as wait4 tells them */
    int32_t status;            /* of the command, as wait4 tells it */
    uint32_t error;            /* errno of what ended the recording early; 0 for none */
    uint64_t throttled;        /* how often the kernel held samples back */
    uint64_t python;           /* samples with functions of Python, */
    uint64_t bare;             /* those of threads of Python that ran none, */
    uint64_t changed;          /* those whose functions changed before they were read, */
    uint64_t late;             /* and those of Python where nobody came to read in time */
};

/* Waits are samples, too: of threads that had no processor, and their weight is real time. */
enum { BLOCK_DEFINITIONS = 1, BLOCK_SAMPLES = 2, BLOCK_WAITS = 3 };

struct record_block {
    uint32_t kind, size; /* bytes that follow, a multiple of 8 */
};

/* Definitions; modules have the numbers 3, 4, ... in their order, stacks 1, 2, ... Each has a size of a multiple of 8. */
enum { RECORD_MODULE = 1, RECORD_STACK, RECORD_NAME, RECORD_EXEC, RECORD_FORK, RECORD_EXIT, RECORD_FUNCTION, RECORD_REFUSAL };

struct record_module {
    uint32_t kind, size;
    uint32_t pid;     /* of the process that has this code to itself, which it made; 0 for a file */
    uint32_t id_size; /* bytes of the build id, 0 where that is not known */
    uint8_t id[24];
    char path[]; /* ends with a zero */
};

struct record_function { /* of Python; they have the numbers 1, 2, ... in their order */
    uint32_t kind, size;
    char names[]; /* the function and its file, each with a zero */
};

/* An interpreter of Python that is not read: it is not CPython 3.9 to 3.14, has not the symbols, or may not be read. */
enum record_refusal { REFUSED_OTHER = 1, REFUSED_VERSION, REFUSED_SYMBOLS, REFUSED_RIGHTS };

struct record_refused {
    uint32_t kind, size, why, padding;
    char path[]; /* ends with a zero */
};

/* A frame is the number of a module in the upper 16 bits and the place in the file, or the address in code of a process, in
 * the others. The place of a caller is that of the call. The innermost frame comes first.
 * That of Python has the number of its function and the line, and comes before the native one that evaluates it. */
enum { LINE_BITS = 22, MODULE_SHIFT = 48, MODULE_UNKNOWN = 0, MODULE_KERNEL = 1, MODULE_PYTHON = 2, MAX_MODULES = 65535 };
/* Flags of stacks: why the last frame is the outermost one of the program, or is not. */
enum { STACK_WHOLE = 1, STACK_CUT = 2, STACK_FRAME_POINTERS = 4 };

struct record_stack {
    uint32_t kind, size;
    uint64_t flags;
    uint64_t frames[];
};

struct record_task { /* of RECORD_NAME and later */
    uint32_t kind, size;
    uint64_t time;
    uint32_t pid, tid, parent, padding;
    char name[16];
};

struct record_sample {
    uint64_t time;
    uint32_t pid, tid;
    uint32_t stack;
    uint32_t weight; /* ns that the sample stands for */
};

#endif
