/* The functions that replace those of the program: each calls the next definition of its name, and records that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"
#include "system.h"

/* Not inlined into one another, because the stack of each begins with its own frame. */
#define EXPORT __attribute__((visibility("default"), noinline))

_Static_assert(sizeof(size_t) == 8, "the names of the C++ operators are those of 64-bit processors");

/* -- the next definitions ----------------------------------------------------------------------------------- */

/* The functions of the C library serve while dlsym finds the next ones, which may be those of another allocator. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static struct {
  void *(*malloc)(size_t);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  void *(*memalign)(size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  void (*free)(void *);
} next;

static void find(void *function, const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found) memcpy(function, &found, sizeof found);
}

static void find_next(void) {
  next.calloc = __libc_calloc;
  next.realloc = __libc_realloc;
  next.memalign = __libc_memalign;
  next.aligned_alloc = __libc_memalign;
  next.free = __libc_free;
  next.malloc = __libc_malloc; /* last, because set_up() takes it for the sign that all are set */
  find(&next.calloc, "calloc");
  find(&next.realloc, "realloc");
  find(&next.memalign, "memalign");
  find(&next.aligned_alloc, "aligned_alloc");
  find(&next.posix_memalign, "posix_memalign");
  find(&next.valloc, "valloc");
  find(&next.pvalloc, "pvalloc");
  find(&next.free, "free");
  find(&next.malloc, "malloc");
}

static inline void set_up(void) {
  if (UNLIKELY(!next.malloc)) recorder_aside(find_next);
}

/* -- recording ---------------------------------------------------------------------------------------------- */

static inline void *allocated(void *memory, size_t amount, enum record_kind kind, struct place place) {
  struct call call;
  if (memory && recorder_enter(&call, place)) {
    recorder_write(&call, kind, memory, amount);
    recorder_leave(&call);
  }
  return memory;
}

/* Record a release before it happens: as soon as the memory is released, another thread may get it. */
static inline void releasing(void *memory, enum record_kind kind, struct place place) {
  struct call call;
  /* The allocator needs the header before the block, which is mostly not in the cache: fetch it meanwhile. */
  if (memory) __builtin_prefetch((const char *)memory - 16, 1);
  if (memory && recorder_enter(&call, place)) {
    recorder_write(&call, kind, memory, 0);
    recorder_leave(&call);
  }
}

static inline void *resize(void *memory, size_t amount, enum record_kind kind, struct place place) {
  struct call call;
  set_up();
  if (!memory) return allocated(next.realloc(NULL, amount), amount, kind, place);
  if (!recorder_enter(&call, place)) return next.realloc(memory, amount);
  recorder_write(&call, RECORD_REALLOC_RELEASE, memory, 0);
  recorder_leave(&call);
  void *resized = next.realloc(memory, amount);
  if (resized || amount) {
    recorder_enter_again(&call);
    if (resized)
      recorder_write(&call, kind, resized, amount);
    else
      recorder_write(&call, RECORD_REALLOC_FAILED, memory, 0);
    recorder_leave(&call);
  }
  return resized;
}

/* -- C ------------------------------------------------------------------------------------------------------ */

EXPORT void *malloc(size_t size) {
  set_up();
  return allocated(next.malloc(size), size, RECORD_MALLOC, HERE);
}

EXPORT void *calloc(size_t count, size_t size) {
  set_up();
  return allocated(next.calloc(count, size), count * size, RECORD_CALLOC, HERE);
}

EXPORT void *realloc(void *memory, size_t size) { return resize(memory, size, RECORD_REALLOC, HERE); }

EXPORT void *reallocarray(void *memory, size_t count, size_t size) {
  size_t amount;
  if (__builtin_mul_overflow(count, size, &amount)) {
    errno = ENOMEM;
    return NULL;
  }
  return resize(memory, amount, RECORD_REALLOCARRAY, HERE);
}

