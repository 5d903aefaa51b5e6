/* Unwinding by rules (see rules.h) that are made once.
 *
 * A program has few different rules; a cache finds the rule of a return address with one word of memory. So a frame costs
 * a few nanoseconds.
 */
#include "tables.h"

#include <string.h>

#include "record.h"
#include "rules.h"
#include "system.h"

#if defined(__x86_64__) && defined(__LP64__)

bool unwind_has_tables(void) { return true; }

/* -- the cache of rules ------------------------------------------------------------------------------------- */

#define RULES 65535
#define WAYS 4
#define CACHE_BITS 14

static struct rule rules[RULES]; /* rules[0] is the end of the stack */
static uint32_t rule_count = 1;
static lock_t rules_lock;

/* Address << 16 | number of its rule; 0 for none. One word, so that no lock is needed to read it. */
static uint64_t cache[1 << CACHE_BITS][WAYS] __attribute__((aligned(64)));

static unsigned cache_set(uintptr_t ip) { return (unsigned)((ip * 0x9e3779b97f4a7c15u) >> (64 - CACHE_BITS)); }

/* The number of the rule of a return address. */
static __attribute__((noinline)) uint32_t find_rule(uintptr_t ip) {
  struct rule rule;
  rule_make(ip - 1, &rule);
  uint32_t number = 0;
  lock_take(&rules_lock);
  while (number < rule_count && memcmp(&rules[number], &rule, sizeof rule) != 0) number++;
  if (number == rule_count) {
    if (rule_count < RULES)
      rules[rule_count++] = rule;
    else
      number = 0;
  }
  uint64_t *set = cache[cache_set(ip)];
  for (unsigned way = WAYS - 1; way > 0; way--) __atomic_store_n(set + way, set[way - 1], __ATOMIC_RELAXED);
  __atomic_store_n(set, (uint64_t)ip << 16 | number, __ATOMIC_RELEASE);
  lock_release(&rules_lock);
  return number;
}

static inline const struct rule *rule_of(uintptr_t ip) {
  const uint64_t *set = cache[cache_set(ip)];
  for (unsigned way = 0; way < WAYS; way++) {
    uint64_t word = __atomic_load_n(set + way, __ATOMIC_ACQUIRE);
    if (LIKELY(word >> 16 == ip)) return &rules[word & 0xffff];
  }
  return &rules[find_rule(ip)];
}

/* -- walking ------------------------------------------------------------------------------------------------ */

struct registers {
  uintptr_t ip, sp, rbp;
};

/* A caller, and where in the stack its address and its rbp were read; NULL for an rbp that is the same as in its callee. */
struct frame {
  struct registers at;
  const uintptr_t *ip_slot, *rbp_slot;
};

/* Read the value at a location; false if that is outside of the stack from `low` to `high`. */
static bool get(struct location location, const struct registers *now, uintptr_t cfa, uintptr_t low, uintptr_t high,
                uintptr_t *value) {
  uintptr_t at = location.base == BASE_SP ? now->sp : location.base == BASE_RBP ? now->rbp : cfa;
  at += (uintptr_t)(intptr_t)location.offset;
  if (location.stored) {
    if (at < low || at > high - sizeof at || at % sizeof at) return false;
    at = *(const uintptr_t *)at;
  }
  *value = at;
  return true;
}

/* Go to the caller by any rule; false at the end of the stack. */
static bool step(const struct rule *rule, struct registers *now, uintptr_t low, uintptr_t high) {
  struct registers next;
  if (rule->cfa.base == BASE_NONE || !get(rule->cfa, now, 0, low, high, &next.sp)) return false;
  if (next.sp <= now->sp || next.sp > high || next.sp % sizeof next.sp) return false;
  if (!get(rule->ip, now, next.sp, low, high, &next.ip)) return false;
  next.rbp = now->rbp;
  if (rule->rbp.base != BASE_NONE && !get(rule->rbp, now, next.sp, low, high, &next.rbp)) return false;
  *now = next;
  return true;
}

