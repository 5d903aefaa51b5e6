#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../../_common/native/confining.h"
#include "chunk.h"
#include "clock.h"
#include "environment.h"
#include "held.h"
#include "modules.h"
#include "output.h"
#include "reach.h"
#include "stack.h"
#include "system.h"

/* -- state of the process ----------------------------------------------------------------------------------- */

/* In a page that the kernel zeroes in a forked child (MADV_WIPEONFORK), whatever call forked it. So the child notices
 * that it is not the recorded process. */
struct alive {
  int recording;
  int pid;
};

static struct alive *alive;
static bool off; /* this process records nothing any more */
static struct settings settings;
static struct record_header header;
static struct record_tail *tail;
static struct packer packer;

static struct half {
  uint64_t *words;
  struct record_event *events;
  uint32_t marked; /* no event from this one on has a mark */
} halves[2];
static uint32_t word_room, event_room;

/* Where the next event goes: half << 63 | chunk << 32 | place in it. A thread that adds 1 to it owns the place, without a
 * lock. A place beyond the room means that the chunk is full or closed. */
static struct {
  uint64_t at;
} cursor __attribute__((aligned(128)));

#define CLOSED 0x80000000u

static uint32_t place_of(uint64_t at) { return (uint32_t)at; }
static uint32_t chunk_of(uint64_t at) { return (uint32_t)(at >> 32) & 0x7fffffff; }
static uint32_t half_of(uint64_t at) { return (uint32_t)(at >> 63); }

/* `lock` is held while anything but events is added to the recording, or the chunk changes. `packing` is held while a
 * chunk is packed, and is taken with `lock` held. A thread that holds one of them must not wait for a lock of the program
 * or of the loader. */
static lock_t lock __attribute__((aligned(128)));
static lock_t packing;
static lock_t start_lock;

enum { OUTSIDE, RECORDING, PAUSED };

static __thread struct {
  uint32_t busy;
  uint32_t thread; /* index of the thread + 1 */
  uint32_t pid;    /* of the process in which it has this index */
} own __attribute__((tls_model("initial-exec")));

/* -- writing ------------------------------------------------------------------------------------------------ */

static void fail(int error) {
  tail->error = (uint32_t)(error ? error : EIO);
  off = true;
  alive->recording = 0;
}

/* The frames of the last stack that this chunk defines, outermost first. */
static uint64_t previous[RECORD_FRAMES];
static uint32_t previous_frames;

/* A chunk to which nothing is added any more. */
struct closed {
  uint32_t half, chunk, events;
  uint64_t ticks, monotonic; /* when it was closed */
};

/* Close the current chunk, and take the lock `packing`. */
static struct closed close_chunk(void) {
  lock_take(&packing);
  uint64_t at = __atomic_exchange_n(&cursor.at, CLOSED, __ATOMIC_ACQ_REL);
  uint32_t events = place_of(at) < event_room ? place_of(at) : event_room;
  return (struct closed){half_of(at), chunk_of(at), events, clock_ticks(), clock_nanoseconds(CLOCK_MONOTONIC)};
}

static void unmark(struct half *half, uint32_t from) {
  if (from >= half->marked) return;
  memset(half->events + from, 0, (half->marked - from) * sizeof *half->events);
  half->marked = from;
}

static void open_chunk(uint32_t half, uint32_t chunk) {
  struct record_half *known = &tail->half[half];
  /* Marks repeat every 128 chunks: events of an older chunk than the last two may have the mark of this one. */
  if (chunk - known->chunk > 2) unmark(halves + half, 0);
  known->words = 0;
  __atomic_store_n(&known->chunk, chunk, __ATOMIC_RELEASE);
  previous_frames = 0;
  __atomic_store_n(&cursor.at, (uint64_t)half << 63 | (uint64_t)chunk << 32, __ATOMIC_RELEASE);
}

static uint64_t last_ticks;

#define SPINS 1000
#define YIELDS 100000 /* then give up: a signal handler that jumps out of the recorder never finishes its event */

static bool is_marked(const struct record_event *event, uint8_t mark) {
  for (uint32_t tries = 0; tries < YIELDS; tries++) {
    if (LIKELY(__atomic_load_n(&event->mark, __ATOMIC_ACQUIRE) == mark)) return true;
    if (tries > SPINS) syscall(SYS_sched_yield);
  }
  return false;
}