EXPORT void free(void *memory) {
  set_up();
  releasing(memory, RECORD_FREE, HERE);
  next.free(memory);
}

/* C23; the functions of the C library would release memory without calling `free` above. */
EXPORT void free_sized(void *memory, size_t size);
EXPORT void free_sized(void *memory, size_t size) {
  (void)size;
  set_up();
  releasing(memory, RECORD_FREE, HERE);
  next.free(memory);
}

EXPORT void free_aligned_sized(void *memory, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *memory, size_t alignment, size_t size) {
  (void)alignment, (void)size;
  set_up();
  releasing(memory, RECORD_FREE, HERE);
  next.free(memory);
}

EXPORT void *memalign(size_t alignment, size_t size) {
  set_up();
  return allocated(next.memalign(alignment, size), size, RECORD_MEMALIGN, HERE);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  set_up();
  return allocated(next.aligned_alloc(alignment, size), size, RECORD_ALIGNED_ALLOC, HERE);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size) {
  set_up();
  int error = next.posix_memalign(memory, alignment, size);
  if (!error) allocated(*memory, size, RECORD_POSIX_MEMALIGN, HERE);
  return error;
}

EXPORT void *valloc(size_t size) {
  set_up();
  return allocated(next.valloc(size), size, RECORD_VALLOC, HERE);
}

EXPORT void *pvalloc(size_t size) {
  set_up();
  return allocated(next.pvalloc(size), size, RECORD_PVALLOC, HERE);
}

/* -- C++ ---------------------------------------------------------------------------------------------------- */

/* The operators of the C++ libraries only call malloc and free, and so do these. If the program or one of its libraries
 * defines operators, these call them, and the calls of malloc and free within them are recorded. */

typedef void (*operator_t)(void);

enum operator {
  NEW, NEW_ARRAY, NEW_NOTHROW, NEW_ARRAY_NOTHROW,
  NEW_ALIGNED, NEW_ARRAY_ALIGNED, NEW_ALIGNED_NOTHROW, NEW_ARRAY_ALIGNED_NOTHROW,
  DELETE, DELETE_ARRAY, DELETE_NOTHROW, DELETE_ARRAY_NOTHROW, DELETE_SIZED, DELETE_ARRAY_SIZED,
  DELETE_ALIGNED, DELETE_ARRAY_ALIGNED, DELETE_ALIGNED_NOTHROW, DELETE_ARRAY_ALIGNED_NOTHROW,
  DELETE_SIZED_ALIGNED, DELETE_ARRAY_SIZED_ALIGNED,
  OPERATORS
};

static const char *const operator_names[OPERATORS] = {
    [NEW] = "_Znwm",
    [NEW_ARRAY] = "_Znam",
    [NEW_NOTHROW] = "_ZnwmRKSt9nothrow_t",
    [NEW_ARRAY_NOTHROW] = "_ZnamRKSt9nothrow_t",
    [NEW_ALIGNED] = "_ZnwmSt11align_val_t",
    [NEW_ARRAY_ALIGNED] = "_ZnamSt11align_val_t",
    [NEW_ALIGNED_NOTHROW] = "_ZnwmSt11align_val_tRKSt9nothrow_t",
    [NEW_ARRAY_ALIGNED_NOTHROW] = "_ZnamSt11align_val_tRKSt9nothrow_t",
    [DELETE] = "_ZdlPv",
    [DELETE_ARRAY] = "_ZdaPv",
    [DELETE_NOTHROW] = "_ZdlPvRKSt9nothrow_t",
    [DELETE_ARRAY_NOTHROW] = "_ZdaPvRKSt9nothrow_t",
    [DELETE_SIZED] = "_ZdlPvm",
    [DELETE_ARRAY_SIZED] = "_ZdaPvm",
    [DELETE_ALIGNED] = "_ZdlPvSt11align_val_t",
    [DELETE_ARRAY_ALIGNED] = "_ZdaPvSt11align_val_t",
    [DELETE_ALIGNED_NOTHROW] = "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    [DELETE_ARRAY_ALIGNED_NOTHROW] = "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    [DELETE_SIZED_ALIGNED] = "_ZdlPvmSt11align_val_t",
    [DELETE_ARRAY_SIZED_ALIGNED] = "_ZdaPvmSt11align_val_t",
};

