/* The functions that replace those of the program: each calls the next definition of its name, and records that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../_common/native/confining.h"
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
  void *(*reallocarray)(void *, size_t, size_t);
} next;

/* Whether the next malloc is not that of the C library: it may call functions of this library in turn. */
static bool other_allocator;

/* Whether the program defines malloc itself, so that its calls do not come here: the memory of functions that it does not
 * define must come from there, too. */
static bool own_allocator;

static void find(void *function, const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found) memcpy(function, &found, sizeof found);
}

static bool is_here(const void *address) {
  Dl_info here, there;
  return dladdr((const void *)find, &here) && dladdr(address, &there) && here.dli_fbase == there.dli_fbase;
}

static bool is_interposed(const char *name) {
  void *used = dlsym(RTLD_DEFAULT, name);
  return !used || is_here(used);
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
  find(&next.reallocarray, "reallocarray");
  find(&next.malloc, "malloc");
  own_allocator = !is_interposed("malloc") || !is_interposed("realloc") || !is_interposed("free");
  other_allocator = own_allocator || next.malloc != __libc_malloc || next.free != __libc_free;
  dlerror(); /* clear errors, which are not those of the program */
}

static inline void set_up(void) {
  if (UNLIKELY(!next.malloc)) recorder_aside(find_next);
}

/* Call the next definition. Another allocator may be made of several functions, e.g. its calloc calls malloc: the call of
 * the program is what is recorded, and those within it are not. They throw no exceptions. */
#define NEXT(result, call) \
  do { \
    uint32_t before = UNLIKELY(other_allocator) ? recorder_pause() : 0; \
    result call; \
    if (UNLIKELY(other_allocator)) recorder_resume(before); \
  } while (0)

/* -- recording ---------------------------------------------------------------------------------------------- */

#define LATEST 4

/* The latest blocks that this thread has allocated by C functions, and the block that an operator releases now: they tell
 * whether an operator of C++ ends in the functions below. Only used if `operators` is OF_PROGRAM. */
static __thread struct {
  struct {
    uintptr_t start; /* inverted */
    size_t size;
  } latest[LATEST];
  uint32_t count;
  const void *releasing;
} within __attribute__((tls_model("initial-exec")));

static enum { NOT_ASKED, OF_LIBRARY, OF_PROGRAM } operators; /* OF_PROGRAM: at least one of them is */

static inline void *allocated(void *memory, size_t amount, enum record_kind kind, struct place place) {
  struct call call;
  if (memory && recorder_enter(&call, place)) {
    if (UNLIKELY(operators == OF_PROGRAM)) {
      within.latest[within.count % LATEST].start = ~(uintptr_t)memory; /* no pointer for the search of leaks */
      within.latest[within.count++ % LATEST].size = amount;
    }
    recorder_write(&call, kind, memory, amount);
    recorder_leave(&call);
  }
  return memory;
}

/* Record a release before it happens: as soon as the memory is released, another thread may get it. */
static inline void releasing(void *memory, enum record_kind kind, struct place place) {
  struct call call;
  if (UNLIKELY(memory && memory == within.releasing)) return;
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
  void *resized;
  if (!memory) {
    NEXT(resized =, next.realloc(NULL, amount));
    return allocated(resized, amount, kind, place);
  }
  if (!recorder_enter(&call, place)) return next.realloc(memory, amount);
  recorder_write(&call, RECORD_REALLOC_RELEASE, memory, 0);
  recorder_leave(&call);
  NEXT(resized =, next.realloc(memory, amount));
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
  void *memory;
  NEXT(memory =, next.malloc(size));
  return allocated(memory, size, RECORD_MALLOC, HERE);
}

EXPORT void *calloc(size_t count, size_t size) {
  set_up();
  void *memory;
  NEXT(memory =, next.calloc(count, size));
  return allocated(memory, count * size, RECORD_CALLOC, HERE);
}

EXPORT void *realloc(void *memory, size_t size) { return resize(memory, size, RECORD_REALLOC, HERE); }

EXPORT void *reallocarray(void *memory, size_t count, size_t size) {
  size_t amount;
  if (__builtin_mul_overflow(count, size, &amount)) {
    errno = ENOMEM;
    return NULL;
  }
  set_up();
  if (own_allocator && next.reallocarray) return next.reallocarray(memory, count, size);
  return resize(memory, amount, RECORD_REALLOCARRAY, HERE);
}

EXPORT void free(void *memory) {
  set_up();
  releasing(memory, RECORD_FREE, HERE);
  NEXT(, next.free(memory));
}

static void free_of_program(void *memory, struct place place) {
  set_up();
  if (own_allocator) {
    void *found = dlsym(RTLD_DEFAULT, "free");
    void (*used)(void *);
    memcpy(&used, &found, sizeof used);
    used(memory);
    return;
  }
  releasing(memory, RECORD_FREE, place);
  NEXT(, next.free(memory));
}