/* Wait for the threads that still write events of a closed chunk; false if a thread never finishes, because a signal
 * handler jumped out of the recorder. Afterwards the events have no gaps, and their ticks never decrease. */
static bool await_writers(struct closed *closed) {
  struct half *half = halves + closed->half;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < closed->events; i++) {
    struct record_event *event = half->events + i;
    if (UNLIKELY(!is_marked(event, RECORD_MARK(closed->chunk)))) continue;
    if (event->ticks > last_ticks) last_ticks = event->ticks;
    event->ticks = last_ticks;
    if (UNLIKELY(kept != i)) half->events[kept] = *event;
    kept++;
  }
  uint32_t missing = closed->events - kept;
  if (missing) __atomic_fetch_add(&tail->skipped, missing, __ATOMIC_RELAXED);
  if (half->marked < closed->events) half->marked = closed->events;
  unmark(half, kept);
  closed->events = kept;
  if (closed->ticks < last_ticks) closed->ticks = last_ticks;
  return missing == 0;
}

static bool pack(struct closed *closed) {
  bool whole = await_writers(closed);
  struct record_chunk chunk = {.number = closed->chunk, .ticks = closed->ticks, .monotonic = closed->monotonic};
  const struct half *half = halves + closed->half;
  size_t size = chunk_pack(&packer, chunk, half->words, tail->half[closed->half].words, half->events, closed->events,
                           header.tick_shift);
  int error = output_append(packer.packed, size);
  if (error) fail(error); /* the tail keeps the events */
  tail->ticks = closed->ticks;
  tail->monotonic = closed->monotonic;
  return whole;
}

/* Close the chunk, pack it, and open the next one. The lock is held before and after; with `pass` it is released while
 * packing, so that other threads can continue. */
static void next_chunk(bool pass) {
  struct closed closed = close_chunk();
  bool both = !alone(); /* a single thread is faster with one half, which stays in its cache */
  if (both) open_chunk(!closed.half, closed.chunk + 1);
  if (pass) lock_release(&lock);
  pack(&closed);
  if (!both && !off) open_chunk(closed.half, closed.chunk + 1);
  lock_release(&packing);
  if (pass) lock_take(&lock);
}

/* Make room in the tail for another event; false if recording has ended. */
static __attribute__((noinline)) bool more_room(void) {
  lock_take(&lock);
  while (!off && place_of(__atomic_load_n(&cursor.at, __ATOMIC_ACQUIRE)) >= event_room) next_chunk(true);
  lock_release(&lock);
  return !off;
}

static inline uint64_t next_place(void) {
  return alone() ? cursor.at++ : __atomic_fetch_add(&cursor.at, 1, __ATOMIC_ACQ_REL);
}

static struct record_half *current_half(void) {
  return &tail->half[half_of(__atomic_load_n(&cursor.at, __ATOMIC_RELAXED))];
}

/* Room for `count` words; NULL if there is none, because recording has ended or is about to. */
static uint64_t *reserve_words(uint32_t count) {
  if (count > word_room) return NULL;
  if (current_half()->words + count > word_room) next_chunk(false);
  if (off) return NULL;
  struct record_half *half = current_half();
  return halves[half - tail->half].words + half->words;
}

static uint64_t first_word(enum record_definition kind, uint64_t id, uint64_t shared, bool deeper, uint64_t count) {
  return (uint64_t)kind << 60 | count << 48 | (uint64_t)deeper << 47 | shared << 32 | id;
}

static void publish_words(uint32_t count) {
  struct record_half *half = current_half();
  __atomic_store_n(&half->words, half->words + count, __ATOMIC_RELEASE);
}

/* -- definitions -------------------------------------------------------------------------------------------- */

static void define_module(const struct mapping *mapping) {
  size_t length = strlen(mapping->path);
  uint32_t count = 3 + (uint32_t)((length + 7) / 8);
  uint64_t *at = reserve_words(1 + count);
  if (!at) return;
  at[0] = first_word(RECORD_MODULE, length, 0, false, count);
  at[1] = mapping->start;
  at[2] = mapping->end;
  at[3] = mapping->offset;
  at[count] = 0;
  memcpy(at + 4, mapping->path, length);
  publish_words(1 + count);
}

