/* Faults on purpose: preloaded into perun and the git that it starts, it counts the calls that change files below
 * a folder, and at a given one kills the process or fails the call. All processes of a trial share the counter and
 * the plan through the file that FAULTS_CONTROL names; without it nothing is intercepted.
 *
 * Layout of that file: sixty-four 64-bit numbers (see the enumeration), the folder, the path at which the fault
 * came, the kind of each call, one byte each, and the record of calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

enum { ARMED, MODE, TARGET, ERROR, STICKY, KINDS, CALLS, FIRED, DEAD, LEADER, ALONE, RECORDING, RECORDED, NO_FLUSH };
enum { NUMBERS = 64, KIND_ROOM = 1 << 20, RECORD_ROOM = 1 << 24, FOREIGN = 0x80 };
enum mode { NOTHING, KILL_BEFORE, KILL_AFTER, KILL_HALF, FAIL, FAIL_HALF };
/* OPEN is opening for writing what is there, CREATE opening with O_CREAT. */
enum kind { OPEN = 1, CREATE, WRITE, RENAME, LINK, UNLINK, MKDIR, RMDIR, SYMLINK, TRUNCATE, FLUSH, CHMOD, UTIME, SYNC };

struct control {
  int64_t number[NUMBERS];
  char root[PATH_MAX];
  char where[PATH_MAX];
  uint8_t kinds[KIND_ROOM];
  char record[RECORD_ROOM];
};

struct entry { /* in the record: this, the two paths (each ended by a zero byte), and the data */
  uint32_t total, kind, flags, first, second, data;
  int64_t offset;
  uint64_t inode;
};

static struct control *control;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void prepare(void) {
  const char *path = getenv("FAULTS_CONTROL");
  if (!path || control) return;
  int descriptor = (int)openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return;
  void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped != MAP_FAILED) control = mapped;
}

static int64_t add(int field, int64_t amount) {
  return __atomic_fetch_add(&control->number[field], amount, __ATOMIC_SEQ_CST);
}

__attribute__((noreturn)) static void die(void) {
  control->number[DEAD] = !control->number[ALONE];
  if (!control->number[ALONE]) kill((pid_t)control->number[LEADER], SIGKILL);
  for (;;) kill(getpid(), SIGKILL);
}

/* The absolute path in `out`, without links followed; whether it lies below the folder. */
static int below(int folder, const char *path, char *out) {
  char joined[2 * PATH_MAX] = "";
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (!getcwd(joined, PATH_MAX)) return 0;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t length = readlink(link, joined, PATH_MAX - 1);
      if (length < 0) return 0;
      joined[length] = 0;
    }
    strcat(joined, "/");
  }
  strncat(joined, path, PATH_MAX);
  char *end = out;
  for (char *state, *part = strtok_r(joined, "/", &state); part; part = strtok_r(NULL, "/", &state)) {
    if (!strcmp(part, ".")) continue;
    if (!strcmp(part, "..")) {
      while (end > out && *--end != '/') {}
      continue;
    }
    size_t length = strlen(part);
    if (end - out + length + 2 > PATH_MAX) return 0;
    *end++ = '/';
    memcpy(end, part, length);
    end += length;
  }
  *end = 0;
  size_t root = strlen(control->root);
  return !strncmp(out, control->root, root) && (out[root] == '/' || !out[root]);
}

static int active(void) { return control && control->number[ARMED]; }

static int at_path(int folder, const char *path, char *out) { return active() && path && below(folder, path, out); }

