/* Follows the mappings of each process, by the records of the kernel. */
#define _GNU_SOURCE
#include "spaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

enum { BUCKETS = 1 << 10, ID = 24 };

static struct known {
    struct module module;
    uint32_t pid, id_size;
    uint8_t id[ID];
    struct known *next;
} *modules[BUCKETS];

static struct space {
    uint32_t pid, threads;
    struct mapping *mappings; /* by address, none overlaps another */
    size_t count, room;
    struct space *next;
} *spaces[BUCKETS];

static struct space **place_of(uint32_t pid) {
    struct space **place = &spaces[pid % BUCKETS];
    while (*place && (*place)->pid != pid)
        place = &(*place)->next;
    return place;
}

static struct space *space_of(uint32_t pid) {
    struct space **place = place_of(pid);
    if (!*place && (*place = calloc(1, sizeof(**place)))) {
        (*place)->pid = pid;
        (*place)->threads = 1;
    }
    return *place;
}

static int is_private(const char *path) {
    return (path[0] != '/' && strcmp(path, "[vdso]")) || !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) ||
           !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/SYSV", 5);
}

static struct module *module_of(uint32_t pid, const char *path, const uint8_t *id, uint32_t id_size) {
    static const uint8_t none[ID];
    int private = is_private(path);
    uint32_t hash = pid = private ? pid : 0;
    path = private ? "//anon" : path;
    id = private ? none : id;
    id_size = private || id_size > ID ? 0 : id_size;
    for (const char *letter = path; *letter; letter++)
        hash = hash * 31 + (uint8_t)*letter;
    struct known **place = &modules[hash % BUCKETS];
    for (; *place; place = &(*place)->next)
        if ((*place)->pid == pid && (*place)->id_size == id_size && !strcmp((*place)->module.path, path) &&
            !memcmp((*place)->id, id, ID))
            return &(*place)->module;
    struct known *known = calloc(1, sizeof(*known));
    if (!known || !(known->module.path = strdup(path)))
        return NULL;
    known->pid = pid;
    known->id_size = id_size;
    memcpy(known->id, id, ID);
    known->module.is_private = private;
    known->module.number = output_module(pid, id, id_size, path);
    *place = known;
    return &known->module;
}

static void insert(struct space *space, size_t at, struct mapping mapping) {
    if (space->count == space->room) {
        size_t room = space->room ? space->room * 2 : 32;
        struct mapping *more = realloc(space->mappings, room * sizeof(*more));
        if (!more)
            return;
        space->mappings = more;
        space->room = room;
    }
    memmove(space->mappings + at + 1, space->mappings + at, (space->count - at) * sizeof(mapping));
    space->mappings[at] = mapping;
    space->count++;
}

void space_map(uint32_t pid, uint64_t start, uint64_t size, uint64_t offset, const char *path, const uint8_t *id,
               uint32_t id_size) {
    struct space *space = space_of(pid);
    struct module *module = module_of(pid, path, id, id_size);
    uint64_t end = start + size;
    size_t at = 0;
    if (!space || !module || end <= start)
        return;
    while (at < space->count && space->mappings[at].end <= start)
        at++;
    /* What it covers of others is no longer there. */
    while (at < space->count && space->mappings[at].start < end) {
        struct mapping old = space->mappings[at];
        if (old.module == module && module->is_private) { /* code that is made piece by piece */
            start = old.start < start ? old.start : start;
            end = old.end > end ? old.end : end;
        }
        memmove(space->mappings + at, space->mappings + at + 1, (--space->count - at) * sizeof(old));
        if (old.end > end)
            insert(space, at, (struct mapping){end, old.end, old.offset + (end - old.start), old.module});
        if (old.start < start)
            insert(space, at++, (struct mapping){old.start, start, old.offset, old.module});
        if (old.end > end)
            break;
    }
    insert(space, at, (struct mapping){start, end, module->is_private ? start : offset, module});
}

void space_fork(uint32_t pid, uint32_t parent) {
    const struct space *from = *place_of(parent);
    struct space *space = space_of(pid);
    if (!space || space == from)
        return;
    space->count = 0;
    space->threads = 1;
    for (size_t i = 0; from && i < from->count; i++)
        insert(space, i, from->mappings[i]);
}

void space_thread(uint32_t pid) {
    struct space *space = space_of(pid);
    if (space)
        space->threads++;
}

void space_exec(uint32_t pid) {
    struct space *space = space_of(pid);
    if (space) {
        space->count = 0;
        space->threads = 1;
    }
}

void space_exit(uint32_t pid) {
    struct space **place = place_of(pid), *space = *place;
    if (!space || (space->threads && --space->threads))
        return;
    *place = space->next;
    free(space->mappings);
    free(space);
}

const struct mapping *space_find(uint32_t pid, uint64_t address) {
    const struct space *space = *place_of(pid);
    size_t low = 0, high = space ? space->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return space && low < space->count && space->mappings[low].start <= address ? &space->mappings[low] : NULL;
}

void space_each(void (*act)(uint32_t pid)) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct space *space = spaces[i], *next; space; space = next) {
            next = space->next;
            act(space->pid);
        }
}

struct image *module_image(struct module *module) {
    if (!module->is_opened && !module->is_private)
        module->image = strcmp(module->path, "[vdso]") ? image_open(module->path) : image_of_vdso();
    module->is_opened = 1;
    return module->image;
}

void space_read(uint32_t pid) {
    char path[4096 + 128], name[4096];
    unsigned long long start, end, offset, inode;
    unsigned major, minor;
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(path, sizeof(path), file)) {
        uint8_t id[ID] = {0};
        char rights[8];
        name[0] = 0;
        if (sscanf(path, "%llx-%llx %7s %llx %x:%x %llu %4095[^\n]", &start, &end, rights, &offset, &major, &minor, &inode,
                   name) < 7 ||
            rights[2] != 'x')
            continue;
        memcpy(id, &inode, sizeof(inode));
        space_map(pid, start, end - start, offset, name[0] ? name : "//anon", id, 0);
    }
    if (file)
        fclose(file);
}
