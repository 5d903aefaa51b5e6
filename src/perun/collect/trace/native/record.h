/* What the probes record, the loader writes to a file and engines/ebpf.py reads.
 *
 * A record has two words of eight bytes: nanoseconds of the monotonic clock; and the thread (32 bits), with the
 * number of the function and the flags below above it. A third word follows where PERUN_SIZED is set: the sum
 * that the size is made of. Where the number is PERUN_STACK, the first word is the stack pointer at the entry
 * that the next record of the thread is of.
 */
#ifndef PERUN_TRACE_RECORD_H
#define PERUN_TRACE_RECORD_H

#define PERUN_EXIT 0x80000000u
#define PERUN_SIZED 0x40000000u
#define PERUN_STACK 0x3fffffffu
#define PERUN_MAX_TERMS 6
#define PERUN_MAX_STEPS 6
#define PERUN_MAX_FUNCTIONS 65536

/* One number of a size: what lies behind `steps` pointers, each moved by its offset. */
struct perun_term {
    long long factor;
    int offsets[PERUN_MAX_STEPS];
    unsigned char steps;
    unsigned char width;
    unsigned char is_signed;
    unsigned char unused[5];
};

/* How the size of a function is read: `place` is a register (0 is rdi ... 5 is r9), or -1 - bytes above the
 * return address for what is on the stack. With `follow` the stack pointer is recorded too. */
struct perun_size {
    int terms;
    int place;
    int follow;
    int unused;
    struct perun_term term[PERUN_MAX_TERMS];
};

#endif