static int at_descriptor(int descriptor, char *out) {
  if (!active()) return 0;
  char link[64], found[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  int before = errno;
  ssize_t length = readlink(link, found, sizeof found - 1);
  errno = before;
  if (length < 0 || found[0] != '/') return 0;
  found[length] = 0;
  return below(AT_FDCWD, found, out);
}

enum action { GO, GO_AND_DIE, HALF, HALF_AND_DIE, REFUSE };

static enum action decide(enum kind kind, const char *path) {
  int64_t *number = control->number, call = add(CALLS, 1) + 1;
  if (call < KIND_ROOM) control->kinds[call] = kind | (getpid() == number[LEADER] ? 0 : FOREIGN);
  if (number[DEAD]) die();
  int64_t suits = number[KINDS] >> kind & 1;
  if (call != number[TARGET]) {
    if (number[FIRED] && number[STICKY] && suits) return REFUSE;
    return GO;
  }
  if (!suits || number[MODE] == NOTHING) return GO;
  number[FIRED] = 1;
  strncpy(control->where, path, PATH_MAX - 1);
  switch (number[MODE]) {
    case KILL_BEFORE: die();
    case KILL_AFTER: return GO_AND_DIE;
    case KILL_HALF: return HALF_AND_DIE;
    case FAIL_HALF: return HALF;
    default: return REFUSE;
  }
}

static void record(enum kind kind, int flags, const char *first, const char *second, uint64_t inode,
                   int64_t offset, const void *data, size_t size) {
  if (!control->number[RECORDING]) return;
  size_t one = strlen(first) + 1, two = strlen(second) + 1;
  size_t total = (sizeof(struct entry) + one + two + size + 7) / 8 * 8;
  int64_t at = add(RECORDED, (int64_t)total);
  if (at + (int64_t)total > RECORD_ROOM) return; /* the reader sees that it is longer than there is room */
  struct entry entry = {(uint32_t)total, kind, (uint32_t)flags, (uint32_t)one, (uint32_t)two, (uint32_t)size, offset, inode};
  char *place = control->record + at;
  memcpy(place, &entry, sizeof entry);
  memcpy(place + sizeof entry, first, one);
  memcpy(place + sizeof entry + one, second, two);
  memcpy(place + sizeof entry + one + two, data, size);
}

static uint64_t inode_of(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) ? 0 : status.st_ino;
}

#define REFUSED(action) \
  if ((action) == REFUSE || ((action) == HALF)) { errno = (int)control->number[ERROR]; return -1; } \
  if ((action) == HALF_AND_DIE) die()
#define ENDED(action) if ((action) == GO_AND_DIE) die()

/* -- opening ---------------------------------------------------------------------------------------------------- */

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPENED(call, folder) \
  char full[PATH_MAX]; \
  if (!WRITES(flags) || !at_path(folder, path, full)) return call; \
  struct stat before; \
  int known = errno, new = fstatat(folder, path, &before, 0) != 0; \
  errno = known; \
  enum kind kind = flags & O_CREAT ? CREATE : OPEN; \
  enum action action = decide(kind, full); \
  REFUSED(action); \
  int made = call; \
  if (made >= 0 && (new || flags & O_TRUNC)) \
    record(kind, new ? O_CREAT : O_TRUNC, full, "", inode_of(made), 0, "", 0); \
  ENDED(action); \
  return made

