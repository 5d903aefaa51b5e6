/* Reads the frames of CPython 3.9 to 3.14 in the memory of processes, which go on meanwhile. */
#ifndef PERUN_SAMPLE_PYTHON_H
#define PERUN_SAMPLE_PYTHON_H

#include <stddef.h>
#include <stdint.h>

struct python_code;

struct python_frame {
    uint64_t address;
    struct python_code *code;
    int32_t unit; /* of the bytecode, from the begin; negative where that is not known */
    int is_last;  /* the outermost of those that one call of the interpreter's native code evaluates */
};

/* READ, or why there are no frames: the process has no Python, or one that cannot be read; the thread runs none; they
 * changed while they were read. */
enum python_status { PYTHON_READ, PYTHON_NONE, PYTHON_BARE, PYTHON_CHANGED };

struct python_stack {
    struct python_stack *next;
    uint64_t time, evaluation[4]; /* where the native code that evaluates frames begins and ends, twice */
    uint32_t tid, count;
    enum python_status status;
    struct python_frame frames[]; /* the innermost first */
};

/* The stack of a thread now; NULL without memory. `stack` is its stack pointer, 0 where that is not known. */
struct python_stack *python_read(uint32_t pid, uint32_t tid, uint64_t stack);
/* Whether any process had one, so far. */
int python_is_found(void);
/* Whether a process has an interpreter that can be read. */
int python_knows(uint32_t pid);
/* Write down which interpreters are not read. */
void python_tell(void);
/* What is known of a process holds no longer: it has ended, or runs another program. */
void python_forget(uint32_t pid, uint64_t time);
/* Throw away what was forgotten before a time: nobody has stacks from before. */
void python_free(uint64_t until);
/* The frame for the file: a function and a line. */
uint64_t python_place(const struct python_frame *frame);
/* Whether an address lies in the bytecode that a frame executes. */
int python_executes(const struct python_frame *frame, uint64_t address);

#endif