/* C23; the functions of the C library would release memory without calling `free` above. */
EXPORT void free_sized(void *memory, size_t size);
EXPORT void free_sized(void *memory, size_t size) {
  (void)size;
  free_of_program(memory, HERE);
}

EXPORT void free_aligned_sized(void *memory, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *memory, size_t alignment, size_t size) {
  (void)alignment, (void)size;
  free_of_program(memory, HERE);
}

EXPORT void *memalign(size_t alignment, size_t size) {
  set_up();
  void *memory;
  NEXT(memory =, next.memalign(alignment, size));
  return allocated(memory, size, RECORD_MEMALIGN, HERE);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  set_up();
  void *memory;
  NEXT(memory =, next.aligned_alloc(alignment, size));
  return allocated(memory, size, RECORD_ALIGNED_ALLOC, HERE);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size) {
  set_up();
  int error;
  NEXT(error =, next.posix_memalign(memory, alignment, size));
  if (!error) allocated(*memory, size, RECORD_POSIX_MEMALIGN, HERE);
  return error;
}

EXPORT void *valloc(size_t size) {
  set_up();
  void *memory;
  NEXT(memory =, next.valloc(size));
  return allocated(memory, size, RECORD_VALLOC, HERE);
}

EXPORT void *pvalloc(size_t size) {
  set_up();
  void *memory;
  NEXT(memory =, next.pvalloc(size));
  return allocated(memory, size, RECORD_PVALLOC, HERE);
}

/* -- C++ ---------------------------------------------------------------------------------------------------- */

/* The operators of the C++ libraries only call malloc and free, and so do these. If the program or one of its libraries
 * defines operators, or the program its own malloc, these call them. Whether those call the functions above, whose events
 * count then, or have memory of their own (as those of jemalloc, tcmalloc and mimalloc), is known from the first block:
 * either it is in one that was allocated above meanwhile, or not. */

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

/* Operators for aligned memory and all others are two groups: those of the C++ library call others of their group. */
static struct group {
  bool of_program; /* one of the group is not that of the C++ library */
  enum { UNKNOWN, FROM_HERE, FROM_ELSEWHERE } source; /* where its memory comes from; only with of_program */
  bool inside; /* it is a part of a block, e.g. behind a header, so that its address is not that of a block */
} groups[2];

static bool foreign[OPERATORS]; /* the next definition is not that of the C++ library */

static inline bool is_aligned(enum operator which) {
  return (which >= NEW_ALIGNED && which < DELETE) || which >= DELETE_ALIGNED;
}

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
  void *library = NULL;
  groups[0].of_program = groups[1].of_program = own_allocator;
  for (int i = 0; i < OPERATORS; i++) {
    void *behind = dlsym(RTLD_NEXT, operator_names[i]), *used = dlsym(RTLD_DEFAULT, operator_names[i]);
    /* Only a plug-in may have loaded the library, so that it is not in the global scope. */
    if (!behind && !library) library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!behind && library) behind = dlsym(library, operator_names[i]);
    foreign[i] = behind && !in_file(behind, libraries);
    if (foreign[i] || (used && !is_here(used))) groups[is_aligned((enum operator)i)].of_program = true;
    memcpy(&next_operators[i], &behind, sizeof behind);
  }
  dlerror(); /* clear errors, which are not those of the program */
  operators = groups[0].of_program || groups[1].of_program ? OF_PROGRAM : OF_LIBRARY;
}

/* Where memory is in the blocks that this thread allocated by the functions above since their number was `count`: the
 * offset in one of them, or -1. */
static ptrdiff_t offset_since(uint32_t count, const void *memory) {
  if (within.count - count > LATEST) count = within.count - LATEST;
  for (; count != within.count; count++) {
    size_t offset = (uintptr_t)memory - ~within.latest[count % LATEST].start;
    if (offset == 0 || offset < within.latest[count % LATEST].size) return (ptrdiff_t)offset;
  }
  return -1;
}

/* Record what an operator of the program allocated, unless that is recorded already. */
static void *allocated_by_operator(enum operator which, void *memory, size_t size, enum record_kind kind,
                                   uint32_t count, struct place place) {
  struct group *group = groups + is_aligned(which);
  if (!memory) return NULL;
  ptrdiff_t offset = offset_since(count, memory);
  if (!group->source) group->source = offset < 0 ? FROM_ELSEWHERE : FROM_HERE;
  if (offset > 0) group->inside = true;
  /* The pieces of a pool are not recorded where the pool is. */
  if (offset < 0 && group->source == FROM_ELSEWHERE) allocated(memory, size, kind, place);
  return memory;
}