#define MODE_OF(flags) \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { REAL(open); MODE_OF(flags); OPENED(real(path, flags, mode), AT_FDCWD); }
int open64(const char *path, int flags, ...) { REAL(open64); MODE_OF(flags); OPENED(real(path, flags, mode), AT_FDCWD); }
int openat(int folder, const char *path, int flags, ...) {
  REAL(openat); MODE_OF(flags); OPENED(real(folder, path, flags, mode), folder);
}
int openat64(int folder, const char *path, int flags, ...) {
  REAL(openat64); MODE_OF(flags); OPENED(real(folder, path, flags, mode), folder);
}
int creat(const char *path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

/* What is written through a FILE the library does not see: only opening it counts. */
static FILE *opened(FILE *(*real)(const char *, const char *), const char *path, const char *mode) {
  char full[PATH_MAX];
  if (!strpbrk(mode, "wa+") || !at_path(AT_FDCWD, path, full)) return real(path, mode);
  enum action action = decide(strpbrk(mode, "wa") ? CREATE : OPEN, full);
  if (action == REFUSE || action == HALF) { errno = (int)control->number[ERROR]; return NULL; }
  if (action == HALF_AND_DIE) die();
  FILE *made = real(path, mode);
  if (made) record(CREATE, O_TRUNC, full, "", inode_of(fileno(made)), 0, "", 0);
  ENDED(action);
  return made;
}
FILE *fopen(const char *path, const char *mode) { REAL(fopen); return opened(real, path, mode); }
FILE *fopen64(const char *path, const char *mode) { REAL(fopen64); return opened(real, path, mode); }

/* -- writing ---------------------------------------------------------------------------------------------------- */

static int64_t place_of(int descriptor) {
  struct stat status;
  if (fcntl(descriptor, F_GETFL) & O_APPEND) return fstat(descriptor, &status) ? 0 : status.st_size;
  return lseek(descriptor, 0, SEEK_CUR);
}

/* `part` writes so many bytes; a short write is what a disk does that becomes full. */
#define WRITTEN(size, offset, data, part) \
  char full[PATH_MAX]; \
  if (!at_descriptor(descriptor, full)) return part(size); \
  enum action action = decide(WRITE, full); \
  if (action == REFUSE || (action == HALF && (size) < 2)) { errno = (int)control->number[ERROR]; return -1; } \
  int64_t at = offset; \
  ssize_t done = part(action == HALF || action == HALF_AND_DIE ? (size) / 2 : (size)); \
  if (done > 0) record(WRITE, 0, full, "", inode_of(descriptor), at, data, (size_t)done); \
  if (action == HALF_AND_DIE || action == GO_AND_DIE) die(); \
  return done

ssize_t write(int descriptor, const void *data, size_t size) {
  REAL(write);
#define PART(count) real(descriptor, data, count)
  WRITTEN(size, place_of(descriptor), data, PART);
#undef PART
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
  REAL(pwrite);
#define PART(count) real(descriptor, data, count, offset)
  WRITTEN(size, offset, data, PART);
#undef PART
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
  REAL(pwrite64);
#define PART(count) real(descriptor, data, count, offset)
  WRITTEN(size, offset, data, PART);
#undef PART
}
/* Not asked for by what is tested; refused, so that a change in how files are written is noticed. */
ssize_t writev(int descriptor, const struct iovec *vectors, int count) {
  REAL(writev);
  char full[PATH_MAX];
  if (at_descriptor(descriptor, full)) { errno = ENOSYS; return -1; }
  return real(descriptor, vectors, count);
}
/* Whoever copies falls back to reading and writing. */
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) {
  REAL(sendfile64);
  char full[PATH_MAX];
  if (at_descriptor(out, full)) { errno = ENOTSOCK; return -1; }
  return real(out, in, offset, size);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
  REAL(copy_file_range);
  char full[PATH_MAX];
  if (at_descriptor(out, full)) { errno = EXDEV; return -1; }
  return real(in, from, out, to, size, flags);
}

#define OF_DESCRIPTOR(kind, offset, call) \
  char full[PATH_MAX]; \
  if (!at_descriptor(descriptor, full)) return call; \
  enum action action = decide(kind, full); \
  REFUSED(action); \
  int result = kind == FLUSH && control->number[NO_FLUSH] ? 0 : call; \
  if (!result) record(kind, 0, full, "", inode_of(descriptor), offset, "", 0); \
  ENDED(action); \
  return result

int ftruncate(int descriptor, off_t size) { REAL(ftruncate); OF_DESCRIPTOR(TRUNCATE, size, real(descriptor, size)); }
int ftruncate64(int descriptor, off64_t size) { REAL(ftruncate64); OF_DESCRIPTOR(TRUNCATE, size, real(descriptor, size)); }
int fsync(int descriptor) { REAL(fsync); OF_DESCRIPTOR(FLUSH, 0, real(descriptor)); }
int fdatasync(int descriptor) { REAL(fdatasync); OF_DESCRIPTOR(FLUSH, 0, real(descriptor)); }
int fchmod(int descriptor, mode_t mode) { REAL(fchmod); OF_DESCRIPTOR(CHMOD, 0, real(descriptor, mode)); }
int futimens(int descriptor, const struct timespec times[2]) { REAL(futimens); OF_DESCRIPTOR(UTIME, 0, real(descriptor, times)); }

