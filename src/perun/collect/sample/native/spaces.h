/* What code lies where in the processes. */
#ifndef PERUN_SAMPLE_SPACES_H
#define PERUN_SAMPLE_SPACES_H

#include <stdint.h>

#include "unwind.h"

struct module {
    uint32_t number; /* in the file of samples */
    int is_private;  /* code that a process made: its places are addresses */
    struct image *image;
    int is_opened;
    char *path;
};

struct mapping {
    uint64_t start, end, offset;
    struct module *module;
};

/* A file, or other code, is mapped from an address on.
 * `id` is what tells builds apart: a build id of `id_size` bytes, or with `id_size` 0 any 24 bytes. */
void space_map(uint32_t pid, uint64_t start, uint64_t size, uint64_t offset, const char *path, const uint8_t *id,
               uint32_t id_size);
void space_fork(uint32_t pid, uint32_t parent);
void space_thread(uint32_t pid);
void space_exec(uint32_t pid);
void space_exit(uint32_t pid);
/* What lies at an address; NULL where that is not known. */
const struct mapping *space_find(uint32_t pid, uint64_t address);
/* Do something for each process. */
void space_each(void (*act)(uint32_t pid));
/* The tables of a module; NULL where it has none. */
struct image *module_image(struct module *module);
/* Read what a running process has mapped. */
void space_read(uint32_t pid);

#endif
