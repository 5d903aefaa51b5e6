#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "chunk.h"
#include "clock.h"
#include "environment.h"
#include "modules.h"
#include "output.h"
#include "system.h"

/* -- state of the process ----------------------------------------------------------------------------------- */

/* A page that the kernel empties in a process that forks off, however it does: the child finds that it is one. */
struct alive {
  int recording;
  int pid;
};

static struct alive *alive;
static bool off; /* for good, in this process */
static struct settings settings;
static struct record_header header;
static struct record_tail *tail;
static uint64_t *words;
static struct record_event *events;
static struct packer packer;

/* Held while the record is changed. No lock of the program or of the loader may be waited for meanwhile. */
static lock_t lock;
static lock_t start_lock;

enum { FREE_TO_ENTER, RECORDING, ASIDE };

static __thread struct {
  uint32_t busy;
  uint32_t thread; /* its index + 1 */
  uint32_t pid;    /* of the process that it has this index in */
} own __attribute__((tls_model("initial-exec")));

static bool take_lock(void) {
  if (alone()) return false;
  lock_take(&lock);
  return true;
}

static void release_lock(bool taken) {
  if (taken) lock_release(&lock);
}

/* -- writing ------------------------------------------------------------------------------------------------ */

static uint64_t last_ticks;

static uint64_t next_ticks(void) {
  uint64_t now = clock_ticks();
  if (now > last_ticks) last_ticks = now;
  return last_ticks;
}

static void fail(int error) {
  tail->error = (uint32_t)(error ? error : EIO);
  off = true;
  alive->recording = 0;
}

/* The frames of the stack that was defined last in this chunk, outermost first. */
static uint64_t previous[RECORD_FRAMES];
static uint32_t previous_frames;

static void flush(void) {
  struct record_chunk chunk = {.number = tail->chunk, .ticks = next_ticks()};
  chunk.monotonic = tail->monotonic = clock_nanoseconds(CLOCK_MONOTONIC);
  tail->ticks = chunk.ticks;
  if (tail->words || tail->events) {
    size_t size = chunk_pack(&packer, chunk, words, tail->words, events, tail->events, header.tick_shift);
    int error = output_append(packer.packed, size);
    if (error) {
      fail(error); /* what is in the tail stays there */
      return;
    }
    tail->events = 0;
    tail->words = 0;
    __atomic_store_n(&tail->chunk, tail->chunk + 1, __ATOMIC_RELEASE);
  }
  previous_frames = 0;
}

/* Room for `count` words; false where there is none: recording ended, or is about to. */
static bool reserve_words(uint32_t count) {
  if (count > tail->words_capacity) return false;
  if (tail->words + count > tail->words_capacity) flush();
  return !off;
}

static uint64_t first_word(enum record_definition kind, uint64_t id, uint64_t shared, bool deeper, uint64_t count) {
  return (uint64_t)kind << 60 | count << 48 | (uint64_t)deeper << 47 | shared << 32 | id;
}

static void publish_words(uint32_t count) {
  __atomic_store_n(&tail->words, tail->words + count, __ATOMIC_RELEASE);
}

/* -- definitions -------------------------------------------------------------------------------------------- */

static void define_module(const struct mapping *mapping) {
  size_t length = strlen(mapping->path);
  uint32_t count = 3 + (uint32_t)((length + 7) / 8);
  if (!reserve_words(1 + count)) return;
  uint64_t *at = words + tail->words;
  at[0] = first_word(RECORD_MODULE, length, 0, false, count);
  at[1] = mapping->start;
  at[2] = mapping->end;
  at[3] = mapping->offset;
  at[count] = 0;
  memcpy(at + 4, mapping->path, length);
  publish_words(1 + count);
}

static uint32_t threads;

static uint16_t thread_index(void) {
  if (LIKELY(own.pid == header.pid)) return (uint16_t)(own.thread - 1);
  own.pid = header.pid;
  own.thread = threads < UINT16_MAX ? ++threads : UINT16_MAX + 1;
  if (own.thread <= UINT16_MAX && reserve_words(2)) {
    words[tail->words] = first_word(RECORD_THREAD, own.thread - 1, 0, false, 1);
    words[tail->words + 1] = (uint64_t)syscall(SYS_gettid);
    publish_words(2);
  }
  return (uint16_t)(own.thread - 1);
}

