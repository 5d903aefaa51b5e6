/* Rules of unwinding: how to get from a frame to that of its caller, by the tables that compilers write for exceptions
 * (.eh_frame: DWARF 4 6.4, LSB 4.1 10.6), for x86-64.
 *
 * Only the stack pointer, rbp and the return address are followed, which is enough for the code that compilers make. */
#ifndef PERUN_MEMORY_RULES_H
#define PERUN_MEMORY_RULES_H

#include <stdint.h>

enum base { BASE_SP, BASE_RBP, BASE_CFA, BASE_NONE };

/* Where a value is: base + offset itself, or with `stored` the word at that address. */
struct location {
  int32_t offset;
  uint8_t base;
  uint8_t stored;
};

/* How to get to the frame of the caller, whose stack pointer is the CFA (canonical frame address). */
struct rule {
  struct location cfa, ip, rbp; /* base BASE_NONE: there is no caller, or rbp is unchanged */
  uint8_t signal;               /* a signal came in between: the caller's address is exact, not one after a call */
  uint8_t plain;                /* the common kind: CFA by register and offset, ip just below it */
};

/* Make the rule for code at `ip`; one without a caller if the tables do not describe it. Takes microseconds. The bytes of
 * equal rules are equal. */
void rule_make(uintptr_t ip, struct rule *rule);

#endif