static operator_t next_operators[OPERATORS];
static enum { NOT_ASKED, OF_LIBRARY, OF_PROGRAM } operators;

static bool in_file(const void *address, const char *const *names) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  const char *name = strrchr(info.dli_fname, '/');
  name = name ? name + 1 : info.dli_fname;
  for (; *names; names++)
    if (strncmp(name, *names, strlen(*names)) == 0) return true;
  return false;
}

static void find_operators(void) {
  static const char *const libraries[] = {"libstdc++.", "libc++.", "libc++abi.", NULL};
  Dl_info own, first;
  void *library = NULL;
  bool replaced = false;
  dladdr((void *)operator_names, &own);
  for (int i = 0; i < OPERATORS; i++) {
    void *behind = dlsym(RTLD_NEXT, operator_names[i]), *used = dlsym(RTLD_DEFAULT, operator_names[i]);
    /* Only a plug-in may have loaded the library, so that it is not in the global scope. */
    if (!behind && !library) library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!behind && library) behind = dlsym(library, operator_names[i]);
    if (used && (!dladdr(used, &first) || first.dli_fbase != own.dli_fbase)) replaced = true;
    if (behind && !in_file(behind, libraries)) replaced = true;
    memcpy(&next_operators[i], &behind, sizeof behind);
  }
  dlerror(); /* clear errors, which are not those of the program */
  operators = replaced ? OF_PROGRAM : OF_LIBRARY;
}

/* Whether the operator is that of the C++ library. If not, or if there is no memory, the next definition is called, which
 * knows about handlers and exceptions. */
static inline bool of_library(enum operator which) {
  set_up();
  if (UNLIKELY(operators == NOT_ASKED)) recorder_aside(find_operators);
  return LIKELY(operators == OF_LIBRARY) || !next_operators[which];
}

static __attribute__((noreturn)) void no_memory(void) { abort(); }

static inline void *new_plain(size_t size, enum record_kind kind, struct place place) {
  return allocated(next.malloc(size ? size : 1), size, kind, place);
}

static inline void *new_aligned(size_t size, size_t alignment, enum record_kind kind, struct place place) {
  size_t whole = ((size ? size : 1) + alignment - 1) & ~(alignment - 1);
  return whole < size ? NULL : allocated(next.aligned_alloc(alignment, whole), size, kind, place);
}

#define DEFINE_NEW(name, which, parameters, arguments, attempt) \
  EXPORT void *name parameters; \
  EXPORT void *name parameters { \
    void *memory = of_library(which) ? attempt : NULL; \
    if (LIKELY(memory)) return memory; \
    if (!next_operators[which]) no_memory(); \
    return ((void *(*)parameters)next_operators[which])arguments; \
  }

typedef const void *nothrow_t;

