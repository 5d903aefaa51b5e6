/* The binary format of recorded allocations, which this file owns.
 *
 * A recorded process writes two files, FILE and FILE.tail, both in the byte order of the machine, which their headers
 * tell. FILE is a `struct record_header`, and then chunks, each a `struct record_chunk` and its `packed` bytes. The events
 * that are not packed yet are in FILE.tail, which the process has mapped: so they survive every end of the process,
 * SIGKILL included.
 *
 * How to read them: Read the chunks of FILE in order; a kill or a full disk may truncate the last one, which is then
 * ignored. FILE.tail has two halves, each with the definitions and events of one chunk, `half.chunk`. A half whose chunk
 * is complete in FILE has nothing new. Otherwise its events follow the last complete chunk: first those of the half with
 * the lower chunk, then those of the other one; only events with the mark of the chunk count. Both halves count if the
 * process was killed while it packed one and filled the other. With `error` set, a half whose chunk does not follow the
 * one before is ignored, because the chunk in between is lost. The order of events is their order in the files.
 *
 * A process that forks continues in its two files; its child has its own files, or none.
 */
#ifndef PERUN_MEMORY_RECORD_H
#define PERUN_MEMORY_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC "PERUNMEM"
#define RECORD_TAIL_MAGIC "PERUNTAI"
#define RECORD_CHUNK_MAGIC "PMCK"
#define RECORD_VERSION 2
#define RECORD_WHOLE ".whole" /* FILE.whole is removed where a process that should be recorded gets no files */
#define RECORD_BYTE_ORDER 0x01020304u

/* -- events ------------------------------------------------------------------------------------------------- */

/* The kinds of events. Those from RECORD_FREE on release memory and have no amount. */
enum record_kind {
  RECORD_MALLOC = 1,
  RECORD_CALLOC = 2,
  RECORD_REALLOC = 3, /* the memory that realloc returned; RECORD_REALLOC_RELEASE comes before it */
  RECORD_REALLOCARRAY = 4,
  RECORD_MEMALIGN = 5,
  RECORD_POSIX_MEMALIGN = 6,
  RECORD_ALIGNED_ALLOC = 7,
  RECORD_VALLOC = 8,
  RECORD_PVALLOC = 9,
  RECORD_NEW = 10, /* every form of operator new: plain, aligned, nothrow */
  RECORD_NEW_ARRAY = 11,

  RECORD_FREE = 32,
  RECORD_DELETE = 33, /* every form of operator delete: plain, sized, aligned, nothrow */
  RECORD_DELETE_ARRAY = 34,
  RECORD_REALLOC_RELEASE = 35, /* the old memory of realloc or reallocarray; always before the RECORD_REALLOC(ARRAY)
                                  of the same thread and stack */
  RECORD_REALLOC_FAILED = 36,  /* the resize failed: the RECORD_REALLOC_RELEASE of this address did not happen, and
                                  its memory is still live (amount 0 here) */
};

/* One event, 32 bytes. Failed allocations and releases of NULL are no events. An allocation at a live address replaces
 * the old one, whose release was not recorded (see `skipped`). */
struct record_event {
  uint64_t address;
  uint64_t amount; /* bytes that the program requested; 0 for a release */
  uint64_t ticks;  /* see `struct record_chunk` for the conversion; in a tail, a decrease counts as no change */
  uint32_t stack;  /* id of a stack defined before, 0 for none */
  uint16_t thread; /* index of a thread defined before; 65535 for all threads after the first 65535 */
  uint8_t kind;    /* enum record_kind */
  uint8_t mark;    /* written last: RECORD_MARK of the chunk; in a tail, others do not belong to the chunk */
};

#define RECORD_MARK(chunk) (0x80u | ((chunk) & 0x7fu))
#define RECORD_NO_CHUNK 0xffffffffu

/* -- definitions -------------------------------------------------------------------------------------------- */

