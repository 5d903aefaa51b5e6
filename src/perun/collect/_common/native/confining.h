/* What a program can take from itself that its recorder needs. */
#ifndef PERUN_CONFINING_H
#define PERUN_CONFINING_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stands for an errno where the recording ended because of that; Linux has none so large. */
#define RECORD_CONFINED 4095u

/* Whether prctl() takes from this thread the counter of the processor, which the clocks of the C library read, too, and
 * with seccomp all system calls but read, write, exit and sigreturn. */
static inline bool is_confining(int option, unsigned long value) {
  if (option == PR_SET_SECCOMP) return value == SECCOMP_MODE_STRICT && syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
  return option == PR_SET_TSC && value == PR_TSC_SIGSEGV;
}

#endif
