#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "system.h"

#define HIGH_DESCRIPTOR 1000 /* the program expects to get the lowest descriptors */

static char path[PATH_MAX], tail_path[PATH_MAX + 8];
static int file = -1;
static struct stat identity; /* of the file; some programs close or reuse descriptors of others */
static struct record_tail *tail;
static size_t tail_mapped;

static int moved_high(int low) {
  struct rlimit limit;
  rlim_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : HIGH_DESCRIPTOR;
  int least = most > HIGH_DESCRIPTOR + 8 ? HIGH_DESCRIPTOR : most > 16 ? (int)most - 8 : 0;
  int high = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, least);
  if (high < 0) return low;
  system_close(low);
  return high;
}

/* Reserve the blocks of a file; returns 0 or an errno. posix_fallocate would be a cancellation point. */
static int reserve(int made, size_t size) {
  static const char zeros[4096];
  if (syscall(SYS_fallocate, made, 0, (off_t)0, (off_t)size) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  for (size_t at = 0; at < size; at += sizeof zeros) {
    size_t part = size - at < sizeof zeros ? size - at : sizeof zeros;
    if (syscall(SYS_write, made, zeros, part) != (long)part) return ENOSPC;
  }
  return 0;
}

static struct record_tail *map_tail(size_t size) {
  int made = system_open(tail_path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (made < 0) return NULL;
  /* On a full disk, a write to the mapping kills the program, unless the blocks are reserved. */
  int failed = reserve(made, size);
  void *mapped = failed ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
  system_close(made);
  if (mapped != MAP_FAILED) return mapped;
  unlink(tail_path);
  return NULL;
}

static int create(const char *name, bool child) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL;
  if (!child) {
    strcpy(path, name);
    return system_open(path, flags, 0600);
  }
  int made = -1;
  for (unsigned again = 0; again < 1000000; again++) { /* one process may execute many programs */
    int length = snprintf(path, sizeof path, "%s.%d", name, system_pid());
    if (again) snprintf(path + length, sizeof path - (size_t)length, ".%u", again);
    made = system_open(path, flags, 0600);
    if (made >= 0 || errno != EEXIST) break;
  }
  return made;
}

/* Whether so many more bytes exceed RLIMIT_FSIZE. Writing them would send the program a signal. */
static bool exceeds_limit(size_t size) {
  struct rlimit limit;
  struct stat now;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return fstat(file, &now) != 0 || (rlim_t)now.st_size + size > limit.rlim_cur;
}

struct record_tail *output_make(const char *name, bool child, size_t tail_size) {
  int made = create(name, child);
  if (made < 0) return NULL;
  file = moved_high(made);
  snprintf(tail_path, sizeof tail_path, "%s.tail", path);
  if (fstat(file, &identity) == 0 && !exceeds_limit(tail_size)) tail = map_tail(tail_size);
  if (tail) {
    tail_mapped = tail_size;
    return tail;
  }
  output_discard();
  return NULL;
}

void output_refused(const char *name) {
  snprintf(path, sizeof path, "%s" RECORD_WHOLE, name);
  unlink(path); /* this needs no descriptor, and no room on the disk */
}

void output_discard(void) {
  unlink(path);
  if (tail) unlink(tail_path);
  output_forget();
}

/* Make sure that the descriptor is that of the file, and open the file again otherwise; false if that fails. */
static bool reachable(void) {
  struct stat now;
  if (file >= 0 && fstat(file, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino)
    return true;
  int opened = system_open(path, O_WRONLY, 0);
  if (opened < 0) {
    file = -1;
    return false;
  }
  file = moved_high(opened);
  if (fstat(file, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino) {
    lseek(file, 0, SEEK_END);
    return true;
  }
  system_close(file);
  file = -1;
  return false;
}

int output_append(const void *data, size_t size) {
  if (!reachable()) return errno ? errno : EBADF;
  if (exceeds_limit(size)) return EFBIG;
  const char *at = data;
  while (size > 0) {
    long written = syscall(SYS_write, file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written ? errno : ENOSPC;
    at += written;
    size -= (size_t)written;
  }
  return 0;
}

void output_rewrite(const void *data, size_t size) {
  if (reachable()) (void)!syscall(SYS_pwrite64, file, data, size, (off_t)0);
}

void output_shorten(size_t size) {
  if (truncate(tail_path, (off_t)size) != 0) return;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), keep = (size + page - 1) / page * page;
  if (keep < tail_mapped) munmap((char *)tail + keep, tail_mapped - keep);
  tail_mapped = keep;
}

void output_forget(void) {
  struct stat now;
  if (tail) munmap(tail, tail_mapped);
  tail = NULL;
  if (file >= 0 && fstat(file, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino)
    system_close(file);
  file = -1;
}
