/* Buffers what is recorded and writes it in blocks. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, SAMPLES = 1 << 12, KNOWN = 1 << 17 };

struct record_header header;
static int file = -1;
static off_t end;
static uint8_t definitions[BUFFER];
static size_t used;
static struct record_sample samples[SAMPLES], waits[SAMPLES];
static size_t pending, waiting;
static uint32_t modules = MODULE_PYTHON, stacks, functions;
static struct known {
    uint64_t hash;
    uint32_t number;
} known[KNOWN];
static size_t entries;
static struct function {
    uint32_t number;
    struct function *next;
    char names[];
} *known_functions[1 << 12];

int output_open(const char *path) {
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return 0;
    memcpy(header.magic, RECORD_MAGIC, sizeof(header.magic));
    header.byte_order = RECORD_BYTE_ORDER;
    header.version = RECORD_VERSION;
    end = sizeof(header);
    return pwrite(file, &header, sizeof(header), 0) == sizeof(header);
}

/* All of it, or nothing: a block that is cut off is taken back. */
static int write_block(uint32_t kind, const void *data, size_t size) {
    struct record_block block = {kind, (uint32_t)size};
    if (header.error)
        return 0;
    ssize_t written = pwrite(file, &block, sizeof(block), end);
    if (written == sizeof(block))
        written = pwrite(file, data, size, end + (off_t)sizeof(block));
    if (written == (ssize_t)size) {
        end += (off_t)(sizeof(block) + size);
        return 1;
    }
    header.error = (uint32_t)(written < 0 ? errno : ENOSPC);
    if (ftruncate(file, end)) {
        /* the reader passes over a block that is cut off */
    }
    return 0;
}

void output_flush(void) {
    if (used)
        write_block(BLOCK_DEFINITIONS, definitions, used);
    used = 0;
    if (pending && !write_block(BLOCK_SAMPLES, samples, pending * sizeof(*samples)))
        header.unwritten += pending;
    pending = 0;
    if (waiting)
        write_block(BLOCK_WAITS, waits, waiting * sizeof(*waits));
    waiting = 0;
    if (pwrite(file, &header, sizeof(header), 0) < 0 && !header.error)
        header.error = (uint32_t)errno;
}

static void *define(size_t size) {
    size = (size + 7) & ~(size_t)7;
    if (used + size > sizeof(definitions))
        output_flush();
    uint8_t *place = definitions + used;
    memset(place, 0, size);
    ((uint32_t *)place)[1] = (uint32_t)size;
    used += size;
    return place;
}

uint32_t output_module(uint32_t pid, const uint8_t *id, uint32_t id_size, const char *path) {
    if (modules >= MAX_MODULES)
        return MODULE_UNKNOWN;
    struct record_module *module = define(sizeof(*module) + strlen(path) + 1);
    module->kind = RECORD_MODULE;
    module->pid = pid;
    module->id_size = id_size < sizeof(module->id) ? id_size : sizeof(module->id);
    memcpy(module->id, id, module->id_size);
    memcpy(module->path, path, strlen(path) + 1);
    return ++modules;
}

uint32_t output_function(const char *name, const char *source) {
    size_t first = strlen(name) + 1, size = first + strlen(source) + 1;
    uint32_t hash = 0;
    for (const char *text = name; *text; text++)
        hash = hash * 31 + (uint8_t)*text;
    struct function **place = &known_functions[hash % (1 << 12)];
    for (; *place; place = &(*place)->next)
        if (!strcmp((*place)->names, name) && !strcmp((*place)->names + first, source))
            return (*place)->number;
    struct record_function *record = define(sizeof(*record) + size);
    record->kind = RECORD_FUNCTION;
    memcpy(record->names, name, first);
    memcpy(record->names + first, source, size - first);
    if ((*place = calloc(1, sizeof(**place) + size))) {
        (*place)->number = functions + 1;
        memcpy((*place)->names, record->names, size);
    }
    return ++functions;
}

void output_refusal(enum record_refusal why, const char *path) {
    struct record_refused *record = define(sizeof(*record) + strlen(path) + 1);
    record->kind = RECORD_REFUSAL;
    record->why = why;
    memcpy(record->path, path, strlen(path) + 1);
}

static uint64_t hash_of(const uint64_t *frames, size_t count, uint64_t flags) {
    uint64_t hash = 0x9e3779b97f4a7c15u ^ flags ^ (uint64_t)count << 32;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ frames[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

/* Two stacks of one hash of 64 bits are taken as one. When the table is full all are defined anew. */
uint32_t output_stack(const uint64_t *frames, size_t count, uint64_t flags) {
    uint64_t hash = hash_of(frames, count, flags);
    size_t at = hash % KNOWN;
    while (known[at].hash && known[at].hash != hash)
        at = (at + 1) % KNOWN;
    if (known[at].hash)
        return known[at].number;
    if (entries >= KNOWN / 4 * 3) {
        memset(known, 0, sizeof(known));
        entries = 0;
        at = hash % KNOWN;
    }
    struct record_stack *stack = define(sizeof(*stack) + count * sizeof(*frames));
    stack->kind = RECORD_STACK;
    stack->flags = flags;
    memcpy(stack->frames, frames, count * sizeof(*frames));
    known[at] = (struct known){hash, ++stacks};
    entries++;
    return stacks;
}

void output_task(uint32_t kind, uint64_t time, uint32_t pid, uint32_t tid, uint32_t parent, const char *name) {
    struct record_task *task = define(sizeof(*task));
    task->kind = kind;
    task->time = time;
    task->pid = pid;
    task->tid = tid;
    task->parent = parent;
    strncpy(task->name, name, sizeof(task->name) - 1);
}

void output_sample(const struct record_sample *sample) {
    if (pending == SAMPLES)
        output_flush();
    samples[pending++] = *sample;
    header.samples++;
}

void output_wait(const struct record_sample *sample) {
    if (waiting == SAMPLES)
        output_flush();
    waits[waiting++] = *sample;
}
