#define _GNU_SOURCE
#include "table.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "output.h"

#define MAX_MODULES 256u
#define SLOTS (1u << 17)
#define MIN_ADDRESS 65536u /* Linux maps nothing below; so no member of a NULL pointer is readable */

/* A file that is mapped into the process. */
struct module {
  uint64_t start, end, bias;
  uint32_t number;
  const struct table_module *known; /* its part of the table; NULL if it has none */
};

static const struct table_header *header;
static const struct table_module *table_modules;
static const struct table_function *table_functions;
static const struct table_program *table_programs;
static const struct table_step *table_steps;
static const char *table_paths;

static struct module modules[MAX_MODULES];
static unsigned module_count;

/* The functions that have a number, in a hash table with linear probing. */
static struct numbered {
  uint64_t function;
  uint64_t entry; /* where the first hook within the function returns to: the one of the function itself */
  uint32_t id;
} numbered[SLOTS] DISCARDABLE;
_Static_assert(sizeof numbered % DISCARDABLE_UNIT == 0, "table_clear() must not discard what follows");
static unsigned numbered_count;

void table_read(void) {
  const char *path = getenv("PERUN_COMPLEXITY_TABLE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  struct stat status;
  if (file < 0) return;
  if (fstat(file, &status) == 0 && (size_t)status.st_size >= sizeof *header) {
    const struct table_header *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED && memcmp(mapped->magic, RECORD_TABLE_MAGIC, sizeof mapped->magic) == 0 &&
        mapped->byte_order == RECORD_BYTE_ORDER && mapped->version == RECORD_VERSION) {
      table_modules = (const struct table_module *)(mapped + 1);
      table_functions = (const struct table_function *)(table_modules + mapped->modules);
      table_programs = (const struct table_program *)(table_functions + mapped->functions);
      table_steps = (const struct table_step *)(table_programs + mapped->programs);
      table_paths = (const char *)(table_steps + mapped->steps);
      header = mapped;
    }
  }
  close(file);
}

void table_clear(void *array, size_t size) {
  if (madvise(array, size, MADV_DONTNEED) != 0) memset(array, 0, size);
}

void table_reset(void) {
  module_count = numbered_count = 0;
  table_clear(numbered, sizeof numbered);
}

static const struct table_module *known_module(const char *path) {
  size_t size = strlen(path);
  for (uint32_t number = 0; header && number < header->modules; number++) {
    const struct table_module *module = &table_modules[number];
    if (module->path_size == size && memcmp(table_paths + module->path, path, size) == 0) return module;
  }
  return NULL;
}

struct search {
  uint64_t address;
  struct module *found;
};