/* Go to the caller by a plain rule, and keep where its values were read; false at the end of the stack. */
static inline __attribute__((always_inline)) bool step_plain(const struct rule *rule, struct frame *now,
                                                             uintptr_t low, uintptr_t high) {
  uintptr_t cfa = (rule->cfa.base == BASE_SP ? now->at.sp : now->at.rbp) + (uintptr_t)(intptr_t)rule->cfa.offset;
  if (UNLIKELY(cfa <= now->at.sp || cfa > high || cfa % sizeof cfa)) return false;
  now->ip_slot = (const uintptr_t *)cfa - 1;
  now->rbp_slot = NULL;
  if (rule->rbp.base == BASE_CFA) {
    uintptr_t slot = cfa + (uintptr_t)(intptr_t)rule->rbp.offset;
    if (UNLIKELY(slot < low || slot > high - sizeof slot)) return false;
    now->rbp_slot = (const uintptr_t *)slot;
    now->at.rbp = *now->rbp_slot;
  }
  now->at.ip = *now->ip_slot;
  now->at.sp = cfa;
  return true;
}

/* Go to the caller by any rule. Not inlined, so that the plain case can keep everything in registers. */
static __attribute__((noinline)) struct registers step_any(const struct rule *rule, struct registers now,
                                                           uintptr_t low, uintptr_t high) {
  if (!step(rule, &now, low, high)) return (struct registers){0, 0, 0};
  if (rule->signal) now.ip++; /* exact: it is looked up as one after a call */
  return now;
}

/* Go to the caller of `now`; false at the end of the stack. `*usual` becomes false if the step read other words than the
 * slots of the frame, so that these do not show whether it would still lead to the same caller. */
static inline __attribute__((always_inline)) bool walk(struct frame *now, uintptr_t low, uintptr_t high,
                                                       bool *usual) {
  const struct rule *rule = rule_of(now->at.ip);
  if (LIKELY(rule->plain)) {
    if (!step_plain(rule, now, low, high)) return false;
  } else {
    *usual = rule->cfa.base == BASE_NONE; /* the end of the stack is usual */
    now->at = step_any(rule, now->at, low, high);
  }
  return now->at.ip != 0;
}

static struct stack walk_all(struct place place, uint64_t *frames, uint32_t most) {
  struct stack stack = {0, 0, false};
  uintptr_t low = (uintptr_t)place.frame, high = stack_end(low);
  struct frame now = {.at = {(uintptr_t)place.caller, low + 16, *place.frame}};
  bool usual = true;
  do {
    if (stack.frames == most) {
      stack.deeper = true;
      break;
    }
    if (frames) frames[stack.frames] = now.at.ip;
    stack.frames++;
    stack.hash = stack_hash(stack.hash, now.at.ip);
  } while (walk(&now, low, high, &usual));
  return stack;
}

/* -- the stack of the last walk ----------------------------------------------------------------------------- */

/* The stack of the last walk of a thread. Its outer frames are mostly the same the next time: if a walk comes to a frame
 * with the same registers, and all slots outside of it still hold the same words, the remaining frames are known. To check
 * that is several times cheaper than to walk. */
struct memory {
  uint32_t busy;
  uint32_t count;
  const void *owner;
  struct frame frames[RECORD_FRAMES]; /* outermost first */
  uint64_t hashes[RECORD_FRAMES];     /* of all frames up to each one */
  struct frame inner[RECORD_FRAMES];  /* scratch: the new frames, innermost first */
};

#define MEMORIES 8 /* shared by all threads; a thread whose memory is in use walks the whole stack */

static struct memory memories[MEMORIES];
static uint64_t powers[RECORD_FRAMES];

/* Word by word: a load of words that were just stored as words is served by store forwarding, a wider load has to wait
 * until the stores are in the cache. */
static inline __attribute__((always_inline)) void copy_frame(struct frame *to, const struct frame *from) {
  *(volatile uintptr_t *)&to->at.ip = from->at.ip;
  *(volatile uintptr_t *)&to->at.sp = from->at.sp;
  *(volatile uintptr_t *)&to->at.rbp = from->at.rbp;
  *(const uintptr_t *volatile *)&to->ip_slot = from->ip_slot;
  *(const uintptr_t *volatile *)&to->rbp_slot = from->rbp_slot;
}

