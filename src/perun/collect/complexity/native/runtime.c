/* Records the calls of functions that were compiled with -finstrument-functions and -fno-omit-frame-pointer.
 *
 * A shadow stack holds the open calls. The stack of the program grows down: when a call is entered, all open calls whose
 * frames are not above its frame have ended, also those that longjmp left without an exit. So the runtime needs to know
 * nothing of exceptions and longjmp. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../_common/native/confining.h"
#include "clock.h"
#include "output.h"
#include "table.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define SLOTS (1u << 17)
#define FRAMES (1u << 18)
#define UNWRITTEN (1ull << 63)
#define EXPORTED __attribute__((visibility("default"), used))
#define INTERNAL __attribute__((visibility("hidden"), used))

/* An open call. */
struct frame {
  uint64_t frame;    /* address just above the return address */
  uint64_t function; /* with UNWRITTEN if sampling left out its entry; only then the next three fields count */
  uint64_t start;     /* tick */
  uint64_t ticks;     /* of the calls within this one that sampling left out */
  uint64_t unsampled; /* number of these calls */
  uint32_t id, reserved;
};

/* The state of a thread that its file does not have. The first frame is a sentinel above all others. */
struct thread_state {
  struct frame frames[FRAMES];
  uint64_t readable_pages[READABLE_PAGES];
  uint32_t calls[RECORD_MAX_FUNCTIONS]; /* number of calls of each sampled function */
};

enum state { UNKNOWN, RUNNING, FAILED };

static struct site sites[SLOTS] DISCARDABLE;
_Static_assert(sizeof sites % DISCARDABLE_UNIT == 0, "table_clear() must not discard what follows");
static unsigned site_count;
static enum state state;
static uint64_t first_tick;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static __thread struct record_thread *self __attribute__((tls_model("initial-exec")));
static __thread struct thread_state *local __attribute__((tls_model("initial-exec")));
static __thread bool starting __attribute__((tls_model("initial-exec")));
static __thread bool confined __attribute__((tls_model("initial-exec"))); /* reading a clock would kill the program */

/* The time of a thread stands still while the runtime maps a file or looks something up. */
static inline uint64_t time_of(const struct record_thread *thread) { return clock_ticks() - thread->zero; }

static void pause_since(struct record_thread *thread, uint64_t tick) { thread->zero += clock_ticks() - tick; }

static inline struct frame *top_of(const struct record_thread *thread) { return (void *)(uintptr_t)thread->top; }

static inline void set_top(struct record_thread *thread, const struct frame *top) {
  thread->top = (uint64_t)(uintptr_t)top;
}

/* -- threads and processes -------------------------------------------------------------------------------------------- */

static void thread_ends(void *thread) {
  starting = true; /* calls that other destructors of the thread make are not recorded */
  self = NULL;
  output_shrink(thread);
  output_close(thread);
  munmap(local, sizeof *local);
  starting = false;
}

static void child_starts(void) {
  if (state != RUNNING) return;
  if (self) output_close(self);
  self = NULL;
  state = UNKNOWN;
  table_clear(sites, sizeof sites);
  site_count = 0;
  table_reset();
  pthread_mutex_init(&lock, NULL);
  pthread_setspecific(key, NULL);
}

static bool process_starts(void) {
  static bool is_first = true;
  bool good = is_first ? pthread_key_create(&key, thread_ends) == 0 && pthread_atfork(NULL, NULL, child_starts) == 0 : true;
  if (is_first) table_read();
  is_first = false;
  return good && output_start(&first_tick);
}

static void find_stack_bounds(struct record_thread *thread) {
  pthread_attr_t attributes;
  void *stack;
  size_t size;
  thread->stack = 0;
  thread->stack_size = UINT64_MAX;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &stack, &size) == 0 && size < (size_t)1 << 40) {
    thread->stack = (uint64_t)(uintptr_t)stack;
    thread->stack_size = size;
  }
  pthread_attr_destroy(&attributes);
}

