#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { SAMPLE_EVERY = 100000000 /* ns */ };
static const size_t SIZES[] = {1 << 14, 1 << 16, 1 << 18};

struct header *recording;
static char file[PATH_MAX];
static atomic_uint_least64_t file_end;
static atomic_uint threads;
static uint32_t generation;
static pthread_key_t key;
static bool prepared;
static __thread struct thread *mine;

static void release(struct mapping *mapping) {
    if (mapping && --mapping->users == 0) {
        munmap(mapping->base, mapping->size);
        free(mapping);
    }
}

static uint64_t cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t runqueue_time(void) {
    char text[96];
    unsigned long long run, wait;
    int descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return UINT64_MAX;
    ssize_t size = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[size > 0 ? size : 0] = 0;
    return sscanf(text, "%llu %llu", &run, &wait) == 2 ? wait : UINT64_MAX;
}

static void sample(struct thread *thread, uint64_t time, bool ended) {
    int error = errno;
    thread->sampled = time;
    if (thread->mapping) {
        struct chunk *chunk = (struct chunk *)thread->mapping->base;
        chunk->cpu = cpu_time();
        chunk->runqueue = runqueue_time();
        chunk->sampled = time;
        if (ended && !chunk->ended)
            chunk->ended = now();
    }
    errno = error;
}

static void leave(void *state) {
    struct thread *thread = state;
    if (thread->generation == generation && recording)
        sample(thread, now(), true);
    release(thread->mapping);
    while (thread->unused) {
        struct frame *frame = thread->unused;
        thread->unused = frame->outer;
        free(frame);
    }
    free(thread);
    mine = NULL;
}

/* The parent goes on writing into the pages that both see now. */
static void in_child(void) { recording_forget(); }

static void *map(size_t size, uint64_t offset, bool reserve) {
    int descriptor = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return MAP_FAILED;
    void *base = MAP_FAILED;
    /* Without room on the disk a store into the mapping would kill the program. */
    if (!reserve || posix_fallocate(descriptor, (off_t)offset, (off_t)size) == 0)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, (off_t)offset);
    close(descriptor);
    if (base != MAP_FAILED)
        madvise(base, size, MADV_POPULATE_WRITE);
    return base;
}

static bool next_chunk(struct thread *thread) {
    int error = errno;
    size_t size = SIZES[thread->chunks < 2 ? thread->chunks : 2];
    struct mapping *mapping = calloc(1, sizeof *mapping);
    void *base = MAP_FAILED;
    if (mapping)
        base = map(size, atomic_fetch_add(&file_end, size), true);
    if (base == MAP_FAILED) {
        free(mapping);
        recording->lost_files++;
        errno = error;
        return false;
    }
    *mapping = (struct mapping){base, size, 1};
    struct chunk *chunk = base;
    chunk->size = (uint32_t)size;
    chunk->thread = thread->number;
    chunk->number = thread->chunks++;
    chunk->tid = (uint64_t)syscall(SYS_gettid);
    chunk->magic = CHUNK_MAGIC;
    release(thread->mapping);
    thread->mapping = mapping;
    thread->next = (struct slot *)(chunk + 1);
    thread->end = thread->next + (size - sizeof *chunk) / sizeof(struct slot);
    sample(thread, now(), false);
    errno = error;
    return true;
}

static struct slot *reserve(struct thread *thread) {
    if (thread->next == thread->end && !next_chunk(thread)) {
        recording->lost++;
        return NULL;
    }
    return thread->next++;
}

/* The start is written last: a slot without is none. */
static void fill(struct slot *slot, uint64_t start, uint16_t api, uint32_t object) {
    slot->api = api;
    slot->object = object;
    atomic_signal_fence(memory_order_release);
    slot->start = start;
}

int recording_open(const char *path, int64_t read, int64_t written) {
    if (strlen(path) >= sizeof file)
        return ENAMETOOLONG;
    if (!prepared) {
        int error = pthread_key_create(&key, leave);
        if (error || (error = pthread_atfork(NULL, NULL, in_child)))
            return error;
        prepared = true;
    }
    recording_forget();
    strcpy(file, path);
    int descriptor = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0)
        return errno;
    int error = posix_fallocate(descriptor, 0, HEADER_SIZE);
    close(descriptor);
    if (error)
        return error;
    struct header *header = map(HEADER_SIZE, 0, false);
    if (header == MAP_FAILED)
        return errno;
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    header->started = now();
    header->clock = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)header->started;
    header->pid = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    header->read = read;
    header->written = written;
    header->read_end = header->written_end = -1;
    header->version = VERSION;
    memcpy(header->magic, MAGIC, sizeof header->magic);
    file_end = HEADER_SIZE;
    threads = 0;
    recording = header;
    return 0;
}

