/* The binary format of recorded allocations, the one place that owns it.
 *
 * A recorded process leaves two files, FILE and FILE.tail, both in the byte order of the machine (the mark in
 * both headers tells it). FILE is a `struct record_header`, then chunks, each a `struct record_chunk` and its
 * `packed` bytes. What was not yet packed lies in FILE.tail, which the process has mapped: it survives every
 * way a process can end, SIGKILL included.
 *
 * How to read them. Read the chunks of FILE in order; a kill or a full disk may truncate the last one, which is
 * then left out. FILE.tail has two halves, each with the definitions and events of one chunk, `half.chunk`. A half
 * whose chunk is complete in FILE holds nothing new. Otherwise its events follow the last complete chunk: first
 * those of the half with the lower chunk, then those of the other one; only events with the mark of that chunk
 * count. Both halves count where a process was killed while it packed one and filled the other. With `error` set,
 * a half whose chunk does not follow the one before is left out, as the chunk in between could not be written.
 * The order of events is their order in the files.
 *
 * A process that forks goes on in its own two files only; its child has files of its own, or none.
 */
#ifndef PERUN_MEMORY_RECORD_H
#define PERUN_MEMORY_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC "PERUNMEM"
#define RECORD_TAIL_MAGIC "PERUNTAI"
#define RECORD_CHUNK_MAGIC "PMCK"
#define RECORD_VERSION 2
#define RECORD_BYTE_ORDER 0x01020304u

/* -- events ------------------------------------------------------------------------------------------------- */

/* What an event is. Those from RECORD_FREE on release memory and have no amount. */
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
  RECORD_REALLOC_RELEASE = 35, /* the memory that was given to realloc or reallocarray; always before the
                                  RECORD_REALLOC(ARRAY) of the same thread and stack */
  RECORD_REALLOC_FAILED = 36,  /* it could not be resized: the RECORD_REALLOC_RELEASE of this address did not
                                  happen, its memory is live as before (amount 0 here) */
};

/* One event, 32 bytes. Allocation that failed and release of NULL are no events. An allocation at an address
 * that is live means that its release was not seen (see `skipped`), and takes its place. */
struct record_event {
  uint64_t address;
  uint64_t amount; /* bytes as the program asked for; 0 for a release */
  uint64_t ticks;  /* see `struct record_chunk` for how to make it nanoseconds; what goes back in a tail stands still */
  uint32_t stack;  /* id of a stack defined before, 0 for none */
  uint16_t thread; /* of a thread defined before; 65535 stands for all after 65534 threads */
  uint8_t kind;    /* enum record_kind */
  uint8_t mark;    /* written last, RECORD_MARK of the chunk; any other one in a tail is no event of it */
};

#define RECORD_MARK(chunk) (0x80u | ((chunk) & 0x7fu))
#define RECORD_NO_CHUNK 0xffffffffu

/* -- definitions -------------------------------------------------------------------------------------------- */

/* Definitions are 64-bit words. The first word of one:
 *   bits 0-31   id of the thread, or the number of bytes of the path; 0 for a stack: the first one that the record
 *               defines has the id 1, the next one 2, and so on
 *   bits 32-46  shared frames of a stack, else 0
 *   bit 47      set for a stack that goes on outside of the frames given (it is deeper than RECORD_FRAMES)
 *   bits 48-59  number of words that follow
 *   bits 60-63  enum record_definition
 * They come before the events of their chunk and of later chunks that use them, in the order they were made.
 *
 * A stack is return addresses, outermost first (look up address - 1, also where a signal came in between):
 * `shared` many are those of the stack defined before it in the same chunk, the words that follow are the rest.
 * The function of the allocator itself is not among them, so that the last is in who called it. A stack
 * may be defined again under another id. Its addresses are in the modules as defined up to then.
 *
 * A thread is its number in the kernel (gettid).
 *
 * A module is executable memory: start, end, offset in the file, then the path, filled up with zero bytes.
 * No path is code made at run time. A module replaces those defined before that it overlaps.
 */
enum record_definition { RECORD_STACK = 1, RECORD_THREAD = 2, RECORD_MODULE = 3 };

#define RECORD_FRAMES 1024 /* most frames of a stack */

/* -- the file ----------------------------------------------------------------------------------------------- */