static int note_module(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  uint64_t start = UINT64_MAX, end = 0;
  for (int number = 0; number < info->dlpi_phnum; number++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[number];
    if (part->p_type != PT_LOAD) continue;
    if (info->dlpi_addr + part->p_vaddr < start) start = info->dlpi_addr + part->p_vaddr;
    if (info->dlpi_addr + part->p_vaddr + part->p_memsz > end) end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
  }
  if (search->address < start || search->address >= end) return 0;
  char path[PATH_MAX];
  if (!realpath(info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe", path)) strcpy(path, "?");
  modules[module_count] = (struct module){start, end, info->dlpi_addr, output_module(path), known_module(path)};
  search->found = &modules[module_count++];
  return 1;
}

static struct module *module_of(uint64_t address) {
  for (unsigned number = 0; number < module_count; number++)
    if (address >= modules[number].start && address < modules[number].end) return &modules[number];
  struct search search = {address, NULL};
  if (module_count < MAX_MODULES) dl_iterate_phdr(note_module, &search);
  return search.found;
}

static const struct table_function *known_function(const struct table_module *module, uint64_t address) {
  uint32_t low = module->first_function, high = low + module->functions;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (table_functions[middle].address == address) return &table_functions[middle];
    if (table_functions[middle].address < address)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

static struct numbered *number_of(uint64_t function, const struct module *module) {
  uint32_t slot = (uint32_t)((function * 0x9E3779B97F4A7C15u) >> 47) & (SLOTS - 1);
  for (; numbered[slot].function; slot = (slot + 1) & (SLOTS - 1))
    if (numbered[slot].function == function) return &numbered[slot];
  if (numbered_count >= SLOTS / 4 * 3) return NULL;
  uint32_t id = output_function(function - module->bias, module->number);
  numbered[slot] = (struct numbered){function, 0, id};
  numbered_count++;
  return &numbered[slot];
}

static const struct table_program *program_at(const struct table_module *module, uint64_t function, uint64_t place,
                                              bool is_inlined) {
  const struct table_program *program = table_programs + module->first_program;
  for (uint32_t left = module->programs; left; left--, program++)
    if (program->function == function && program->low <= place && place < program->high &&
        !(program->place & TABLE_INLINED) == !is_inlined)
      return program;
  return NULL;
}

void table_look_up(struct site *site, uint64_t function) {
  struct module *module = module_of(function), *around = module_of(site->place);
  const struct table_function *known = NULL;
  site->is_recorded = false;
  /* An inline function of a header may be emitted in another library, too, and have its address there. */
  if (!module || module != around || module->number == RECORD_NO_ID) return;
  if (module->known) known = known_function(module->known, function - module->bias);
  if (known ? !known->is_recorded : header && header->only_listed) return;
  struct numbered *number = number_of(function, module);
  if (!number) return;
  site->id = number->id;
  site->is_recorded = site->id != RECORD_NO_ID;
  site->sampling = known && known->sampling > 1 ? known->sampling : 1;
  /* The hook of the function itself is called before those of functions that are inlined in it, even where a function
   * is inlined in itself. So the first place within a function is its own entry. */
  uint64_t size = known && known->size ? known->size : 512;
  if (!number->entry && site->place - function <= size) number->entry = site->place;
  site->is_inlined = site->place != number->entry;
  if (module->known)
    site->program = program_at(module->known, function - module->bias, site->place - module->bias,
                               site->is_inlined);
}

/* -- sizes ------------------------------------------------------------------------------------------------------------ */

/* Read memory that may not be mapped, because a pointer may be uninitialized. The system call fails for such memory; a
 * page that it has read once is read directly from then on. */
static bool load(uint64_t address, int64_t width, bool with_sign, uint64_t *value, uint64_t *known) {
  if (address < MIN_ADDRESS || address >> 47) return false;
  uint64_t page = address >> 12, *slot = &known[page & (READABLE_PAGES - 1)], read = 0;
  if (*slot == page && (address & 4095) + (uint64_t)width <= 4096) {
    memcpy(&read, (const void *)(uintptr_t)address, (size_t)width);
  } else {
    struct iovec to = {&read, (size_t)width}, from = {(void *)(uintptr_t)address, (size_t)width};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != width) return false;
    *slot = page;
  }
  unsigned unused = 64 - 8 * (unsigned)width;
  *value = with_sign ? (uint64_t)((int64_t)(read << unused) >> unused) : read;
  return true;
}

static uint64_t base_of(const struct registers *registers, uint32_t number) {
  switch (number) {
    case 3:
      return registers->rbx;
    case 6:
      return registers->rbp;
    case 12:
      return registers->r12;
    case 13:
      return registers->r13;
    case 14:
      return registers->r14;
    case 15:
      return registers->r15;
    default: /* TABLE_FRAME */
      return registers->rbp + 16;
  }
}

int64_t table_size(const struct table_program *program, const struct registers *registers, uint64_t *known) {
  uint64_t stack[8] = {0}, *top = stack;
  uint64_t base = base_of(registers, program->base);
  uint32_t place = program->place & ~TABLE_INLINED;
  *top = place == TABLE_REGISTER ? base : base + (uint64_t)program->offset;
  if (place == TABLE_MEMORY && !load(*top, 8, false, top, known)) return -1;
  const struct table_step *step = table_steps + program->first_step;
  for (uint32_t left = program->steps; left; left--, step++) {
    switch ((enum table_operation)step->operation) {
      case TABLE_ADD:
        *top += (uint64_t)step->number;
        break;
      case TABLE_LOAD:
      case TABLE_LOAD_INT:
        if (!load(*top, step->number, step->operation == TABLE_LOAD_INT, top, known)) return -1;
        break;
      case TABLE_COPY:
        if (top == stack + 7) return -1;
        top[1] = top[0];
        top++;
        break;
      case TABLE_DIVIDE:
        *top = (uint64_t)((int64_t)*top / step->number);
        break;
      case TABLE_MULTIPLY:
        *top *= (uint64_t)step->number;
        break;
      case TABLE_MASK:
        *top &= (uint64_t)step->number;
        break;
      case TABLE_EXTEND:
        *top = (uint64_t)((int64_t)(*top << (64 - 8 * step->number)) >> (64 - 8 * step->number));
        break;
      case TABLE_SWAP:
      case TABLE_SUM:
        if (top == stack) return -1;
        uint64_t last = *top--;
        if (step->operation == TABLE_SWAP) {
          top[1] = top[0];
          *top++ = last;
        } else {
          *top += last;
        }
        break;
      default:
        return -1;
    }
  }
  int64_t size = (int64_t)*top;
  return size >= 0 && size < (int64_t)1 << 46 ? size : -1;
}
