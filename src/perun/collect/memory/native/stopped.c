#define _GNU_SOURCE
#include "stopped.h"

#include <dirent.h>
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "system.h"

struct entry { /* of a folder, as the kernel writes it */
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

static int numbers[STOPPED_THREADS];

/* The numbers of all threads of the process but this one. */
static size_t list_threads(void) {
  char buffer[4096] __attribute__((aligned(8)));
  size_t count = 0;
  long got;
  int own = (int)syscall(SYS_gettid), folder = system_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0) return 0;
  while ((got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0)
    for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
      int number = atoi(((struct entry *)(buffer + at))->name);
      if (number > 0 && number != own && count < STOPPED_THREADS) numbers[count++] = number;
    }
  system_close(folder);
  return count;
}

#if defined(__x86_64__)
static uintptr_t stack_pointer(const struct user_regs_struct *registers) { return registers->rsp; }
#else
static uintptr_t stack_pointer(const struct user_regs_struct *registers) { return registers->sp; }
#endif

/* Stop a thread and read its registers; false if that is not allowed, or it has ended. */
static bool stop(int number, struct stopped *to) {
  struct user_regs_struct registers;
  struct iovec place = {&registers, sizeof registers};
  int status;
  to->stack = 0;
  to->register_count = 0;
  if (ptrace(PTRACE_SEIZE, number, NULL, NULL) != 0) return false;
  if (ptrace(PTRACE_INTERRUPT, number, NULL, NULL) != 0) return false;
  if (syscall(SYS_wait4, number, &status, __WALL, NULL) != number || !WIFSTOPPED(status)) return false;
  if (ptrace(PTRACE_GETREGSET, number, (void *)(uintptr_t)NT_PRSTATUS, &place) != 0) return false;
  to->stack = stack_pointer(&registers);
  to->register_count = sizeof registers / sizeof *to->registers;
  if (to->register_count > STOPPED_REGISTERS) to->register_count = STOPPED_REGISTERS;
  memcpy(to->registers, &registers, to->register_count * sizeof *to->registers);
  return true;
}

struct job {
  struct stopped *threads;
  size_t count;
  bool done;
  void (*action)(const struct stopped *, size_t, unsigned);
};

static int help(void *argument) {
  struct job *job = argument;
  unsigned unseen = 0;
  for (size_t i = 0; i < job->count; i++) unseen += !stop(numbers[i], job->threads + i);
  job->action(job->threads, job->count, unseen);
  job->done = true;
  syscall(SYS_exit, 0); /* which lets the threads go on */
  return 0;
}

void with_threads_stopped(struct stopped *threads, void *helper_stack, size_t helper_stack_size,
                          void (*action)(const struct stopped *threads, size_t count, unsigned unseen)) {
  struct job job = {threads, list_threads(), false, action};
  if (job.count && helper_stack) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* handlers of the program must not run in the helper */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    /* This thread stands still until the helper ends, whose end sends no signal. */
    int helper = clone(help, (char *)helper_stack + helper_stack_size, CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, &job);
    if (helper > 0) syscall(SYS_wait4, helper, NULL, __WALL, NULL);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
  }
  if (!job.done) action(threads, 0, (unsigned)job.count);
}