enum record_unwinder {
  RECORD_UNWIND_NONE = 0,          /* no stacks */
  RECORD_UNWIND_FRAME_POINTER = 1, /* stacks end, or miss a caller, where code has no frame pointers */
  RECORD_UNWIND_LIBUNWIND = 2,
  RECORD_UNWIND_TABLES = 3, /* our own reader of the unwind tables (.eh_frame) */
};

struct record_header { /* 128 bytes */
  char magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint32_t header_size; /* chunks start here */
  uint32_t pid;
  uint32_t parent;         /* pid of the process that started this one */
  uint32_t unwinder;       /* enum record_unwinder that was used */
  uint32_t wanted;         /* enum record_unwinder that was asked for; differs where that was not possible */
  uint32_t tick_shift;     /* events in chunks have ticks without that many low bits */
  uint64_t ticks;          /* at start, with the two clocks read at the same moment: */
  uint64_t monotonic;      /* CLOCK_MONOTONIC, ns */
  uint64_t realtime;       /* CLOCK_REALTIME, ns since 1970 */
  uint32_t pointer_size;   /* 8 */
  uint32_t page_size;
  uint64_t reserved[7];
};

enum record_chunk_kind {
  RECORD_EVENTS = 1,
  RECORD_TEXT = 2, /* unpacks to UTF-8 lines `name value`: exe PATH, arg ARGUMENT (each), note TEXT (to be told) */
};

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
 * `ticks` and `monotonic` were read together when the chunk was written, thus after all its events: between
 * these points, the header's and those of all chunks (and of the tail), time grows linearly with ticks.
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
  RECORD_RUNNING = 0, /* killed, or replaced by exec, or ended by a system call of its own: nothing is missing, but
                         no more is known; its parent has seen which */
  RECORD_EXITED = 1,      /* by exit or return from main: destructors of other libraries may have come later */
  RECORD_QUICK_EXITED = 2, /* by _exit, _Exit or quick_exit */
};

/* One of the places for the definitions and events of a chunk: while one is packed, the other is written to. Its
 * events are those with the mark of its chunk; threads write them side by side, so that there may be gaps. */
struct record_half {
  uint32_t chunk; /* the number that the chunk of it will have; RECORD_NO_CHUNK before it has been used */
  uint32_t words;
  uint32_t words_offset;
  uint32_t events_offset;
};

/* FILE.tail: this, and for each half `words_capacity` 64-bit words and `events_capacity` `struct record_event`. Made
 * with its whole size reserved, shortened when the process exits. */
struct record_tail { /* 128 bytes */
  char magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint32_t pid;
  uint32_t state; /* enum record_state */
  uint32_t error; /* errno of the write that failed, 0 for none: from then on nothing is recorded */
  uint32_t words_capacity;
  uint32_t events_capacity;
  uint32_t reserved;
  struct record_half half[2];
  uint64_t skipped; /* events left out: those in a signal handler that interrupted the recorder, or left it for good */
  uint64_t lost;    /* events left out after `error` */
  uint64_t ticks;   /* at the last chunk or at the end, read with: */
  uint64_t monotonic;
  uint64_t more_reserved[3];
};

_Static_assert(sizeof(struct record_event) == 32, "format");
_Static_assert(sizeof(struct record_header) == 128, "format");
_Static_assert(sizeof(struct record_chunk) == 96, "format");
_Static_assert(sizeof(struct record_tail) == 128, "format");

/* -- the environment of the recorder ------------------------------------------------------------------------ */

/* LD_PRELOAD names the library as its first entry. Besides:
 *
 * PERUN_MEMORY_FILE      absolute path of FILE. The first process that gets it makes the file, which must not
 *                        exist, and is the one recorded.
 * PERUN_MEMORY_UNWIND    auto (the default: tables), tables, libunwind, fp, none
 * PERUN_MEMORY_LIBUNWIND what is loaded for libunwind; default libunwind.so.8
 * PERUN_MEMORY_FOLLOW    1: record children too, forked or executed, into FILE.PID (FILE.PID.1, ... where that
 *                        exists, as for a process that executes another program), each with its tail
 *                        (FILE.PID.tail). Otherwise the recorder takes these variables and itself in LD_PRELOAD
 *                        out of the environment, and children run without it.
 */

#endif