DEFINE_NEW(_Znwm, NEW, (size_t size), (size), new_plain(size, RECORD_NEW, HERE))
DEFINE_NEW(_Znam, NEW_ARRAY, (size_t size), (size), new_plain(size, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmRKSt9nothrow_t, NEW_NOTHROW, (size_t size, nothrow_t tag), (size, tag),
           new_plain(size, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamRKSt9nothrow_t, NEW_ARRAY_NOTHROW, (size_t size, nothrow_t tag), (size, tag),
           new_plain(size, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmSt11align_val_t, NEW_ALIGNED, (size_t size, size_t alignment), (size, alignment),
           new_aligned(size, alignment, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamSt11align_val_t, NEW_ARRAY_ALIGNED, (size_t size, size_t alignment), (size, alignment),
           new_aligned(size, alignment, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, NEW_ALIGNED_NOTHROW,
           (size_t size, size_t alignment, nothrow_t tag), (size, alignment, tag),
           new_aligned(size, alignment, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, NEW_ARRAY_ALIGNED_NOTHROW,
           (size_t size, size_t alignment, nothrow_t tag), (size, alignment, tag),
           new_aligned(size, alignment, RECORD_NEW_ARRAY, HERE))

#define DEFINE_DELETE(name, which, kind, parameters, arguments) \
  EXPORT void name parameters; \
  EXPORT void name parameters { \
    if (of_library(which)) { \
      releasing(memory, kind, HERE); \
      next.free(memory); \
    } else { \
      ((void (*)parameters)next_operators[which])arguments; \
    } \
  }

DEFINE_DELETE(_ZdlPv, DELETE, RECORD_DELETE, (void *memory), (memory))
DEFINE_DELETE(_ZdaPv, DELETE_ARRAY, RECORD_DELETE_ARRAY, (void *memory), (memory))
DEFINE_DELETE(_ZdlPvRKSt9nothrow_t, DELETE_NOTHROW, RECORD_DELETE, (void *memory, nothrow_t tag), (memory, tag))
DEFINE_DELETE(_ZdaPvRKSt9nothrow_t, DELETE_ARRAY_NOTHROW, RECORD_DELETE_ARRAY, (void *memory, nothrow_t tag),
              (memory, tag))
DEFINE_DELETE(_ZdlPvm, DELETE_SIZED, RECORD_DELETE, (void *memory, size_t size), (memory, size))
DEFINE_DELETE(_ZdaPvm, DELETE_ARRAY_SIZED, RECORD_DELETE_ARRAY, (void *memory, size_t size), (memory, size))
DEFINE_DELETE(_ZdlPvSt11align_val_t, DELETE_ALIGNED, RECORD_DELETE, (void *memory, size_t alignment),
              (memory, alignment))
DEFINE_DELETE(_ZdaPvSt11align_val_t, DELETE_ARRAY_ALIGNED, RECORD_DELETE_ARRAY,
              (void *memory, size_t alignment), (memory, alignment))
DEFINE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, DELETE_ALIGNED_NOTHROW, RECORD_DELETE,
              (void *memory, size_t alignment, nothrow_t tag), (memory, alignment, tag))
DEFINE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, DELETE_ARRAY_ALIGNED_NOTHROW, RECORD_DELETE_ARRAY,
              (void *memory, size_t alignment, nothrow_t tag), (memory, alignment, tag))
DEFINE_DELETE(_ZdlPvmSt11align_val_t, DELETE_SIZED_ALIGNED, RECORD_DELETE,
              (void *memory, size_t size, size_t alignment), (memory, size, alignment))
DEFINE_DELETE(_ZdaPvmSt11align_val_t, DELETE_ARRAY_SIZED_ALIGNED, RECORD_DELETE_ARRAY,
              (void *memory, size_t size, size_t alignment), (memory, size, alignment))

/* -- moments in the life of the process --------------------------------------------------------------------- */

EXPORT int dlclose(void *handle) {
  static int (*behind)(void *);
  if (!behind) find(&behind, "dlclose");
  int result = behind(handle);
  recorder_unloaded();
  return result;
}

static __attribute__((noreturn)) void leave(const char *name, int status) {
  void (*behind)(int) = NULL;
  recorder_end(RECORD_QUICK_EXITED);
  find(&behind, name);
  if (behind) behind(status);
  for (;;) syscall(SYS_exit_group, status);
}

EXPORT void _exit(int status) { leave("_exit", status); }

EXPORT void _Exit(int status) { leave("_Exit", status); }

EXPORT void quick_exit(int status) { leave("quick_exit", status); }

__attribute__((constructor)) static void loaded(void) {
  set_up();
  recorder_ready();
}

__attribute__((destructor)) static void unloading(void) { recorder_end(RECORD_EXITED); }
