/* Finds the callers in a copy of a stack by the tables of a file (`.eh_frame`). */
#ifndef PERUN_SAMPLE_UNWIND_H
#define PERUN_SAMPLE_UNWIND_H

#include <stddef.h>
#include <stdint.h>

enum { REGISTERS = 17, REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_IP = 16 }; /* the numbers of DWARF for x86-64 */

/* The copy of a stack: `size` bytes from the address `start` on. */
struct stack_copy {
    const uint8_t *data;
    uint64_t start, size;
};

enum step {
    STEP_CALLER,  /* the registers are those of the caller */
    STEP_SIGNAL,  /* so they are, and the caller was interrupted by a signal, so that it did not call */
    STEP_OUTMOST, /* there is no caller */
    STEP_UNKNOWN, /* the tables do not have the address */
    STEP_CUT,     /* the copy of the stack ends before */
};

struct image;

/* Read the tables of a file; NULL where it has none. */
struct image *image_open(const char *path);
/* The same of what the kernel gives to each program, which this one has, too. */
struct image *image_of_vdso(void);
/* The address in the file's own numbers of a place in it. */
uint64_t image_address(const struct image *image, uint64_t offset);
/* Go from a function to its caller. `address` is that of the instruction in the file's own numbers. */
enum step image_step(const struct image *image, uint64_t address, uint64_t *registers, const struct stack_copy *stack);
/* Read a word of the stack; false where it is not in the copy. */
int stack_word(const struct stack_copy *stack, uint64_t address, uint64_t *word);

#endif
