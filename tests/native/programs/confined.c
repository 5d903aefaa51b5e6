/* Takes from itself what recorders need: "seccomp" most system calls, and "counter" that of the processor; "filter" ends
 * it for the next system call but the one of its end; "bare" is "seccomp" by a call that no library can see. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i;
  return sum;
}

static void filter(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) abort();
}

int main(int count, char **words) {
  void *first = malloc(1000);
  work(10);
  if (count < 2) return 1;
  if (!strcmp(words[1], "seccomp")) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  if (!strcmp(words[1], "bare")) syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  if (!strcmp(words[1], "counter")) prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  if (!strcmp(words[1], "filter")) filter();
  for (int i = 0; i < 5; i++) {
    work(20);
    free(malloc(100));
  }
  free(first);
  if (!strcmp(words[1], "filter")) syscall(SYS_getpid);
  syscall(SYS_exit, 0);
}