/* Definitions are 64-bit words. The first word of one:
 *   bits 0-31   index of the thread, or the number of bytes of the path; 0 for a stack, whose id is its number among
 *               all stacks of the recording, from 1 on
 *   bits 32-46  shared frames of a stack, else 0
 *   bit 47      set for a stack with more frames than those given (it is deeper than RECORD_FRAMES)
 *   bits 48-59  number of words that follow
 *   bits 60-63  enum record_definition
 * They precede the events of their chunk and of later chunks that use them, in the order of time.
 *
 * A stack is return addresses, outermost first; look up address - 1, also at a signal. Its first `shared` addresses are
 * those of the previous stack in the same chunk, the words that follow are the others. The innermost address is in the
 * caller of the allocator. A stack may be defined again under another id. Its addresses are in the modules as they are
 * defined at that point.
 *
 * A thread is its id in the kernel (gettid).
 *
 * A module is executable memory: start, end, offset in the file, and the path, padded with zero bytes. The path is empty
 * for code made at run time. A module replaces earlier ones that it overlaps.
 */
enum record_definition { RECORD_STACK = 1, RECORD_THREAD = 2, RECORD_MODULE = 3 };

#define RECORD_FRAMES 1024 /* most frames of a stack */

/* -- the file ----------------------------------------------------------------------------------------------- */

enum record_unwinder {
  RECORD_UNWIND_NONE = 0,          /* no stacks */
  RECORD_UNWIND_FRAME_POINTER = 1, /* stacks end, or lack a caller, at code without frame pointers */
  RECORD_UNWIND_LIBUNWIND = 2,
  RECORD_UNWIND_TABLES = 3, /* the unwind tables (.eh_frame), read by the recorder itself */
};

struct record_header { /* 128 bytes */
  char magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint32_t header_size; /* chunks start here */
  uint32_t pid;
  uint32_t parent;         /* pid of the process that started this one */
  uint32_t unwinder;       /* the enum record_unwinder in use */
  uint32_t wanted;         /* the requested enum record_unwinder; differs if that is not possible */
  uint32_t tick_shift;     /* number of low bits that the ticks of events in chunks lack */
  uint64_t ticks;          /* at the start, read at the same moment as: */
  uint64_t monotonic;      /* CLOCK_MONOTONIC, ns */
  uint64_t realtime;       /* CLOCK_REALTIME, ns since 1970 */
  uint32_t pointer_size;   /* 8 */
  uint32_t page_size;
  uint64_t reserved[7];
};

enum record_chunk_kind {
  RECORD_EVENTS = 1,
  RECORD_TEXT = 2, /* unpacks to UTF-8 lines `name value`: exe PATH, arg ARGUMENT (each), note TEXT (for the user) */
  RECORD_REACH = 3, /* how blocks can be reached at the end; only with PERUN_MEMORY_REACHABLE */
};

/* How a block can be reached at the end, in the terms of valgrind's memcheck; a larger value wins. */
enum record_reach {
  RECORD_LOST = 0,
  RECORD_INDIRECTLY_LOST = 1, /* another lost block refers to it */
  RECORD_POSSIBLY_LOST = 2,   /* pointers refer to its inside only, or are in possibly lost blocks */
  RECORD_REACHABLE = 3,
};

/* A chunk RECORD_REACH has `events` blocks, ordered by address, as values of width[0] bytes: the difference to the address
 * before (the first: to 0), shifted left by 2, and in the low bits the enum record_reach. `sites` is the number of threads
 * whose registers are unknown. `fresh` is 1 if the search was not completed, and then there are no blocks. */

/* A chunk. Its packed bytes are one raw deflate stream (zlib: wbits -15) of `unpacked` bytes. Those of a chunk
 * RECORD_EVENTS are, one after the other:
 *
 *   first words  those of the `definitions` definitions, as values of 8 bytes
 *   other words  the `words` - `definitions` others, 8 bytes each
 *   site kinds   `sites` bytes: enum record_kind
 *   site stacks  `sites` values of width[0] bytes: stack id. A site is a pair of kind and stack.
 *   event sites  `events` values of width[1]: index of the site of each event
 *   amounts      `amounts` values of width[2]: those of events that allocate, ordered by site, within a site by
 *                event
 *   back         `events` values of width[3], first those of events that allocate, then those of releases: d > 0
 *                where the address is that of the event d places before it, 0 where it is fresh
 *   fresh        `fresh` values of width[4] in the same order: address - fresh address before it (the first: - 0),
 *                modulo 2^64, shifted right by `address_shift`, as zigzag (2 n, or -2 n - 1 for n < 0)
 *   threads      `events` values of width[5]: thread - `thread`
 *   times        `events` values of width[6]: (ticks >> tick_shift) - that of the event before; for the first
 *                - (`first_ticks` >> tick_shift)
 *
 * Values of width w are in w planes of bytes: the lowest byte of all values, then the next byte of all, and so on
 * (whatever the byte order of the machine). Width 0: all are 0. Widths are at most 8.
 *
 * `ticks` and `monotonic` are read at the same moment, when the chunk is written and after all its events. Between these
 * moments, those of the header, of all chunks and of the tail, time is linear in ticks.
 */
