#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define NAME_SIZE (PATH_MAX + 64)
#define INITIAL_SIZE (16u << 10) /* bytes of a file that are reserved at first, because many threads call little */
#define STORAGE 20000u /* calls that are mapped at once by default */
#define CALL (2 * sizeof(uint64_t)) /* bytes of the two events of a call */
#define CALIBRATION 200000u /* nanoseconds that measure the speed of the counter well enough */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

bool clock_is_counter;

static char base[PATH_MAX + 40]; /* what all file names of the process begin with */
static struct record_process *process;
static struct record_function *functions;
static uint32_t modules;
static unsigned threads;
static char clock_lock; /* set while a thread records the clock */
static size_t window_size;

static size_t pages(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (size + page - 1) / page * page;
}

/* On a full disk, a write to a mapped file kills the program, unless the blocks are reserved. */
static bool reserve(int file, uint64_t at, size_t size) {
  return syscall(SYS_fallocate, file, 0, (off_t)at, (off_t)size) == 0 || errno == EOPNOTSUPP;
}

static void *map(int file, uint64_t at, size_t size, size_t reserved) {
  if (!reserve(file, at, reserved)) return NULL;
  void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)at);
  if (mapped == MAP_FAILED) return NULL;
  madvise(mapped, size, MADV_RANDOM); /* the file is new: reading ahead is wasted */
  return mapped;
}