static uint32_t threads;

static __attribute__((noinline)) void define_thread(void) {
  lock_take(&lock);
  own.pid = header.pid;
  own.thread = threads < UINT16_MAX ? ++threads : UINT16_MAX + 1;
  uint64_t *at = own.thread <= UINT16_MAX && !off ? reserve_words(2) : NULL;
  if (at) {
    at[0] = first_word(RECORD_THREAD, own.thread - 1, 0, false, 1);
    at[1] = (uint64_t)syscall(SYS_gettid);
    publish_words(2);
  }
  lock_release(&lock);
}

static inline uint16_t thread_index(void) {
  if (UNLIKELY(own.pid != header.pid)) define_thread();
  return (uint16_t)(own.thread - 1);
}

/* A cache of stack ids by the hash of their addresses. A stack that was evicted is defined again. */
#define STACK_SET_BITS 14
#define STACK_WAYS 5

struct stack_set {
  uint64_t hashes[STACK_WAYS]; /* 0 for none */
  uint32_t ids[STACK_WAYS];
} __attribute__((aligned(64)));

static struct stack_set stacks[1 << STACK_SET_BITS];
static uint32_t stack_count;
static uint64_t stack_seed; /* changes when code is unloaded: an address may be other code now */
static uint32_t unknown;    /* number of frames that are in no module, even after reading the mappings */

#define UNKNOWN_READS 64 /* so many new stacks with such a frame read the mappings; later only one in 1024 */

static void read_modules(void) {
  if (!modules_read(define_module)) return;
  stack_seed += 0x9e3779b97f4a7c15u;
  unwind_forget();
}

static uint64_t stack_key(const struct stack *stack) {
  uint64_t key = (stack->hash ^ stack_seed) * 0x9e3779b97f4a7c15u;
  return (key ^ key >> 32) | 1;
}

static struct stack_set *stack_set(uint64_t key) { return &stacks[key >> (64 - STACK_SET_BITS)]; }

/* The id of a stack; 0 if it is not in the cache. Needs no lock: an id is valid if its hash is there before and after
 * reading it. */
static uint32_t find_stack(const struct stack *stack) {
  uint64_t key = stack_key(stack);
  const struct stack_set *set = stack_set(key);
  for (unsigned way = 0; way < STACK_WAYS; way++) {
    if (__atomic_load_n(&set->hashes[way], __ATOMIC_ACQUIRE) != key) continue;
    uint32_t id = __atomic_load_n(&set->ids[way], __ATOMIC_ACQUIRE);
    return __atomic_load_n(&set->hashes[way], __ATOMIC_RELAXED) == key ? id : 0;
  }
  return 0;
}

static void remember_stack(uint64_t key, uint32_t id) {
  struct stack_set *set = stack_set(key);
  unsigned way = id % STACK_WAYS;
  for (unsigned i = 0; i < STACK_WAYS; i++)
    if (!set->hashes[i]) way = i;
  __atomic_store_n(&set->hashes[way], 0, __ATOMIC_RELAXED);
  __atomic_store_n(&set->ids[way], id, __ATOMIC_RELEASE);
  __atomic_store_n(&set->hashes[way], key, __ATOMIC_RELEASE);
}

static void require_modules(const uint64_t *frames, uint32_t count) {
  bool read = false;
  for (uint32_t i = 0; i < count; i++) {
    if (modules_know(frames[i] - 1)) continue;
    if (read || (unknown > UNKNOWN_READS && stack_count % 1024)) {
      unknown++;
      continue;
    }
    read_modules();
    read = true;
    if (!modules_know(frames[i] - 1)) unknown++;
  }
}

/* Define the stack of these frames, innermost first. */
static uint32_t define_stack(const struct stack *stack, const uint64_t *frames, uint32_t count) {
  require_modules(frames, count);
  uint64_t *at = off ? NULL : reserve_words(1 + count);
  if (!at) return 0;
  uint32_t shared = 0;
  while (shared < count && shared < previous_frames && frames[count - 1 - shared] == previous[shared]) shared++;
  uint32_t id = ++stack_count;
  *at++ = first_word(RECORD_STACK, 0, shared, stack->deeper, count - shared);
  for (uint32_t i = shared; i < count; i++) *at++ = previous[i] = frames[count - 1 - i];
  previous_frames = count;
  publish_words(1 + count - shared);

  remember_stack(stack_key(stack), id);
  return id;
}

