/* Unwinding by the tables that compilers write for exceptions (.eh_frame: DWARF 4 6.4, LSB 4.1 10.6), for x86-64.
 *
 * Only the stack pointer, rbp and the return address are followed: with them, code that compilers make can be
 * unwound. What a return address needs is a rule; rules are few, and an address finds its rule in a table with
 * one word each. A frame costs a few nanoseconds so.
 */
#define _GNU_SOURCE
#include "tables.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "record.h"
#include "system.h"

#if defined(__x86_64__) && defined(__LP64__)

bool unwind_has_tables(void) { return true; }

/* -- rules -------------------------------------------------------------------------------------------------- */

enum base { BASE_SP, BASE_RBP, BASE_CFA, BASE_NONE };

/* Where a value is: base + offset, or what is stored there. */
struct location {
  int32_t offset;
  uint8_t base;
  uint8_t stored;
};

/* How to get to the caller's frame. Its stack pointer is the CFA (canonical frame address). */
struct rule {
  struct location cfa, ip, rbp; /* base BASE_NONE: there is no caller, rbp is unchanged */
  uint8_t signal;               /* the address of the caller is exact, not one after a call */
  uint8_t plain;                /* the common kind: CFA by register and offset, ip just below it */
};

#define RULES 65535
#define WAYS 4
#define CACHE_BITS 14

static struct rule rules[RULES]; /* rules[0] is the end of the stack */
static uint32_t rule_count = 1;
static lock_t rules_lock;

/* Address << 16 | number of its rule; 0 for none. One word, so that no lock is needed to read it. */
static uint64_t cache[1 << CACHE_BITS][WAYS] __attribute__((aligned(64)));

static unsigned cache_set(uintptr_t ip) { return (unsigned)((ip * 0x9e3779b97f4a7c15u) >> (64 - CACHE_BITS)); }

/* -- reading the tables ------------------------------------------------------------------------------------- */

struct reader {
  const uint8_t *at, *end;
};

static uint64_t read_fixed(struct reader *from, unsigned size) {
  uint64_t value = 0;
  if ((size_t)(from->end - from->at) < size) {
    from->at = from->end;
    return 0;
  }
  memcpy(&value, from->at, size);
  from->at += size;
  return value;
}

static uint64_t read_uleb(struct reader *from) {
  uint64_t value = 0;
  for (unsigned shift = 0; from->at < from->end; shift += 7) {
    uint8_t byte = *from->at++;
    if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128)) break;
  }
  return value;
}

static int64_t read_sleb(struct reader *from) {
  uint64_t value = 0;
  uint8_t byte = 0;
  unsigned shift = 0;
  while (from->at < from->end) {
    byte = *from->at++;
    if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
    shift += 7;
    if (!(byte & 128)) break;
  }
  if (shift < 64 && byte & 64) value |= ~(uint64_t)0 << shift;
  return (int64_t)value;
}

/* A pointer in one of the encodings DW_EH_PE_*; 0 for those that return addresses do not have. */
static uint64_t read_pointer(struct reader *from, uint8_t encoding) {
  uint64_t place = (uint64_t)(uintptr_t)from->at, value;
  switch (encoding & 15) {
    case 0x00: case 0x04: case 0x0c: value = read_fixed(from, 8); break;
    case 0x01: value = read_uleb(from); break;
    case 0x02: value = read_fixed(from, 2); break;
    case 0x03: value = read_fixed(from, 4); break;
    case 0x09: value = (uint64_t)read_sleb(from); break;
    case 0x0a: value = (uint64_t)(int64_t)(int16_t)read_fixed(from, 2); break;
    case 0x0b: value = (uint64_t)(int64_t)(int32_t)read_fixed(from, 4); break;
    default: return 0;
  }
  return (encoding & 0x70) == 0x10 ? value + place : value;
}

/* The header of the tables (.eh_frame_hdr) of the code at `ip`. */
struct search {
  uintptr_t ip;
  const uint8_t *header;
};

