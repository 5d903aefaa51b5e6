#define _GNU_SOURCE
#include "rules.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__) && defined(__LP64__)

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

/* Finding the header of the tables (.eh_frame_hdr) of the code at `ip`. */
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

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 and newer; much faster than dl_iterate_phdr, and takes no lock */
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

/* The description (FDE, frame description entry) of the code at `ip`: the last one in the sorted table that starts at or
 * before it. */
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

#define ROWS 8 /* most rows that remember_state keeps at a time */

static struct location *saved(struct row *row, uint64_t number) {
  static __thread struct location other __attribute__((tls_model("initial-exec")));
  if (number == REGISTER_IP) return &row->ip;
  if (number == REGISTER_RBP) return &row->rbp;
  return &other;
}

static uint8_t base_of(uint64_t number) {
  return number == REGISTER_SP ? BASE_SP : number == REGISTER_RBP ? BASE_RBP : BASE_NONE;
}

/* The only expressions that compilers and the C library write: register + offset, or the word stored there. */
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

/* Run the instructions up to `ip`, which change `row`; false for one that is not supported. `initial` is the row after
 * the common instructions, from which `restore` takes values. */
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

void rule_make(uintptr_t ip, struct rule *rule) {
  static const struct row start = {{0, BASE_NONE, 0}, {0, BASE_NONE, 0}, {0, BASE_NONE, 0}};
  memset(rule, 0, sizeof *rule); /* the padding, too */
  rule->cfa.base = rule->ip.base = rule->rbp.base = BASE_NONE;
  const uint8_t *tables = tables_of(ip), *fde = tables ? description_of(tables, ip) : NULL;
  struct description description;
  if (!fde || !read_description(fde, ip, &description)) return;
  struct row initial = start;
  if (!run(&description, description.common, UINT64_MAX, &initial, &start)) return;
  struct row row = initial;
  if (!run(&description, description.own, ip, &row, &initial)) return;
  if (row.cfa.base == BASE_NONE || row.ip.base == BASE_NONE || !row.ip.stored) return;
  rule->cfa = row.cfa;
  rule->ip = row.ip;
  rule->rbp = row.rbp;
  rule->signal = description.signal;
  rule->plain = !rule->signal && !row.cfa.stored && row.ip.base == BASE_CFA && row.ip.offset == -8 &&
                (row.rbp.base == BASE_NONE || row.rbp.base == BASE_CFA);
}

#endif