/* The id of a stack that is not in the cache. It is unwound again before the lock is taken, because that may wait for the
 * loader, and a thread in the loader may wait for this lock. */
static __attribute__((noinline)) uint32_t new_stack(const struct call *call) {
  uint64_t frames[call->stack.frames];
  struct stack again = unwind((enum record_unwinder)header.unwinder, call->place, frames, call->stack.frames);
  lock_take(&lock);
  uint32_t id = find_stack(&call->stack);
  if (!id && !off) id = define_stack(&call->stack, frames, again.frames);
  lock_release(&lock);
  return id;
}

/* -- start -------------------------------------------------------------------------------------------------- */

/* Room in the tail for events after the end of the process, mostly releases by other libraries. */
#define LATE_WORDS 128
#define LATE_EVENTS 32

static size_t tail_size(uint32_t words, uint32_t events) {
  return sizeof *tail + 2 * (sizeof(uint64_t) * words + sizeof(struct record_event) * events);
}

static void lay_out_tail(uint32_t words, uint32_t events) {
  size_t at = sizeof *tail;
  tail->words_capacity = word_room = words;
  tail->events_capacity = event_room = events;
  for (unsigned half = 0; half < 2; half++, at += sizeof(uint64_t) * words) {
    tail->half[half].words_offset = (uint32_t)at;
    halves[half].words = (uint64_t *)((char *)tail + at);
  }
  for (unsigned half = 0; half < 2; half++, at += sizeof(struct record_event) * events) {
    tail->half[half].events_offset = (uint32_t)at;
    halves[half].events = (struct record_event *)((char *)tail + at);
    halves[half].marked = 0;
  }
}

/* Write lines with the path of the program and its arguments; returns their size. */
static size_t describe(char *text, size_t room) {
  size_t size = (size_t)snprintf(text, room, "exe ");
  ssize_t length = readlink("/proc/self/exe", text + size, room - size - 1);
  size += length > 0 ? (size_t)length : 0;
  text[size++] = '\n';
  int file = system_open("/proc/self/cmdline", O_RDONLY, 0);
  if (file < 0) return size;
  char buffer[1024];
  bool starts = true;
  long got;
  while ((got = system_read(file, buffer, sizeof buffer)) > 0)
    for (long i = 0; i < got && size + 8 < room; i++) {
      if (starts) size += (size_t)snprintf(text + size, room - size, "arg ");
      starts = !buffer[i];
      text[size++] = buffer[i] == '\n' ? ' ' : buffer[i] ? buffer[i] : '\n';
    }
  system_close(file);
  return size;
}

static bool write_head(void) {
  memset(&header, 0, sizeof header);
  memcpy(header.magic, RECORD_MAGIC, sizeof header.magic);
  header.byte_order = RECORD_BYTE_ORDER;
  header.version = RECORD_VERSION;
  header.header_size = sizeof header;
  header.pid = (uint32_t)system_pid();
  header.parent = (uint32_t)syscall(SYS_getppid);
  header.unwinder = header.wanted = settings.unwinder;
  if (settings.unwinder == RECORD_UNWIND_TABLES && !unwind_has_tables())
    header.unwinder = RECORD_UNWIND_FRAME_POINTER;
  header.tick_shift = CLOCK_TICK_SHIFT;
  header.ticks = clock_ticks();
  header.monotonic = clock_nanoseconds(CLOCK_MONOTONIC);
  header.realtime = clock_nanoseconds(CLOCK_REALTIME);
  header.pointer_size = sizeof(void *);
  header.page_size = (uint32_t)sysconf(_SC_PAGESIZE);
  memcpy(tail->magic, RECORD_TAIL_MAGIC, sizeof tail->magic);
  tail->byte_order = RECORD_BYTE_ORDER;
  tail->version = RECORD_VERSION;
  tail->pid = header.pid;
  tail->ticks = header.ticks;
  tail->monotonic = header.monotonic;

  char *text = (char *)packer.site_keys; /* serves as a buffer here, because nothing has been packed yet */
  size_t size = chunk_pack_text(&packer, text, describe(text, sizeof packer.site_keys));
  return !output_append(&header, sizeof header) && !output_append(packer.packed, size);
}