static __attribute__((noinline)) struct record_thread *thread_starts(void) {
  if (starting || state == FAILED) return NULL;
  /* Resolvers of functions (ifunc) run before the C library is ready: their calls are not recorded. */
  if (first_tick == 0 && !environ) return NULL;
  int error = errno;
  starting = true;
  pthread_mutex_lock(&lock);
  if (state == UNKNOWN) state = process_starts() ? RUNNING : FAILED;
  pthread_mutex_unlock(&lock);
  struct record_thread *thread = state == RUNNING ? output_thread() : NULL;
  struct thread_state *new_local = local;
  if (thread && !new_local) {
    new_local = mmap(NULL, sizeof *local, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (new_local == MAP_FAILED) thread = NULL;
  }
  if (thread) {
    find_stack_bounds(thread);
    pthread_setspecific(key, thread);
    new_local->frames[0] = (struct frame){.frame = UINT64_MAX, .id = RECORD_NO_ID};
    thread->frames_end = (uint64_t)(uintptr_t)(new_local->frames + FRAMES);
    set_top(thread, new_local->frames);
    thread->zero = first_tick;
    local = new_local;
    self = thread;
  }
  starting = false;
  errno = error;
  return thread;
}

__attribute__((destructor)) static void process_ends(void) {
  if (state == RUNNING && !confined) output_clock(true);
}

/* What a thread calls from now on is not recorded. */
static void confine(void) {
  if (confined) return;
  starting = confined = true;
  if (state == RUNNING) output_clock(false);
  if (self) self->error = RECORD_CONFINED;
  self = NULL;
}

EXPORTED int prctl(int option, ...) {
  unsigned long words[4];
  va_list given;
  va_start(given, option);
  for (unsigned i = 0; i < 4; i++) words[i] = va_arg(given, unsigned long);
  va_end(given);
  if (is_confining(option, words[0])) confine();
  return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

/* -- calls ------------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) bool make_room(struct record_thread *thread) {
  int error = errno;
  uint64_t before = clock_ticks();
  bool grown = !thread->error && output_grow(thread);
  pause_since(thread, before);
  errno = error;
  return grown;
}

static inline uint64_t event(uint64_t value, uint64_t id) { return value << RECORD_ID_BITS | id; }

/* The caller has checked that there is room. */
static inline void put_unchecked(struct record_thread *thread, uint64_t what) {
  *(uint64_t *)(uintptr_t)thread->next = what;
  thread->next += sizeof what;
}

static void put(struct record_thread *thread, uint64_t what) {
  if (LIKELY(thread->next != thread->end) || make_room(thread)) put_unchecked(thread, what);
}

/* Write the number and ticks of calls that sampling left out, added to the last event if that is one, too. */
static void put_unsampled(struct record_thread *thread, uint64_t calls, uint64_t ticks) {
  uint64_t *last = (uint64_t *)(uintptr_t)thread->next - 2;
  if (thread->next - thread->window >= 2 * sizeof *last && (last[0] & RECORD_ID_MASK) == RECORD_UNSAMPLED_COUNT) {
    last[0] += event(calls, 0);
    last[1] += event(ticks, 0);
  } else {
    put(thread, event(calls, RECORD_UNSAMPLED_COUNT));
    put(thread, event(ticks, RECORD_UNSAMPLED_TICKS));
  }
}

/* Write the entries of open calls that sampling left out, because a call within them is recorded. */
static __attribute__((noinline)) void write_open(struct record_thread *thread) {
  struct frame *top = top_of(thread), *frame = top;
  while (frame[-1].function & UNWRITTEN) frame--;
  for (; frame <= top; frame++) {
    put(thread, event(frame->start, frame->id));
    put(thread, event(0, RECORD_UNSAMPLED));
    if (frame->unsampled) put_unsampled(thread, frame->unsampled, frame->ticks);
    frame->function &= ~UNWRITTEN;
  }
}

static void close_call(struct record_thread *thread, uint64_t now) {
  struct frame *frame = top_of(thread);
  if (!(frame->function & UNWRITTEN)) {
    put(thread, event(now, RECORD_EXIT));
  } else {
    uint64_t calls = 1 + frame->unsampled, ticks = now > frame->start ? now - frame->start : 0;
    if (frame[-1].function & UNWRITTEN) {
      frame[-1].unsampled += calls;
      frame[-1].ticks += ticks;
    } else {
      put_unsampled(thread, calls, ticks);
    }
  }
  set_top(thread, frame - 1);
}

/* Close the calls whose frames lie below `frame`. */
static __attribute__((noinline)) void close_below(struct record_thread *thread, uint64_t frame) {
  uint64_t now = time_of(thread);
  while (top_of(thread)->frame < frame) {
    thread->missed++;
    close_call(thread, now);
  }
}

/* Whether a frame lies on another stack: that of a signal handler or of a coroutine. */
static bool is_foreign(const struct record_thread *thread, uint64_t frame) {
  return frame - thread->stack >= thread->stack_size;
}

/* Close the calls that have ended before a call is entered. Other stacks than that of the thread are left alone, because
 * their addresses do not tell what was entered first. */
static __attribute__((noinline)) void close_before(struct record_thread *thread, uint64_t frame, bool is_inlined) {
  if (is_foreign(thread, frame)) return;
  uint64_t now = time_of(thread);
  const struct frame *top;
  while (top = top_of(thread),
         top->frame < frame || (top->frame == frame && !is_inlined) ||
             (top->frame != UINT64_MAX && is_foreign(thread, top->frame))) {
    thread->missed++;
    close_call(thread, now);
  }
}

static __attribute__((noinline)) struct site *new_site(struct record_thread *thread, uint64_t place, uint64_t function, uint32_t slot) {
  int error = errno;
  uint64_t before = clock_ticks();
  struct site found = {.place = place, .id = RECORD_NO_ID, .sampling = 1};
  struct site *site = NULL;
  pthread_mutex_lock(&lock);
  while (sites[slot].place && sites[slot].place != place) slot = (slot + 1) & (SLOTS - 1);
  if (sites[slot].place) {
    site = &sites[slot];
  } else if (site_count < SLOTS / 4 * 3) {
    site = &sites[slot];
    table_look_up(&found, function);
    site_count++;
    bool is_plain = found.is_recorded && found.sampling == 1 && !found.program && clock_is_counter;
    found.place = 0;
    *site = found;
    /* `place` last: other threads read the site without the lock once its place is there. */
    __atomic_store_n(&site->plain, is_plain ? place : 0, __ATOMIC_RELEASE);
    __atomic_store_n(&site->place, place, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  pause_since(thread, before);
  errno = error;
  return site;
}

static inline uint32_t slot_of(uint64_t place) { return (uint32_t)((place * 0x9E3779B97F4A7C15u) >> 47); }

static inline struct site *site_of(struct record_thread *thread, uint64_t place, uint64_t function) {
  uint32_t slot = slot_of(place);
  for (;; slot = (slot + 1) & (SLOTS - 1)) {
    uint64_t there = __atomic_load_n(&sites[slot].place, __ATOMIC_ACQUIRE);
    if (LIKELY(there == place)) return &sites[slot];
    if (!there) return new_site(thread, place, function, slot);
  }
}

static __attribute__((noinline)) int64_t size_of(const struct table_program *program, const struct registers *registers) {
  int error = errno;
  int64_t size = table_size(program, registers, local->readable_pages);
  errno = error;
  return size;
}

static __attribute__((noinline)) bool is_sampled(const struct site *site) {
  return local->calls[site->id]++ % site->sampling == 0;
}

/* A function was entered; `frame` is the address just above its return address. Returns the site of a call whose size
 * has to be read by sized(), which needs the registers; otherwise NULL. */
static __attribute__((noinline)) const struct site *entered_slowly(uint64_t function, uint64_t place,
                                                                      uint64_t frame) {
  struct record_thread *thread = self;
  if (UNLIKELY(!thread) && !(thread = thread_starts())) return NULL;
  if (UNLIKELY(thread->busy)) {
    thread->skipped++;
    return NULL;
  }
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const struct site *site = site_of(thread, place, function);
  if (LIKELY(site && site->is_recorded)) {
    if (UNLIKELY(top_of(thread)->frame <= frame)) close_before(thread, frame, site->is_inlined);
    struct frame *new = top_of(thread) + 1;
    if (UNLIKELY((uint64_t)(uintptr_t)new >= thread->frames_end)) {
      thread->too_deep++;
    } else if (UNLIKELY(thread->next == thread->end) && !make_room(thread)) {
      thread->lost++;
    } else {
      bool sampled = LIKELY(site->sampling == 1) || is_sampled(site);
      if (sampled && UNLIKELY(new[-1].function & UNWRITTEN)) write_open(thread);
      *new = (struct frame){.frame = frame, .function = function, .id = site->id};
      set_top(thread, new);
      if (sampled && UNLIKELY(site->program)) return site; /* still busy, until sized() has ended */
      if (!sampled) new->function |= UNWRITTEN;
      new->start = time_of(thread);
      if (sampled) put(thread, event(new->start, site->id));
    }
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  return NULL;
}

/* The fast path of nearly every call. It calls no function, so that it has no registers to save. */
static inline const struct site *entered(uint64_t function, uint64_t place, uint64_t frame) {
  struct record_thread *thread = self;
  if (UNLIKELY(!thread || thread->busy)) return entered_slowly(function, place, frame);
  const struct site *site = &sites[slot_of(place)];
  struct frame *top = top_of(thread), *new = top + 1;
  if (UNLIKELY(__atomic_load_n(&site->plain, __ATOMIC_ACQUIRE) != place || top->frame <= frame ||
               top->function & UNWRITTEN || (uint64_t)(uintptr_t)new >= thread->frames_end ||
               thread->next == thread->end))
    return entered_slowly(function, place, frame);
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  new->frame = frame;
  new->function = function;
  set_top(thread, new);
  uint64_t id = site->id;
  put_unchecked(thread, event(clock_counter() - thread->zero, id));
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  return NULL;
}

static inline void sized(const struct site *site, const struct registers *registers) {
  struct record_thread *thread = self;
  int64_t size = size_of(site->program, registers);
  put(thread, event(time_of(thread), site->id));
  if (size >= 0) put(thread, event((uint64_t)size, RECORD_SIZE));
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
}

static uint64_t function_of(const struct frame *frame) { return frame->function & ~UNWRITTEN; }

static void close_down_to(struct record_thread *thread, const struct frame *found, uint64_t now) {
  while (top_of(thread) > found) {
    thread->missed++;
    close_call(thread, now);
  }
  close_call(thread, now);
}

/* An exit that is not of the innermost open call: calls within it ended without an exit, or its function is not recorded,
 * or it is a tail call of the hook, after the frame was released. */
static __attribute__((noinline)) void left_unmatched(struct record_thread *thread, uint64_t function, uint64_t frame,
                                                     uint64_t now) {
  const struct frame *top = top_of(thread), *found = top;
  bool foreign = is_foreign(thread, frame);
  while ((found->frame <= frame || (foreign && found->frame != UINT64_MAX)) &&
         !(found->frame == frame && function_of(found) == function))
    found--;
  if (found->frame == frame) {
    close_down_to(thread, found, now);
  } else if (!foreign) {
    for (found = top; found->frame < frame && function_of(found) != function;) found--;
    if (found->frame < frame)
      close_down_to(thread, found, now);
    else if (top->frame < frame)
      close_below(thread, frame);
  }
}

static __attribute__((noinline)) void left_slowly(uint64_t function, uint64_t frame, uint64_t tick) {
  struct record_thread *thread = self;
  if (UNLIKELY(thread->busy)) {
    thread->skipped++;
    return;
  }
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const struct frame *top = top_of(thread);
  uint64_t now = tick - thread->zero;
  if (top->frame == frame && function_of(top) == function)
    close_call(thread, now);
  else if (top->frame <= frame || is_foreign(thread, frame))
    left_unmatched(thread, function, frame, now);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
}

static __attribute__((noinline)) void left_without_counter(uint64_t function, uint64_t frame) {
  left_slowly(function, frame, clock_nanoseconds());
}

static inline void left(uint64_t function, uint64_t frame) {
  struct record_thread *thread = self;
  if (UNLIKELY(!thread)) return;
  if (UNLIKELY(!clock_is_counter)) {
    left_without_counter(function, frame);
    return;
  }
  uint64_t tick = clock_counter();
  if (UNLIKELY(thread->busy)) {
    left_slowly(function, frame, tick);
    return;
  }
  const struct frame *top = top_of(thread);
  if (UNLIKELY(top->frame != frame || top->function != function || thread->next == thread->end)) {
    left_slowly(function, frame, tick);
    return;
  }
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  put_unchecked(thread, event(tick - thread->zero, RECORD_EXIT));
  set_top(thread, top - 1);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
}

/* -- hooks ------------------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* A function keeps its arguments in registers that the hook preserves. The hook passes them on where a size has to be
 * read; they are unchanged by the call of perun_function_entered() before, which preserves them, too. */
__asm__(
    ".text\n"
    ".globl __cyg_profile_func_enter\n"
    ".type __cyg_profile_func_enter, @function\n"
    ".p2align 4\n"
    "__cyg_profile_func_enter:\n"
    ".cfi_startproc\n"
    "  movq (%rsp), %rsi\n"
    "  movq %rbp, %rdx\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call perun_function_entered\n"
    "  testq %rax, %rax\n"
    "  jne 1f\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  ret\n"
    "1:\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  movq %rax, %rdi\n"
    "  movq %rbx, %rsi\n"
    "  movq %rbp, %rdx\n"
    "  movq %r12, %rcx\n"
    "  movq %r13, %r8\n"
    "  movq %r14, %r9\n"
    "  movq %r15, (%rsp)\n"
    "  call perun_function_sized\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size __cyg_profile_func_enter, . - __cyg_profile_func_enter\n"
    ".globl __cyg_profile_func_exit\n"
    ".type __cyg_profile_func_exit, @function\n"
    ".p2align 4\n"
    "__cyg_profile_func_exit:\n"
    ".cfi_startproc\n"
    "  movq %rbp, %rsi\n"
    "  jmp perun_function_left\n"
    ".cfi_endproc\n"
    ".size __cyg_profile_func_exit, . - __cyg_profile_func_exit\n");

INTERNAL const struct site *perun_function_entered(uint64_t function, uint64_t place, uint64_t rbp) {
  return entered(function, place, rbp + 16);
}

INTERNAL void perun_function_sized(const struct site *site, uint64_t rbx, uint64_t rbp, uint64_t r12, uint64_t r13,
                                   uint64_t r14, uint64_t r15) {
  const struct registers registers = {rbx, rbp, r12, r13, r14, r15};
  sized(site, &registers);
}

INTERNAL void perun_function_left(uint64_t function, uint64_t rbp) { left(function, rbp + 16); }
#else
#define FRAME ((uint64_t)(uintptr_t)__builtin_frame_address(1))

EXPORTED void __cyg_profile_func_enter(void *function, void *caller) {
  (void)caller;
  const struct registers none = {0};
  const struct site *site =
      entered((uint64_t)(uintptr_t)function, (uint64_t)(uintptr_t)__builtin_return_address(0), FRAME);
  if (site) sized(site, &none);
}

EXPORTED void __cyg_profile_func_exit(void *function, void *caller) {
  (void)caller;
  left((uint64_t)(uintptr_t)function, FRAME);
}
#endif