static int has_code(struct dl_phdr_info *info, size_t size, void *argument) {
  struct search *search = argument;
  const uint8_t *header = NULL;
  bool found = false;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && search->ip - start < part->p_memsz) found = true;
    if (part->p_type == PT_GNU_EH_FRAME) header = (const uint8_t *)start;
  }
  if (found) search->header = header;
  return found;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* declared since glibc 2.35, and then there when built against it */
extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));
#endif

static const uint8_t *tables_of(uintptr_t ip) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  if (_dl_find_object) {
    struct dl_find_object found;
    return _dl_find_object((void *)ip, &found) == 0 ? found.dlfo_eh_frame : NULL;
  }
#endif
  struct search search = {ip, NULL};
  dl_iterate_phdr(has_code, &search);
  return search.header;
}

/* The description (FDE) of the code at `ip`: the last in the sorted table that starts at or before it. */
static const uint8_t *description_of(const uint8_t *header, uintptr_t ip) {
  if (header[0] != 1 || header[3] != 0x3b) return NULL; /* what every linker writes: pairs of int32 */
  struct reader reader = {header + 4, header + 64};
  read_pointer(&reader, header[1]);
  uint64_t count = read_pointer(&reader, header[2]);
  const struct pair {
    int32_t start, description;
  } *pairs = (const void *)reader.at;
  int64_t wanted = (int64_t)(ip - (uintptr_t)header);
  uint64_t low = 0, high = count;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (pairs[middle].start <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? header + pairs[low - 1].description : NULL;
}

struct description {
  struct reader common, own; /* instructions */
  uint64_t start;
  uint64_t code_factor;
  int64_t data_factor;
  bool signal;
};

static bool read_description(const uint8_t *fde, uintptr_t ip, struct description *description) {
  uint32_t size, back;
  memcpy(&size, fde, 4);
  memcpy(&back, fde + 4, 4);
  if (size == 0 || size == 0xffffffff) return false;
  const uint8_t *cie = fde + 4 - back, *text = (const uint8_t *)cie + 9;
  uint32_t cie_size;
  memcpy(&cie_size, cie, 4);
  struct reader reader = {text + strlen((const char *)text) + 1, cie + 4 + cie_size};
  description->code_factor = read_uleb(&reader);
  description->data_factor = read_sleb(&reader);
  uint64_t return_register = cie[8] == 1 ? read_fixed(&reader, 1) : read_uleb(&reader);
  if (return_register != 16) return false;
  uint8_t encoding = 0;
  description->signal = false;
  bool augmented = *text == 'z';
  if (augmented) {
    uint64_t length = read_uleb(&reader);
    struct reader data = {reader.at, reader.at + length};
    reader.at += length;
    for (text++; *text; text++) {
      if (*text == 'R') encoding = (uint8_t)read_fixed(&data, 1);
      else if (*text == 'P') read_pointer(&data, (uint8_t)(read_fixed(&data, 1) & 15));
      else if (*text == 'L') read_fixed(&data, 1);
      else if (*text == 'S') description->signal = true;
    }
  }
  description->common = reader;
  reader = (struct reader){fde + 8, fde + 4 + size};
  description->start = read_pointer(&reader, encoding);
  uint64_t length = read_pointer(&reader, encoding & 15);
  if (ip < description->start || ip >= description->start + length) return false;
  if (augmented) {
    uint64_t skip = read_uleb(&reader);
    reader.at += skip;
  }
  description->own = reader;
  return true;
}

/* -- instructions ------------------------------------------------------------------------------------------- */

enum { REGISTER_RBP = 6, REGISTER_SP = 7, REGISTER_IP = 16 };

struct row {
  struct location cfa, ip, rbp;
};

#define ROWS 8 /* most rows remembered at a time */

static struct location *saved(struct row *row, uint64_t number) {
  static __thread struct location other __attribute__((tls_model("initial-exec")));
  if (number == REGISTER_IP) return &row->ip;
  if (number == REGISTER_RBP) return &row->rbp;
  return &other;
}

static uint8_t base_of(uint64_t number) {
  return number == REGISTER_SP ? BASE_SP : number == REGISTER_RBP ? BASE_RBP : BASE_NONE;
}

/* Expressions of compilers and of the C library: register + offset, or what is stored there. */
static struct location read_expression(struct reader *from, bool value) {
  uint64_t size = read_uleb(from);
  struct reader reader = {from->at, from->at + size};
  from->at += size;
  struct location place = {0, BASE_NONE, 0};
  uint8_t operation = (uint8_t)read_fixed(&reader, 1);
  if (operation < 0x70 || operation > 0x8f) return place;
  place.base = base_of(operation - 0x70u);
  place.offset = (int32_t)read_sleb(&reader);
  place.stored = !value;
  if (reader.at < reader.end && *reader.at == 0x06 && value) {
    place.stored = 1;
    reader.at++;
  }
  if (reader.at != reader.end) place.base = BASE_NONE;
  return place;
}

/* Run the instructions up to `ip`. `initial` is the row after the common ones, to restore from. */
static bool run(const struct description *in, struct reader from, uint64_t ip, struct row *row,
                const struct row *initial) {
  struct row remembered[ROWS];
  unsigned depth = 0;
  uint64_t at = in->start, number;
  int64_t factor = in->data_factor;
  while (from.at < from.end) {
    uint8_t code = *from.at++, low = code & 63;
    switch (code & 0xc0) {
      case 0x40:
        at += low * in->code_factor;
        if (at > ip) return true;
        continue;
      case 0x80:
        *saved(row, low) = (struct location){(int32_t)((int64_t)read_uleb(&from) * factor), BASE_CFA, 1};
        continue;
      case 0xc0:
        *saved(row, low) = *saved((struct row *)initial, low);
        continue;
    }
    switch (low) {
      case 0x00: break; /* nop */
      case 0x01: return false; /* set_loc */
      case 0x02: at += read_fixed(&from, 1) * in->code_factor; break;
      case 0x03: at += read_fixed(&from, 2) * in->code_factor; break;
      case 0x04: at += read_fixed(&from, 4) * in->code_factor; break;
      case 0x05: /* offset_extended */
        number = read_uleb(&from);
        *saved(row, number) = (struct location){(int32_t)((int64_t)read_uleb(&from) * factor), BASE_CFA, 1};
        break;
      case 0x06: /* restore_extended */
        number = read_uleb(&from);
        *saved(row, number) = *saved((struct row *)initial, number);
        break;
      case 0x07: /* undefined */
      case 0x08: /* same_value */
        *saved(row, read_uleb(&from)) = (struct location){0, BASE_NONE, 0};
        break;
      case 0x09: /* register */
        number = read_uleb(&from);
        if (number == REGISTER_IP || number == REGISTER_RBP) return false;
        read_uleb(&from);
        break;
      case 0x0a: /* remember_state */
        if (depth == ROWS) return false;
        remembered[depth++] = *row;
        break;
      case 0x0b: /* restore_state */
        if (depth == 0) return false;
        *row = remembered[--depth];
        break;
      case 0x0c: /* def_cfa */
        row->cfa = (struct location){0, base_of(read_uleb(&from)), 0};
        row->cfa.offset = (int32_t)read_uleb(&from);
        break;
      case 0x0d: row->cfa.base = base_of(read_uleb(&from)); break; /* def_cfa_register */
      case 0x0e: row->cfa.offset = (int32_t)read_uleb(&from); break; /* def_cfa_offset */
      case 0x0f: row->cfa = read_expression(&from, true); break; /* def_cfa_expression */
      case 0x10: /* expression */
        number = read_uleb(&from);
        *saved(row, number) = read_expression(&from, false);
        break;
      case 0x11: /* offset_extended_sf */
        number = read_uleb(&from);
        *saved(row, number) = (struct location){(int32_t)(read_sleb(&from) * factor), BASE_CFA, 1};
        break;
      case 0x12: /* def_cfa_sf */
        row->cfa = (struct location){0, base_of(read_uleb(&from)), 0};
        row->cfa.offset = (int32_t)(read_sleb(&from) * factor);
        break;
      case 0x13: row->cfa.offset = (int32_t)(read_sleb(&from) * factor); break; /* def_cfa_offset_sf */
      case 0x14: case 0x15: /* val_offset(_sf) */
        number = read_uleb(&from);
        read_uleb(&from);
        if (number == REGISTER_IP || number == REGISTER_RBP) return false;
        break;
      case 0x16: /* val_expression */
        number = read_uleb(&from);
        if (number == REGISTER_IP || number == REGISTER_RBP) return false;
        read_expression(&from, true);
        break;
      case 0x2e: read_uleb(&from); break; /* GNU_args_size */
      default: return false;
    }
    if (at > ip) return true;
  }
  return true;
}

static struct rule make_rule(uintptr_t ip) {
  static const struct row start = {{0, BASE_NONE, 0}, {0, BASE_NONE, 0}, {0, BASE_NONE, 0}};
  struct rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa.base = rule.ip.base = rule.rbp.base = BASE_NONE;
  const uint8_t *tables = tables_of(ip), *fde = tables ? description_of(tables, ip) : NULL;
  struct description description;
  if (!fde || !read_description(fde, ip, &description)) return rule;
  struct row initial = start;
  if (!run(&description, description.common, UINT64_MAX, &initial, &start)) return rule;
  struct row row = initial;
  if (!run(&description, description.own, ip, &row, &initial)) return rule;
  if (row.cfa.base == BASE_NONE || row.ip.base == BASE_NONE || !row.ip.stored) return rule;
  rule.cfa = row.cfa;
  rule.ip = row.ip;
  rule.rbp = row.rbp;
  rule.signal = description.signal;
  rule.plain = !rule.signal && !row.cfa.stored && row.ip.base == BASE_CFA && row.ip.offset == -8 &&
               (row.rbp.base == BASE_NONE || row.rbp.base == BASE_CFA);
  return rule;
}

/* The number of the rule of a return address. */
static __attribute__((noinline)) uint32_t find_rule(uintptr_t ip) {
  struct rule rule = make_rule(ip - 1);
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

/* A caller, and where in the stack its address and its rbp were read (NULL for rbp that is as in its callee). */
struct frame {
  struct registers at;
  const uintptr_t *ip_slot, *rbp_slot;
};

/* False where `location` is outside of the stack from `low` to `high`. */
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

/* To the caller by any rule; false at the end of the stack. */
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

/* To the caller by the common kind of rule, with where its values were read; false at the end of the stack. */
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

/* To the caller by any rule; not inlined, so that the registers of the common way stay in registers. */
static __attribute__((noinline)) struct registers step_any(const struct rule *rule, struct registers now,
                                                           uintptr_t low, uintptr_t high) {
  if (!step(rule, &now, low, high)) return (struct registers){0, 0, 0};
  if (rule->signal) now.ip++; /* exact: it is looked up as one after a call */
  return now;
}

/* Walk on from `now`, which has an address; false at the end of the stack. `*usual` becomes false where what was
 * read cannot be told from the slots of the frame. */
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

/* -- what is as it was -------------------------------------------------------------------------------------- */

/* The stack that was walked last, of a thread. The outer frames are mostly the same the next time: where the walk
 * comes to a frame with the same registers, and all slots outside of it still hold what was read from them, the
 * rest is known. That is several times cheaper than to walk. */
struct memory {
  uint32_t busy;
  uint32_t count;
  const void *owner;
  struct frame frames[RECORD_FRAMES]; /* outermost first */
  uint64_t hashes[RECORD_FRAMES];     /* of the frames up to this one */
  struct frame inner[RECORD_FRAMES];  /* scratch: those not found yet, innermost first */
};

#define MEMORIES 8 /* threads share them; one that finds its own in use walks all the way */

static struct memory memories[MEMORIES];
static uint64_t powers[RECORD_FRAMES];

/* Word by word: what was just written so can be read so without waiting for it to be in memory. */
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

/* Threads may do it at once: they write the same. */
static void know_powers(void) {
  if (__atomic_load_n(&powers[RECORD_FRAMES - 1], __ATOMIC_ACQUIRE)) return;
  uint64_t power = 1;
  for (uint32_t i = 0; i < RECORD_FRAMES; i++, power *= STACK_FACTOR)
    __atomic_store_n(&powers[i], power, __ATOMIC_RELEASE);
}

/* False where the stack is too deep or has an unusual frame: then nothing is remembered. */
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
  if (count) copy_frame(&known[count - 1], &now); /* its slots may be others, or none */
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
      know_powers();
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