/* Whether the operator is that of the C++ library. If not, or if there is no memory, the next definition is called, which
 * knows about handlers and exceptions. */
static inline bool of_library(enum operator which) {
  set_up();
  if (UNLIKELY(operators == NOT_ASKED)) recorder_aside(find_operators);
  return LIKELY(operators == OF_LIBRARY) || !groups[is_aligned(which)].of_program || !next_operators[which];
}

static __attribute__((noreturn)) void no_memory(void) { abort(); }

static inline void *new_plain(size_t size, enum record_kind kind, struct place place) {
  void *memory;
  NEXT(memory =, next.malloc(size ? size : 1));
  return allocated(memory, size, kind, place);
}

static inline void *new_aligned(size_t size, size_t alignment, enum record_kind kind, struct place place) {
  size_t whole = ((size ? size : 1) + alignment - 1) & ~(alignment - 1);
  void *memory = NULL;
  if (whole >= size) NEXT(memory =, next.aligned_alloc(alignment, whole));
  return allocated(memory, size, kind, place);
}

#define DEFINE_NEW(name, which, kind, parameters, arguments, attempt) \
  EXPORT void *name parameters; \
  EXPORT void *name parameters { \
    void *memory = of_library(which) ? attempt : NULL; \
    uint32_t count = within.count; \
    if (LIKELY(memory)) return memory; \
    if (!next_operators[which]) no_memory(); \
    memory = ((void *(*)parameters)next_operators[which])arguments; \
    return groups[is_aligned(which)].of_program ? allocated_by_operator(which, memory, size, kind, count, HERE) : memory; \
  }

typedef const void *nothrow_t;

DEFINE_NEW(_Znwm, NEW, RECORD_NEW, (size_t size), (size), new_plain(size, RECORD_NEW, HERE))
DEFINE_NEW(_Znam, NEW_ARRAY, RECORD_NEW_ARRAY, (size_t size), (size), new_plain(size, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmRKSt9nothrow_t, NEW_NOTHROW, RECORD_NEW, (size_t size, nothrow_t tag), (size, tag),
           new_plain(size, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamRKSt9nothrow_t, NEW_ARRAY_NOTHROW, RECORD_NEW_ARRAY, (size_t size, nothrow_t tag), (size, tag),
           new_plain(size, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmSt11align_val_t, NEW_ALIGNED, RECORD_NEW, (size_t size, size_t alignment), (size, alignment),
           new_aligned(size, alignment, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamSt11align_val_t, NEW_ARRAY_ALIGNED, RECORD_NEW_ARRAY, (size_t size, size_t alignment),
           (size, alignment), new_aligned(size, alignment, RECORD_NEW_ARRAY, HERE))
DEFINE_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, NEW_ALIGNED_NOTHROW, RECORD_NEW,
           (size_t size, size_t alignment, nothrow_t tag), (size, alignment, tag),
           new_aligned(size, alignment, RECORD_NEW, HERE))
DEFINE_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, NEW_ARRAY_ALIGNED_NOTHROW, RECORD_NEW_ARRAY,
           (size_t size, size_t alignment, nothrow_t tag), (size, alignment, tag),
           new_aligned(size, alignment, RECORD_NEW_ARRAY, HERE))

/* Whether a release by an operator of the program is recorded here: not where it is known to call `free`. */
static bool releases_elsewhere(enum operator which) {
  const struct group *group = groups + is_aligned(which);
  return group->source == FROM_ELSEWHERE || (foreign[which] && !group->inside);
}

#define DEFINE_DELETE(name, which, kind, parameters, arguments) \
  EXPORT void name parameters; \
  EXPORT void name parameters { \
    if (of_library(which)) { \
      releasing(memory, kind, HERE); \
      NEXT(, next.free(memory)); \
    } else { \
      bool recorded = releases_elsewhere(which); \
      if (recorded) { \
        releasing(memory, kind, HERE); \
        within.releasing = memory; /* not once more, should it call free after all */ \
      } \
      ((void (*)parameters)next_operators[which])arguments; \
      if (recorded) within.releasing = NULL; \
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

EXPORT int prctl(int option, ...) {
  unsigned long words[4];
  va_list given;
  va_start(given, option);
  for (unsigned i = 0; i < 4; i++) words[i] = va_arg(given, unsigned long);
  va_end(given);
  if (is_confining(option, words[0])) recorder_confined();
  return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

static __attribute__((noreturn)) void leave(const char *name, int status) {
  void (*behind)(int) = NULL;
  recorder_end(RECORD_QUICK_EXITED, !other_allocator);
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

__attribute__((destructor)) static void unloading(void) { recorder_end(RECORD_EXITED, !other_allocator); }
