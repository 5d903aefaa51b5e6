/* System calls that are no cancellation points and that no library can interpose, and a lock that needs no library. They
 * change errno. */
#ifndef PERUN_MEMORY_SYSTEM_H
#define PERUN_MEMORY_SYSTEM_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static inline int system_open(const char *path, int flags, int mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static inline long system_read(int file, void *to, size_t size) { return syscall(SYS_read, file, to, size); }

static inline void system_close(int file) { syscall(SYS_close, file); }

static inline int system_pid(void) { return (int)syscall(SYS_getpid); }

/* Whether this process has no second thread; glibc knows since 2.32. */
extern char __libc_single_threaded __attribute__((weak));

static inline bool alone(void) { return &__libc_single_threaded && __libc_single_threaded; }

/* 0: free, 1: held, 2: held, and threads wait for it. */
typedef uint32_t lock_t;

static inline void lock_wait(lock_t *lock) {
  while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE))
    syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void lock_take(lock_t *lock) {
  uint32_t expected = 0;
  if (UNLIKELY(!__atomic_compare_exchange_n(lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
    lock_wait(lock);
}

static inline void lock_release(lock_t *lock) {
  if (UNLIKELY(__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2))
    syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