/* Make the files of this process; false if that fails. */
static bool start_record(bool child) {
  tail = output_make(settings.file, child, tail_size(CHUNK_WORDS, CHUNK_EVENTS));
  if (!tail) {
    if (child) output_refused(settings.file);
    return false;
  }
  lay_out_tail(CHUNK_WORDS, CHUNK_EVENTS);
  tail->half[1].chunk = RECORD_NO_CHUNK;
  open_chunk(0, 0);
  if (!write_head()) {
    output_discard();
    if (child) output_refused(settings.file);
    tail = NULL;
    return false;
  }
  alive->pid = (int)header.pid;
  __atomic_store_n(&alive->recording, 1, __ATOMIC_RELEASE);
  return true;
}

static bool start_first(void) {
  void *page = mmap(NULL, sizeof *alive, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) return false;
  alive = page;
  if (start_record(false)) return true;
  /* If the file exists, this is a child process that has executed a program. */
  return settings.follow && errno == EEXIST && start_record(true);
}

/* Start in a forked child of the recorded process. */
static bool start_forked(void) {
  output_forget();
  tail = NULL;
  if (!settings.follow) return false;
  lock = packing = 0;
  unwind_forked();
  held_forget();
  threads = stack_count = unknown = previous_frames = 0;
  memset(stacks, 0, sizeof stacks);
  modules_forget();
  return start_record(true);
}

/* Start recording, unless it has started or the settings do not want it; returns whether events are recorded. */
static __attribute__((noinline)) bool start(void) {
  if (off) {
    if (alive && alive->pid) __atomic_fetch_add(&tail->lost, 1, __ATOMIC_RELAXED);
    return false;
  }
  int error = errno;
  own.busy = PAUSED;
  lock_take(&start_lock);
  bool recording = alive && alive->recording;
  if (!off && !recording) {
    bool forked = alive != NULL;
    if (forked || environment_read(&settings)) {
      recording = settings.file[0] && (forked ? start_forked() : start_first());
      off = !recording;
      if (!forked && !settings.follow) environment_clean();
    }
  }
  lock_release(&start_lock);
  own.busy = OUTSIDE;
  errno = error;
  return recording;
}

/* -- calls -------------------------------------------------------------------------------------------------- */

bool recorder_enter(struct call *call, struct place place) {
  if (UNLIKELY(!alive || !alive->recording))
    if (own.busy || !start()) return false;
  if (UNLIKELY(own.busy)) {
    if (own.busy == RECORDING) __atomic_fetch_add(&tail->skipped, 1, __ATOMIC_RELAXED);
    return false;
  }
  /* In the first call of a thread, an unwinder may allocate memory for the thread. */
  own.busy = LIKELY(own.pid == header.pid) ? RECORDING : PAUSED;
  call->error = errno;
  call->place = place;
  call->stack = unwind((enum record_unwinder)header.unwinder, place, NULL, RECORD_FRAMES);
  own.busy = RECORDING;
  return true;
}

void recorder_enter_again(struct call *call) {
  own.busy = RECORDING;
  call->error = errno;
}

void recorder_leave(struct call *call) {
  errno = call->error;
  own.busy = OUTSIDE;
}

void recorder_write(struct call *call, enum record_kind kind, const void *address, uint64_t amount) {
  uint32_t stack = 0;
  if (UNLIKELY(settings.reachable)) held_event(kind, (uintptr_t)address, amount);
  if (LIKELY(!off) && call->stack.frames) {
    stack = find_stack(&call->stack);
    if (UNLIKELY(!stack)) stack = new_stack(call);
  }
  uint16_t thread = thread_index();
  uint64_t ticks = clock_ticks(), at;
  do {
    if (UNLIKELY(off)) {
      __atomic_fetch_add(&tail->lost, 1, __ATOMIC_RELAXED);
      return;
    }
    at = next_place();
  } while (UNLIKELY(place_of(at) >= event_room) && (more_room(), true));
  struct record_event *event = halves[half_of(at)].events + place_of(at);
  event->address = (uintptr_t)address;
  event->amount = amount;
  event->ticks = ticks;
  event->stack = stack;
  event->thread = thread;
  event->kind = (uint8_t)kind;
  __atomic_store_n(&event->mark, (uint8_t)RECORD_MARK(chunk_of(at)), __ATOMIC_RELEASE);
}