static int make(const char *name) {
  return (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* Make a file longer; beyond RLIMIT_FSIZE that would send the program a signal, so it fails instead. */
static bool lengthen(int file, uint64_t size) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  return ftruncate(file, (off_t)size) == 0;
}

static int make_process(const char *folder) {
  char name[NAME_SIZE];
  for (unsigned again = 0; again < 100000; again++) { /* one process may execute many programs */
    snprintf(base, sizeof base, "%s/%ld.%u", folder, syscall(SYS_getpid), again);
    snprintf(name, sizeof name, "%s.process", base);
    int file = make(name);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

bool output_start(uint64_t *first_tick) {
  const char *folder = getenv("PERUN_COMPLEXITY_FOLDER"), *storage = getenv("PERUN_COMPLEXITY_STORAGE");
  if (!folder || *folder != '/' || strlen(folder) >= PATH_MAX) return false;
  unsigned long wanted = storage ? strtoul(storage, NULL, 10) : 0;
  window_size = pages((wanted && wanted < (1ul << 26) ? wanted : STORAGE) * CALL);
  clock_is_counter = clock_is_invariant();
  modules = threads = 0;
  clock_lock = 0;
  process = NULL;
  int file = make_process(folder);
  if (file < 0) return false;
  size_t size = RECORD_HEADER_SIZE + (size_t)RECORD_MAX_FUNCTIONS * sizeof(struct record_function);
  struct record_process *mapped = lengthen(file, size) ? map(file, 0, size, size) : NULL;
  syscall(SYS_close, file);
  if (!mapped) return false;
  functions = (struct record_function *)((char *)mapped + RECORD_HEADER_SIZE);
  memcpy(mapped->magic, RECORD_PROCESS_MAGIC, sizeof mapped->magic);
  mapped->byte_order = RECORD_BYTE_ORDER;
  mapped->version = RECORD_VERSION;
  mapped->pid = (uint32_t)syscall(SYS_getpid);
  mapped->parent = (uint32_t)syscall(SYS_getppid);
  mapped->is_tsc = clock_is_counter;
  mapped->clock[0] = clock_nanoseconds();
  mapped->ticks[0] = *first_tick = clock_ticks();
  do
    mapped->clock[1] = clock_nanoseconds();
  while (clock_is_counter && mapped->clock[1] - mapped->clock[0] < CALIBRATION);
  mapped->ticks[1] = clock_ticks();
  process = mapped;
  return true;
}

void output_clock(bool ended) {
  if (!process) return;
  if (ended) process->ended = 1;
  /* Tick and time must be of the same moment. A thread that comes second can skip this: the first one is as good. */
  if (__atomic_test_and_set(&clock_lock, __ATOMIC_ACQUIRE)) return;
  process->clock[2] = clock_nanoseconds();
  process->ticks[2] = clock_ticks();
  __atomic_clear(&clock_lock, __ATOMIC_RELEASE);
}

uint32_t output_module(const char *path) {
  char name[NAME_SIZE], line[PATH_MAX + 32];
  snprintf(name, sizeof name, "%s.modules", base);
  int length = snprintf(line, sizeof line, "%u %s\n", modules, path);
  int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return RECORD_NO_ID;
  bool written = length < (int)sizeof line && syscall(SYS_write, file, line, (size_t)length) == length;
  syscall(SYS_close, file);
  return written ? modules++ : RECORD_NO_ID;
}

uint32_t output_function(uint64_t address, uint32_t module) {
  if (process->functions == RECORD_MAX_FUNCTIONS) {
    process->lost_functions++;
    return RECORD_NO_ID;
  }
  functions[process->functions] = (struct record_function){address, module, 0};
  return process->functions++;
}

/* A thread does not keep the descriptor of its file open, because some programs close descriptors of others. */
static void name_of(const struct record_thread *thread, char *name) {
  snprintf(name, NAME_SIZE, "%s-%u.calls", base, thread->number);
}

struct record_thread *output_thread(void) {
  char name[NAME_SIZE];
  unsigned number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
  snprintf(name, sizeof name, "%s-%u.calls", base, number);
  size_t events_at = pages(RECORD_HEADER_SIZE), size = events_at + window_size;
  size_t initial = window_size < INITIAL_SIZE ? window_size : INITIAL_SIZE;
  int file = make(name);
  if (file < 0) return NULL;
  struct record_thread *mapped = lengthen(file, size) ? map(file, 0, size, events_at + initial) : NULL;
  syscall(SYS_close, file);
  if (!mapped) return NULL;
  memcpy(mapped->magic, RECORD_CALLS_MAGIC, sizeof mapped->magic);
  mapped->byte_order = RECORD_BYTE_ORDER;
  mapped->version = RECORD_VERSION;
  mapped->pid = (uint32_t)syscall(SYS_getpid);
  mapped->tid = (uint32_t)syscall(SYS_gettid);
  mapped->number = number;
  mapped->events_at = events_at;
  mapped->written_at = size;
  mapped->window = mapped->next = (uint64_t)(uintptr_t)mapped + events_at;
  mapped->end = mapped->window + initial;
  return mapped;
}

bool output_grow(struct record_thread *thread) {
  char name[NAME_SIZE];
  struct rlimit limit;
  size_t size = thread->next - thread->window;
  name_of(thread, name);
  int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
  uint64_t at = thread->written_at + thread->written;
  errno = file < 0 ? errno : 0;
  /* A write beyond RLIMIT_FSIZE would send the program a signal. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && at + size > limit.rlim_cur)
    errno = EFBIG;
  for (size_t done = 0; !errno && done < size;) {
    long written = syscall(SYS_pwrite64, file, (const char *)(uintptr_t)thread->window + done, size - done, (off_t)(at + done));
    if (written > 0)
      done += (size_t)written;
    else
      errno = written < 0 ? (errno == EINTR ? 0 : errno) : ENOSPC;
  }
  thread->error = (uint32_t)errno;
  /* The first time, the window also gets its full size. */
  bool is_first = thread->end - thread->window < window_size;
  if (!thread->error && is_first && reserve(file, thread->events_at, window_size)) {
    thread->end = thread->window + window_size;
    madvise((void *)(uintptr_t)thread->window, window_size, MADV_POPULATE_WRITE);
  }
  if (file >= 0) syscall(SYS_close, file);
  if (thread->error) return false;
  thread->written += size;
  thread->next = thread->window;
  output_clock(false);
  return true;
}

void output_shrink(const struct record_thread *thread) {
  char name[NAME_SIZE];
  name_of(thread, name);
  int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) return;
  uint64_t from = thread->events_at + pages(thread->next - thread->window), to = thread->written_at;
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (from < to) syscall(SYS_fallocate, file, mode, (off_t)from, (off_t)(to - from));
  syscall(SYS_close, file);
}

void output_close(struct record_thread *thread) { munmap(thread, thread->written_at); }