/* Ids of stacks by the hash of their addresses. A stack that was put out by others is defined again. */
#define STACK_SET_BITS 14
#define STACK_WAYS 5

struct stack_set {
  uint64_t hashes[STACK_WAYS]; /* 0 for none */
  uint32_t ids[STACK_WAYS];
} __attribute__((aligned(64)));

static struct stack_set stacks[1 << STACK_SET_BITS];
static uint32_t stack_count;
static uint64_t stack_seed; /* another one when code was unloaded: equal addresses may be other code now */
static uint32_t unknown;    /* frames that are in no module, even after reading the mappings */

#define UNKNOWN_READS 64 /* so many times, mappings are read for such frames at each new stack; then rarely */

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

/* 0 where the stack is not known. */
static uint32_t find_stack(const struct stack *stack) {
  uint64_t key = stack_key(stack);
  const struct stack_set *set = stack_set(key);
  for (unsigned way = 0; way < STACK_WAYS; way++)
    if (set->hashes[way] == key) return set->ids[way];
  return 0;
}

static void know_modules(const uint64_t *frames, uint32_t count) {
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
  know_modules(frames, count);
  if (off || !reserve_words(1 + count)) return 0;
  uint32_t shared = 0;
  while (shared < count && shared < previous_frames && frames[count - 1 - shared] == previous[shared]) shared++;
  uint32_t id = ++stack_count;
  uint64_t *at = words + tail->words;
  *at++ = first_word(RECORD_STACK, 0, shared, stack->deeper, count - shared);
  for (uint32_t i = shared; i < count; i++) *at++ = previous[i] = frames[count - 1 - i];
  previous_frames = count;
  publish_words(1 + count - shared);

  uint64_t key = stack_key(stack);
  struct stack_set *set = stack_set(key);
  unsigned way = id % STACK_WAYS;
  for (unsigned i = 0; i < STACK_WAYS; i++)
    if (!set->hashes[i]) way = i;
  set->hashes[way] = key;
  set->ids[way] = id;
  return id;
}

/* The id of a stack that was not known. The lock is given back while the stack is unwound again: that may wait
 * for the loader, in which another thread may wait for us. */
static __attribute__((noinline)) uint32_t new_stack(const struct call *call, bool *locked) {
  uint64_t frames[call->stack.frames];
  release_lock(*locked);
  struct stack again = unwind((enum record_unwinder)header.unwinder, call->place, frames, call->stack.frames);
  *locked = take_lock();
  if (off) return 0;
  uint32_t id = find_stack(&call->stack);
  return id ? id : define_stack(&call->stack, frames, again.frames);
}

/* -- start -------------------------------------------------------------------------------------------------- */

#define TAIL_WORDS_OFFSET sizeof(struct record_tail)
/* Room in the tail of a process that has ended, for what comes even then: mostly some releases. */
#define LATE_WORDS 128
#define LATE_EVENTS 32

static size_t lay_out_tail(uint32_t word_capacity, uint32_t event_capacity) {
  tail->words_capacity = word_capacity;
  tail->events_capacity = event_capacity;
  tail->words_offset = TAIL_WORDS_OFFSET;
  tail->events_offset = (uint32_t)TAIL_WORDS_OFFSET + 8 * word_capacity;
  words = (uint64_t *)((char *)tail + tail->words_offset);
  events = (struct record_event *)((char *)tail + tail->events_offset);
  return tail->events_offset + event_capacity * sizeof(struct record_event);
}

/* The program and its arguments, as lines. */
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
  header.ticks = next_ticks();
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

  char *text = (char *)packer.site_keys; /* not in use yet */
  size_t size = chunk_pack_text(&packer, text, describe(text, sizeof packer.site_keys));
  return !output_append(&header, sizeof header) && !output_append(packer.packed, size);
}

