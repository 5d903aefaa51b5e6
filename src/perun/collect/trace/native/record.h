/* The format of the records, which the probes make, the loader writes to a file and engines/ebpf.py reads.
 *
 * A record has two words of eight bytes. The first one is the time: nanoseconds of the monotonic clock. The lower
 * half of the second one is the id of the thread, the upper half the number of the function and the flags below.
 * If PERUN_SIZED is set, a third word follows: the sum of the terms of the size. If the number is PERUN_STACK,
 * the first word is the stack pointer at the entry that the next record of the thread describes. If it is PERUN_PAUSE,
 * the first word is for how many nanoseconds the loader has held up the thread.
 */
#ifndef PERUN_TRACE_RECORD_H
#define PERUN_TRACE_RECORD_H

#define PERUN_EXIT 0x80000000u
#define PERUN_SIZED 0x40000000u
#define PERUN_STACK 0x3fffffffu
#define PERUN_PAUSE 0x3ffffffeu
#define PERUN_MAX_TERMS 6
#define PERUN_MAX_STEPS 6
#define PERUN_MAX_FUNCTIONS 65536

/* How many nested calls of a thread have their returns caught. The kernel catches 64; other tools may need some. */
#define PERUN_MAX_RETURNS 60

/* What the kernel does at the probes of a function:
 *
 *     PERUN_RETURNS     it catches the returns of at most PERUN_MAX_RETURNS nested calls
 *     PERUN_HAS_EXITS   the loader knows the instructions that leave the function, and can probe them
 *     PERUN_AT_EXITS    it has done so, because calls were nested more deeply
 *     PERUN_GOROUTINE   Go compiled the function: r14 is the goroutine, which goes from thread to thread
 *     PERUN_COUNTED     the loader may detach its probes while no recorded call of it is open; see struct perun_count
 *     PERUN_TIMED       it is not recorded while the timer has switched recording off
 */
#define PERUN_RETURNS 1u
#define PERUN_HAS_EXITS 2u
#define PERUN_AT_EXITS 4u
#define PERUN_GOROUTINE 8u
#define PERUN_COUNTED 16u
#define PERUN_TIMED 32u

/* Set in the number of a goroutine, which stands in place of that of a thread. */
#define PERUN_NO_THREAD 0x80000000u

/* With `sampling` above 1 the first of so many calls is recorded. With a `limit` no call is recorded after so many. */
struct perun_function {
    unsigned int flags;
    unsigned int sampling;
    unsigned long long limit;
};

/* Of a function with PERUN_COUNTED: its calls while it was probed, and how many of those that are recorded have not
 * ended. */
struct perun_count {
    unsigned long long calls;
    long long open;
};

/* To the loader: the calls of a function have reached its limit. */
struct perun_limit {
    unsigned int function;
    unsigned int unused[11];
};

/* Which process starts the command: its number `process` in the namespace of processes that is the file `inode` of
 * `device`; without an inode its number in the outermost one. With `follow` a process that executes a file stops, until
 * the loader has probed that. With the number 0 no process stops any more. */
struct perun_start {
    unsigned long long device;
    unsigned long long inode;
    unsigned int process;
    unsigned int follow;
};

/* To the loader: a thread of `process` stops, until the exits of a function are probed. */
struct perun_request {
    unsigned long long time;
    unsigned int thread;
    unsigned int process;
    unsigned int function;
    unsigned int unused[3];
};

/* To the loader: a traced process executes a file. For a script the file is that of its interpreter. `stopped` is the
 * number of the process if it stops until the loader lets it go on; else 0. */
struct perun_execution {
    unsigned long long device;
    unsigned long long inode;
    int is_script;
    unsigned int stopped;
    char path[232];
};

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