struct record_chunk { /* 96 bytes */
  char magic[4];
  uint32_t crc; /* CRC-32 (zlib.crc32) of all bytes of the chunk from `kind` to the end of the packed ones */
  uint32_t kind;
  uint32_t number; /* 0, 1, 2, ... for RECORD_EVENTS; 0 for other kinds */
  uint32_t packed;
  uint32_t unpacked;
  uint32_t words;
  uint32_t events;
  uint32_t sites;
  uint32_t amounts;
  uint32_t fresh;
  uint32_t thread;
  uint64_t first_ticks;
  uint64_t ticks;
  uint64_t monotonic;
  uint8_t width[7];
  uint8_t address_shift;
  uint32_t definitions;
  uint32_t reserved[3];
};

/* -- the tail ----------------------------------------------------------------------------------------------- */

enum record_state {
  RECORD_RUNNING = 0, /* it was killed, executed another program, or ended by a direct system call: no event is missing,
                         but only its parent knows which of these it was */
  RECORD_EXITED = 1,      /* by exit or return from main; destructors of other libraries may run later */
  RECORD_QUICK_EXITED = 2, /* by _exit, _Exit or quick_exit */
};

/* A half of the tail has the definitions and events of one chunk: while one half is packed, threads write to the other.
 * Its events are those with the mark of its chunk; there may be gaps between them, because threads write concurrently. */
struct record_half {
  uint32_t chunk; /* the number that its chunk will have; RECORD_NO_CHUNK before the first use */
  uint32_t words;
  uint32_t words_offset;
  uint32_t events_offset;
};

/* FILE.tail: this header, `words_capacity` 64-bit words for each half, and `events_capacity` events for each half. Its
 * whole size is reserved at the start; it is shortened when the process exits. */
struct record_tail { /* 128 bytes */
  char magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint32_t pid;
  uint32_t state; /* enum record_state */
  uint32_t error; /* errno of the failed write that ended the recording, or RECORD_CONFINED; 0 for none */
  uint32_t words_capacity;
  uint32_t events_capacity;
  uint32_t reserved;
  struct record_half half[2];
  uint64_t skipped; /* number of missing events: of signal handlers that interrupted the recorder, or jumped out of it */
  uint64_t lost;    /* number of missing events after `error` */
  uint64_t ticks;   /* at the last chunk or at the end, read at the same moment as: */
  uint64_t monotonic;
  uint64_t more_reserved[3];
};

_Static_assert(sizeof(struct record_event) == 32, "format");
_Static_assert(sizeof(struct record_header) == 128, "format");
_Static_assert(sizeof(struct record_chunk) == 96, "format");
_Static_assert(sizeof(struct record_tail) == 128, "format");

/* -- the environment of the recorder ------------------------------------------------------------------------ */

/* LD_PRELOAD has the library as its first entry. The settings:
 *
 * PERUN_MEMORY_FILE      absolute path of FILE. The first process that gets it makes the file, which must not exist,
 *                        and is recorded.
 * PERUN_MEMORY_UNWIND    auto (the default: tables), tables, libunwind, fp, none
 * PERUN_MEMORY_LIBUNWIND library to load for libunwind; default libunwind.so.8
 * PERUN_MEMORY_REACHABLE 1: find out at the end which blocks the program can still reach
 * PERUN_MEMORY_FOLLOW    1: also record forked and executed children, into FILE.PID (FILE.PID.1, ... if that exists,
 *                        because the process has executed another program), each with its tail (FILE.PID.tail).
 *                        Otherwise the recorder removes these settings and itself from the environment, and children
 *                        run without it.
 */

#endif