void recording_forget(void) {
    if (recording)
        munmap(recording, HEADER_SIZE);
    recording = NULL;
    generation++;
}

void recording_close(int64_t read, int64_t written) {
    struct thread *thread = mine;
    if (!recording)
        return;
    if (thread && thread->generation == generation)
        sample(thread, now(), false);
    recording->read_end = read;
    recording->written_end = written;
    recording->ended = now();
}

void thread_ends(void) {
    struct thread *thread = this_thread();
    if (thread)
        sample(thread, now(), true);
}

struct thread *this_thread(void) {
    struct thread *thread = mine;
    if (thread && thread->generation == generation)
        return thread;
    if (!recording)
        return NULL;
    if (!thread && !(thread = calloc(1, sizeof *thread)))
        return NULL;
    release(thread->mapping);
    *thread = (struct thread){
        .generation = generation, .number = atomic_fetch_add(&threads, 1), .unused = thread->unused};
    mine = thread;
    pthread_setspecific(key, thread);
    return thread;
}

struct frame *begin(struct thread *thread, uint16_t api, uint32_t object) {
    struct frame *frame = thread->unused;
    if (frame)
        thread->unused = frame->outer;
    else if (!(frame = malloc(sizeof *frame)))
        return NULL;
    *frame = (struct frame){.outer = thread->top, .object = object, .generation = thread->generation};
    if (thread->top)
        thread->top->inner = frame;
    frame->slot = reserve(thread);
    if (frame->slot) {
        frame->mapping = thread->mapping;
        frame->mapping->users++;
    }
    thread->top = frame;
    frame->start = now();
    if (frame->slot)
        fill(frame->slot, frame->start, api, object);
    return frame;
}

void drop(struct frame *frame) { free(frame); }

void finish(struct thread *thread, struct frame *frame, uint64_t end, uint16_t api, uint32_t object, int64_t amount,
            uint16_t flags) {
    if (frame->inner)
        frame->inner->outer = frame->outer;
    else
        thread->top = frame->outer;
    if (frame->outer)
        frame->outer->inner = frame->inner;
    struct slot *slot = frame->slot;
    if (slot && !api) {
        slot->start = 0;
        if (slot + 1 == thread->next)
            thread->next = slot;
        else
            fill(slot, frame->start, 0, 0); /* calls that it made are behind it: 0 is no call */
    } else if (slot) {
        slot->amount = amount;
        slot->flags = flags;
        slot->api = api;
        slot->object = object;
        atomic_signal_fence(memory_order_release);
        slot->end = end;
    }
    release(frame->mapping);
    if (frame->physical && api)
        event(thread, frame->start, frame->start, NOTE_PHYSICAL, 0, object, frame->physical);
    if (end - thread->sampled > SAMPLE_EVERY && end > thread->sampled)
        sample(thread, end, false);
    frame->outer = thread->unused;
    thread->unused = frame;
}

void event(struct thread *thread, uint64_t start, uint64_t end, uint16_t api, uint16_t flags, uint32_t object,
           int64_t amount) {
    struct slot *slot = reserve(thread);
    if (!slot)
        return;
    slot->end = end;
    slot->flags = flags;
    slot->amount = amount;
    fill(slot, start, api, object);
}

void event_text(struct thread *thread, uint64_t start, uint16_t api, uint32_t object, const char *text, size_t size) {
    size_t slots = (size + sizeof(struct slot) - 1) / sizeof(struct slot);
    size_t room = (SIZES[0] - sizeof(struct chunk)) / sizeof(struct slot) - 1;
    if (slots > room) {
        slots = room;
        size = room * sizeof(struct slot);
    }
    if ((size_t)(thread->end - thread->next) < slots + 1 && !next_chunk(thread)) {
        recording->lost++;
        return;
    }
    struct slot *slot = thread->next;
    memcpy(slot + 1, text, size);
    slot->end = start;
    slot->amount = (int64_t)size;
    fill(slot, start, api, object);
    thread->next += slots + 1;
}
