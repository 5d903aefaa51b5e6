/* The format of the records, which the probes make, the loader writes to a file and engines/ebpf.py reads.
 *
 * A record has two words of eight bytes. The first one is the time: nanoseconds of the monotonic clock. The lower
 * half of the second one is the id of the thread, the upper half the number of the function and the flags below.
 * If PERUN_SIZED is set, a third word follows: the sum of the terms of the size. If the number is PERUN_STACK,
 * the first word is the stack pointer at the entry that the next record of the thread describes.
 */
#ifndef PERUN_TRACE_RECORD_H
#define PERUN_TRACE_RECORD_H

#define PERUN_EXIT 0x80000000u
#define PERUN_SIZED 0x40000000u
#define PERUN_STACK 0x3fffffffu
#define PERUN_MAX_TERMS 6
#define PERUN_MAX_STEPS 6
#define PERUN_MAX_FUNCTIONS 65536

/* One number of a size: each of `steps` reads goes to the address so far plus its offset; all but the last read a
 * pointer, the last one a number of `width` bytes. Without steps the parameter itself is the number. */
struct perun_term {
    long long factor;
    int offsets[PERUN_MAX_STEPS];
    unsigned char steps;
    unsigned char width;
    unsigned char is_signed;
    unsigned char unused[5];
};

/* How to read the size of a function. `place` is a register, from 0 for rdi to 5 for r9, or -1 - n for a parameter
 * on the stack, n bytes above the return address. With `follow` the stack pointer is recorded, too. */
struct perun_size {
    int terms;
    int place;
    int follow;
    int unused;
    struct perun_term term[PERUN_MAX_TERMS];
};

#endif