/* -- unloading of code and the end of a process ------------------------------------------------------------- */

/* Run `action` with the lock held, if the process is recorded and this thread is not in the recorder already. */
static void with_record(void (*action)(void *), void *argument) {
  if (own.busy || !alive || !alive->recording || alive->pid != system_pid()) return;
  int error = errno;
  own.busy = PAUSED;
  lock_take(&lock);
  if (!off) action(argument);
  lock_release(&lock);
  own.busy = OUTSIDE;
  errno = error;
}

static void unloaded(void *nothing) {
  (void)nothing;
  read_modules();
}

void recorder_unloaded(void) { with_record(unloaded, NULL); }

static void end(void *argument) {
  struct closed closed = close_chunk();
  bool empty = !closed.events && !tail->half[closed.half].words, whole = empty || pack(&closed);
  if (!off) {
    tail->state = *(enum record_state *)argument;
    if (whole) { /* no thread writes to the half any more */
      memset((char *)tail + sizeof *tail, 0, tail_size(LATE_WORDS, LATE_EVENTS) - sizeof *tail);
      lay_out_tail(LATE_WORDS, LATE_EVENTS);
      output_shorten(tail_size(LATE_WORDS, LATE_EVENTS));
    }
    open_chunk(closed.half, closed.chunk + !empty);
  }
  lock_release(&packing);
}

static void write_reach(const struct reach_result *result) {
  size_t at = 0;
  lock_take(&packing);
  do {
    size_t count = result->count - at < CHUNK_EVENTS ? result->count - at : CHUNK_EVENTS;
    size_t size = chunk_pack_reach(&packer, result->blocks + at, (uint32_t)count, result->unseen_threads,
                                   result->complete);
    int error = output_append(packer.packed, size);
    if (error) fail(error);
    at += count;
  } while (at < result->count && !off);
  lock_release(&packing);
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* Find out what the program can still reach, and write it. */
static void search(void *allocator_of_libc) {
  const struct reach_range ranges[] = {
      {(uintptr_t)__ehdr_start, (uintptr_t)_end},
      {(uintptr_t)tail, (uintptr_t)tail + tail_size(CHUNK_WORDS, CHUNK_EVENTS)},
      {(uintptr_t)alive, (uintptr_t)alive + sizeof *alive},
  };
  reach_search(*(const bool *)allocator_of_libc, ranges, sizeof ranges / sizeof *ranges, write_reach);
  settings.reachable = false; /* once is enough */
}

void recorder_end(enum record_state state, bool allocator_of_libc) {
  if (settings.reachable) with_record(search, &allocator_of_libc);
  with_record(end, &state);
}

static void confine(void *nothing) {
  (void)nothing;
  enum record_state state = RECORD_RUNNING;
  end(&state);
  if (!off) fail(RECORD_CONFINED);
}

void recorder_confined(void) { with_record(confine, NULL); }

uint32_t recorder_pause(void) {
  uint32_t busy = own.busy;
  own.busy = PAUSED;
  return busy;
}

void recorder_resume(uint32_t busy) { own.busy = busy; }

void recorder_aside(void (*action)(void)) {
  uint32_t busy = recorder_pause();
  action();
  recorder_resume(busy);
}

void recorder_ready(void) {
  if (!own.busy && (!alive || !alive->recording) && !start()) return;
  if (own.busy) return;
  int error = errno;
  own.busy = PAUSED;
  /* Later the program may have another root, or may not open files any more (seccomp). */
  lock_take(&lock);
  if (!off) read_modules();
  lock_release(&lock);
  stack_end((uintptr_t)__builtin_frame_address(0));
  if (header.wanted == RECORD_UNWIND_LIBUNWIND && !unwind_load_libunwind(settings.libunwind)) {
    header.unwinder = unwind_has_tables() ? RECORD_UNWIND_TABLES : RECORD_UNWIND_FRAME_POINTER;
    output_rewrite(&header, sizeof header);
  }
  own.busy = OUTSIDE;
  errno = error;
}