/* Start the record of this process; false where that is not possible. */
static bool start_record(bool child) {
  size_t size = TAIL_WORDS_OFFSET + 8 * CHUNK_WORDS + sizeof(struct record_event) * CHUNK_EVENTS;
  tail = output_make(settings.file, child, size);
  if (!tail) return false;
  lay_out_tail(CHUNK_WORDS, CHUNK_EVENTS);
  if (!write_head()) return false;
  alive->pid = (int)header.pid;
  __atomic_store_n(&alive->recording, 1, __ATOMIC_RELEASE);
  return true;
}

static bool start_first(void) {
  void *page = mmap(NULL, sizeof *alive, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) return false;
  alive = page;
  if (start_record(false)) return true;
  /* The file is there already: this is a child that executed a program. */
  return settings.follow && errno == EEXIST && start_record(true);
}

/* This process was forked off by the one that was recorded. */
static bool start_forked(void) {
  output_forget();
  tail = NULL;
  if (!settings.follow) return false;
  lock = 0;
  unwind_forked();
  threads = stack_count = unknown = previous_frames = 0;
  memset(stacks, 0, sizeof stacks);
  modules_forget();
  return start_record(true);
}

/* Whether events are to be recorded, asked where they are not being recorded. */
static __attribute__((noinline)) bool start(void) {
  if (off) {
    if (alive && alive->pid) __atomic_fetch_add(&tail->lost, 1, __ATOMIC_RELAXED);
    return false;
  }
  int error = errno;
  own.busy = ASIDE;
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
  own.busy = FREE_TO_ENTER;
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
  /* The first time in a thread, an unwinder may allocate what it keeps for it. */
  own.busy = LIKELY(own.pid == header.pid) ? RECORDING : ASIDE;
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
  own.busy = FREE_TO_ENTER;
}

void recorder_write(struct call *call, enum record_kind kind, const void *address, uint64_t amount) {
  bool locked = take_lock();
  uint32_t stack = 0;
  if (LIKELY(!off) && call->stack.frames) {
    stack = find_stack(&call->stack);
    if (UNLIKELY(!stack)) stack = new_stack(call, &locked);
  }
  uint16_t thread = thread_index();
  if (UNLIKELY(off)) {
    tail->lost++;
  } else {
    struct record_event *event = events + tail->events;
    event->address = (uintptr_t)address;
    event->amount = amount;
    event->ticks = next_ticks();
    event->stack = stack;
    event->thread = thread;
    event->kind = (uint8_t)kind;
    event->reserved = 0;
    __atomic_store_n(&tail->events, tail->events + 1, __ATOMIC_RELEASE);
    if (UNLIKELY(tail->events == tail->events_capacity)) flush();
  }
  release_lock(locked);
}

/* -- moments in the life of a process ----------------------------------------------------------------------- */

/* Run `action` on the record, where there is one and this thread is not at it. */
static void with_record(void (*action)(void *), void *argument) {
  if (own.busy || !alive || !alive->recording || alive->pid != system_pid()) return;
  int error = errno;
  own.busy = ASIDE;
  bool locked = take_lock();
  if (!off) action(argument);
  release_lock(locked);
  own.busy = FREE_TO_ENTER;
  errno = error;
}

static void unloaded(void *nothing) {
  (void)nothing;
  read_modules();
}

void recorder_unloaded(void) { with_record(unloaded, NULL); }

static void end(void *argument) {
  flush();
  if (off) return;
  tail->state = *(enum record_state *)argument;
  output_shorten(lay_out_tail(LATE_WORDS, LATE_EVENTS));
}

void recorder_end(enum record_state state) { with_record(end, &state); }

void recorder_aside(void (*action)(void)) {
  uint32_t busy = own.busy;
  own.busy = ASIDE;
  action();
  own.busy = busy;
}

void recorder_ready(void) {
  if (!own.busy && (!alive || !alive->recording) && !start()) return;
  if (own.busy || header.wanted != RECORD_UNWIND_LIBUNWIND) return;
  int error = errno;
  own.busy = ASIDE;
  if (!unwind_load_libunwind(settings.libunwind)) {
    header.unwinder = unwind_has_tables() ? RECORD_UNWIND_TABLES : RECORD_UNWIND_FRAME_POINTER;
    output_rewrite(&header, sizeof header);
  }
  own.busy = FREE_TO_ENTER;
  errno = error;
}