static bool unchanged(const struct frame *frames, uint32_t count) {
  while (count-- > 0) {
    const struct frame *frame = frames + count;
    if (*frame->ip_slot != frame->at.ip) return false;
    if (frame->rbp_slot && *frame->rbp_slot != frame->at.rbp) return false;
  }
  return true;
}

static bool same_registers(const struct registers *a, const struct registers *b) {
  return a->ip == b->ip && a->sp == b->sp && a->rbp == b->rbp;
}

/* Several threads may do this at the same time, because they write the same values. */
static void compute_powers(void) {
  if (__atomic_load_n(&powers[RECORD_FRAMES - 1], __ATOMIC_ACQUIRE)) return;
  uint64_t power = 1;
  for (uint32_t i = 0; i < RECORD_FRAMES; i++, power *= STACK_FACTOR)
    __atomic_store_n(&powers[i], power, __ATOMIC_RELEASE);
}

/* Walk with the help of the last stack, and remember this one; false if it is too deep or has an unusual frame, and then
 * nothing is remembered. */
static bool walk_remembering(struct memory *memory, struct place place, struct stack *stack) {
  uintptr_t low = (uintptr_t)place.frame, high = stack_end(low);
  struct frame now = {.at = {(uintptr_t)place.caller, low + 16, *place.frame}}, *known = memory->frames;
  uint32_t left = memory->count, fresh = 0;
  bool usual = true, more = true;
  if (left && known[0].at.sp > high) left = 0;
  memory->count = 0;
  while (more && usual) {
    while (left && known[left - 1].at.sp < now.at.sp) left--;
    if (left && same_registers(&known[left - 1].at, &now.at) && unchanged(known, left - 1)) break;
    if (fresh == RECORD_FRAMES) return false;
    copy_frame(&memory->inner[fresh++], &now);
    more = walk(&now, low, high, &usual);
  }
  if (!usual) return false;
  uint32_t count = more ? left : 0;
  if (count + fresh > RECORD_FRAMES) return false;
  if (count) copy_frame(&known[count - 1], &now); /* this walk may have read it from other slots */
  uint64_t hash = count ? memory->hashes[count - 1] : 0;
  while (fresh > 0) {
    copy_frame(&known[count], &memory->inner[--fresh]);
    hash += stack_scatter(known[count].at.ip) * powers[count];
    memory->hashes[count++] = hash;
  }
  memory->count = count;
  *stack = (struct stack){hash, count, false};
  return true;
}

struct stack unwind_tables(struct place place, uint64_t *frames, uint32_t most) {
  static __thread char owner __attribute__((tls_model("initial-exec")));
  struct memory *memory = &memories[((uintptr_t)&owner >> 12) % MEMORIES];
  struct stack stack;
  bool found = false, single = alone();
  if (!frames && (single || !__atomic_exchange_n(&memory->busy, 1, __ATOMIC_ACQUIRE))) {
    if (UNLIKELY(memory->owner != &owner)) {
      memory->owner = &owner;
      memory->count = 0;
      compute_powers();
    }
    found = walk_remembering(memory, place, &stack);
    if (!single) __atomic_store_n(&memory->busy, 0, __ATOMIC_RELEASE);
  }
  return LIKELY(found) ? stack : walk_all(place, frames, most);
}

void unwind_tables_forget(void) {
  lock_take(&rules_lock);
  for (unsigned i = 0; i < 1u << CACHE_BITS; i++)
    for (unsigned way = 0; way < WAYS; way++) __atomic_store_n(&cache[i][way], 0, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < MEMORIES; i++) __atomic_store_n(&memories[i].owner, NULL, __ATOMIC_RELAXED);
  lock_release(&rules_lock);
}

void unwind_tables_forked(void) {
  rules_lock = 0;
  for (unsigned i = 0; i < MEMORIES; i++) memories[i].owner = NULL, memories[i].busy = 0;
}

#else

bool unwind_has_tables(void) { return false; }

struct stack unwind_tables(struct place place, uint64_t *frames, uint32_t most) {
  (void)place, (void)frames, (void)most;
  return (struct stack){0, 0, false};
}

void unwind_tables_forget(void) {}

void unwind_tables_forked(void) {}

#endif
