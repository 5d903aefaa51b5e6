/* A child that is forked within a call, and ends its own way. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int work(int value) { return value + 1; }

int in_child(int calls) {
  volatile int value = 0;
  for (int call = 0; call < calls; call++) value = work(value);
  return 0;
}

int spawn(int calls) {
  pid_t child = fork();
  if (child == 0) {
    in_child(calls);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int main(int count, char **arguments) {
  int calls = count > 1 ? atoi(arguments[1]) : 100, status = 0;
  for (int again = 0; again < 2; again++) status |= spawn(calls);
  for (int call = 0; call < calls; call++) status |= work(call) < 0;
  return status;
}
