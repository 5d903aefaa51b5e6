/* Writes what threads record into a file that is mapped, so that nothing is lost when the process is killed.
 *
 * A thread writes into its own chunk of the file without any lock. The file is open only while a chunk is made: the
 * program sees the file descriptors that it would have without a recorder. */
#ifndef PERUN_ISLAND_RECORDER_H
#define PERUN_ISLAND_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "layout.h"

struct mapping {
    char *base;
    size_t size;
    unsigned users; /* the thread, and the calls that have a slot in it and have not returned */
};

/* A call that has not returned. It does not lie on the stack, as there are programs that exchange that of a thread. */
struct frame {
    struct frame *outer, *inner;
    struct slot *slot; /* NULL: lost */
    struct mapping *mapping;
    uint64_t start;
    int64_t physical; /* bytes exchanged with the system */
    int64_t nested;   /* amounts of calls on the same object that this call made */
    uint32_t object;
    uint32_t generation;
    int absorbing; /* depth of calls that count for this one */
};

struct thread {
    struct mapping *mapping;
    struct slot *next, *end;
    struct frame *top;
    struct frame *unused; /* linked by `outer` */
    uint64_t sampled;
    uint32_t number;
    uint32_t chunks;
    uint32_t generation; /* of the recording that this state belongs to */
    uint32_t island;
    uint32_t ignoring; /* inside of the recorder's own work */
};

extern struct header *recording; /* NULL: nothing is recorded */

static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Start a recording in a new file; answers 0, or the number of the error. */
int recording_open(const char *path, int64_t read, int64_t written);
/* The process ends: what is known of this thread and of the process goes to the file. What the interpreter still does,
 * as flushing files, is recorded. */
void recording_close(int64_t read, int64_t written);
/* Nothing is recorded any more; mappings of threads stay until these end. */
void recording_forget(void);

/* The state of this thread, NULL where nothing is recorded. */
struct thread *this_thread(void);
/* Record that a call begins; NULL where there is no memory. */
struct frame *begin(struct thread *thread, uint16_t api, uint32_t object);
/* The call is not recorded any further, as the process is a copy, or another recording began. */
void drop(struct frame *frame);
/* Complete the record; `api` 0 drops it where it is the last one. */
void finish(struct thread *thread, struct frame *frame, uint64_t end, uint16_t api, uint32_t object, int64_t amount,
            uint16_t flags);
/* Write a whole record. */
void event(struct thread *thread, uint64_t start, uint64_t end, uint16_t api, uint16_t flags, uint32_t object,
           int64_t amount);
/* This thread is about to end. */
void thread_ends(void);
/* A record with text behind it. */
void event_text(struct thread *thread, uint64_t start, uint16_t api, uint32_t object, const char *text, size_t size);

#endif
