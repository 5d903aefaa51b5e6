/* The layout of a recording in memory and on disk. `perun/island/layout.py` says the same to those who read it. */
#ifndef PERUN_ISLAND_LAYOUT_H
#define PERUN_ISLAND_LAYOUT_H

#include <stdint.h>

#define MAGIC "PERUNISL"
#define CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define VERSION 1
#define HEADER_SIZE 4096

struct header {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint32_t parent;
    uint32_t lost_files; /* chunks that could not be made */
    uint64_t started;    /* ns, CLOCK_MONOTONIC */
    int64_t clock;       /* ns to add for CLOCK_REALTIME */
    uint64_t ended;      /* 0: killed, or replaced by another program */
    uint64_t lost;       /* calls without a record, as the disk was full */
    int64_t read, written;         /* rchar and wchar of /proc/self/io when recording began */
    int64_t read_end, written_end; /* and when it ended; -1 before */
};

struct chunk {
    uint32_t magic;
    uint32_t size;     /* bytes, with this header */
    uint32_t thread;   /* number of the thread in this process */
    uint32_t number;   /* of this chunk in the thread */
    uint64_t tid;      /* of the system */
    uint64_t sampled;  /* when the next two were read */
    uint64_t cpu;      /* ns that the thread ran */
    uint64_t runqueue; /* ns that it was ready and had no CPU; all bits: not known */
    uint64_t ended;    /* when the thread ended; 0 before */
    uint64_t unused;
};

struct slot {
    uint64_t start; /* 0: no slot yet */
    uint64_t end;   /* 0: the call has not returned */
    int64_t amount;
    uint16_t api;
    uint16_t flags;
    uint32_t object;
};

enum { RAISED = 1, PHYSICAL = 2, CONCURRENT = 4 };

enum {
    NOTE_PHYSICAL = 0xff00,
    NOTE_EXPECTED = 0xff01,
    NOTE_ARRIVED = 0xff02,
    NOTE_OBJECT = 0xff10,
    NOTE_CLOSED = 0xff11,
    NOTE_THREAD = 0xff12,
    NOTE_ISLAND = 0xff13,
    NOTE_ENTERED = 0xff14,
};

#endif