void sync(void) {
  REAL(sync);
  if (!active()) { real(); return; }
  enum action action = decide(SYNC, control->root);
  if (action == HALF_AND_DIE) die();
  if (!control->number[NO_FLUSH]) real();
  record(SYNC, 0, control->root, "", 0, 0, "", 0);
  if (action == GO_AND_DIE) die();
}

/* -- names ------------------------------------------------------------------------------------------------------ */

#define OF_PATH(kind, folder, call) \
  char full[PATH_MAX]; \
  if (!at_path(folder, path, full)) return call; \
  enum action action = decide(kind, full); \
  REFUSED(action); \
  int result = call; \
  if (!result) record(kind, 0, full, "", 0, 0, "", 0); \
  ENDED(action); \
  return result

int unlink(const char *path) { REAL(unlink); OF_PATH(UNLINK, AT_FDCWD, real(path)); }
int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat); OF_PATH((flags & AT_REMOVEDIR ? RMDIR : UNLINK), folder, real(folder, path, flags));
}
int rmdir(const char *path) { REAL(rmdir); OF_PATH(RMDIR, AT_FDCWD, real(path)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); OF_PATH(MKDIR, AT_FDCWD, real(path, mode)); }
int mkdirat(int folder, const char *path, mode_t mode) { REAL(mkdirat); OF_PATH(MKDIR, folder, real(folder, path, mode)); }
int truncate(const char *path, off_t size) { REAL(truncate); OF_PATH(TRUNCATE, AT_FDCWD, real(path, size)); }
int truncate64(const char *path, off64_t size) { REAL(truncate64); OF_PATH(TRUNCATE, AT_FDCWD, real(path, size)); }
int chmod(const char *path, mode_t mode) { REAL(chmod); OF_PATH(CHMOD, AT_FDCWD, real(path, mode)); }
int fchmodat(int folder, const char *path, mode_t mode, int flags) {
  REAL(fchmodat); OF_PATH(CHMOD, folder, real(folder, path, mode, flags));
}
int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
  REAL(utimensat); OF_PATH(UTIME, folder, real(folder, path, times, flags));
}
int utime(const char *path, const struct utimbuf *times) { REAL(utime); OF_PATH(UTIME, AT_FDCWD, real(path, times)); }

#define OF_TWO(kind, from_folder, to_folder, call) \
  char full[PATH_MAX], other[PATH_MAX] = ""; \
  if (!active() || !below(to_folder, to, full)) return call; \
  if (kind == SYMLINK) strncat(other, from, PATH_MAX - 1); \
  else below(from_folder, from, other); \
  enum action action = decide(kind, full); \
  REFUSED(action); \
  int result = call; \
  if (!result) record(kind, 0, other, full, 0, 0, "", 0); \
  ENDED(action); \
  return result

int rename(const char *from, const char *to) { REAL(rename); OF_TWO(RENAME, AT_FDCWD, AT_FDCWD, real(from, to)); }
int renameat(int one, const char *from, int two, const char *to) {
  REAL(renameat); OF_TWO(RENAME, one, two, real(one, from, two, to));
}
int link(const char *from, const char *to) { REAL(link); OF_TWO(LINK, AT_FDCWD, AT_FDCWD, real(from, to)); }
int linkat(int one, const char *from, int two, const char *to, int flags) {
  REAL(linkat); OF_TWO(LINK, one, two, real(one, from, two, to, flags));
}
int symlink(const char *from, const char *to) { REAL(symlink); OF_TWO(SYMLINK, AT_FDCWD, AT_FDCWD, real(from, to)); }
int symlinkat(const char *from, int folder, const char *to) {
  REAL(symlinkat); OF_TWO(SYMLINK, AT_FDCWD, folder, real(from, folder, to));
}
