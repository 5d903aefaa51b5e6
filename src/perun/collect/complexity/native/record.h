/* The files that the runtime reads and writes; perun/collect/complexity/selection.py writes and records.py reads them.
 *
 * PERUN_COMPLEXITY_FOLDER names the folder of the recordings, PERUN_COMPLEXITY_TABLE the table of what to record, and
 * PERUN_COMPLEXITY_STORAGE the number of calls that a thread buffers. A process makes its files when it enters the first
 * function: `P.process`, and `P-T.calls` for each of its threads, where P is its id and a count.
 *
 * The files are mapped into memory, so that they hold all events whatever ends the process. Numbers have the byte order
 * of the machine. */
#ifndef PERUN_COMPLEXITY_RECORD_H
#define PERUN_COMPLEXITY_RECORD_H

#include <stdint.h>

#define RECORD_VERSION 2u
#define RECORD_BYTE_ORDER 0x01020304u
#define RECORD_PROCESS_MAGIC "PERUNCXP"
#define RECORD_CALLS_MAGIC "PERUNCXC"
#define RECORD_TABLE_MAGIC "PERUNCXT"
#define RECORD_HEADER_SIZE 4096u

/* -- P.process: a header and definitions of functions; P.modules: a line `number path` for each module -------------- */

#define RECORD_MAX_FUNCTIONS ((1u << 17) - 16) /* larger ids mark other events */

struct record_process {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t pid, parent;
  uint32_t is_tsc;    /* 1 if ticks are those of the processor, 0 if they are nanoseconds */
  uint32_t ended;     /* 1 if the process ended by itself */
  uint64_t ticks[3];  /* at the start, shortly after it, and at the latest known moment */
  uint64_t clock[3];  /* CLOCK_MONOTONIC at the same moments, in nanoseconds */
  uint32_t functions; /* number of definitions */
  uint32_t lost_functions; /* functions without a definition, because there were too many */
};

struct record_function {
  uint64_t address; /* in the file of the module */
  uint32_t module;
  uint32_t reserved;
};

/* -- P-T.calls: a header, the window with the latest events, and the earlier events --------------------------------- */

/* The fields that every call writes share the second cache line. */
struct record_thread {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t pid, tid;
  uint32_t error;      /* number of the error that ended the recording, or RECORD_CONFINED; 0 for none */
  uint32_t number;     /* of the thread in the process */
  uint64_t events_at;  /* position of the window in the file */
  uint64_t written_at; /* position in the file of the events that were moved out of the window */
  uint64_t written;    /* bytes of these */
  uint64_t window;     /* address at which the window is mapped */
  uint64_t next, end;  /* address of the next event, and the end of the room for events */
  uint64_t zero;       /* start of the thread's time in ticks, moved on by the time that the runtime needs for itself */
  uint64_t top, frames_end; /* of the shadow stack */
  uint32_t busy, reserved;  /* busy: the runtime is recording an event; a signal handler may interrupt it */
  uint64_t stack, stack_size; /* of the thread */
  /* Numbers of missing exits, of entries and exits in signal handlers that interrupted the runtime, of calls that were
   * nested too deeply, and of calls whose entries could not be written. */
  uint64_t missed, skipped, too_deep, lost;
};

/* An event is a word with an id in its low bits, which tells the meaning of the high bits. Entries and exits of a thread
 * match like parentheses, unless the thread ended before.
 *
 * Ticks count from `zero` and wrap around: consecutive events are less than 2^46 ticks apart. */
#define RECORD_ID_BITS 17u
#define RECORD_ID_MASK ((1u << RECORD_ID_BITS) - 1)
#define RECORD_NO_ID RECORD_ID_MASK

/* The id of a function marks its entry, at the ticks in the high bits. The others: */
#define RECORD_EXIT RECORD_ID_MASK           /* exit of the innermost open call, at the ticks in the high bits */
#define RECORD_SIZE (RECORD_ID_MASK - 1)     /* size of the structure of the call that the event before enters */
#define RECORD_UNSAMPLED_COUNT (RECORD_ID_MASK - 2) /* number of calls that sampling leaves out here */
#define RECORD_UNSAMPLED_TICKS (RECORD_ID_MASK - 3) /* always next: the ticks of these calls */
#define RECORD_UNSAMPLED (RECORD_ID_MASK - 4) /* sampling leaves out the call that the event before enters, but not
                                               * all calls within it */

/* -- the table: a header, the arrays in the order of their counts, and the paths ------------------------------------- */

struct table_header {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t modules, functions, programs, steps;
  uint32_t only_listed; /* 1 if only functions in the table are recorded */
  uint32_t paths;       /* bytes */
};

struct table_module {
  uint32_t path, path_size; /* position and bytes in the paths of the real path of the file */
  uint32_t functions, first_function;
  uint32_t programs, first_program;
};

struct table_function { /* sorted by address */
  uint64_t address, size;
  uint32_t is_recorded;
  uint32_t sampling; /* one in so many calls is recorded; 0 and 1 for all */
};

enum table_place { TABLE_REGISTER, TABLE_MEMORY, TABLE_ADDRESS };
#define TABLE_INLINED 256u /* added to the place: for where the function is inlined, not for the function itself */

/* How to read the size for hooks of `function` that return to an address in [low, high). The first value is that of a
 * register, that of the memory at a register plus an offset, or this sum itself. */
struct table_program {
  uint64_t function, low, high;
  int64_t offset;
  uint32_t place, base; /* base: number of the register in DWARF; TABLE_FRAME for the address of the frame */
  uint32_t steps, first_step;
};

#define TABLE_FRAME 255u

/* The operations of a stack machine; `number` is that of the step, and the last value the top of the stack. */
enum table_operation {
  TABLE_ADD,      /* add the number to the last value */
  TABLE_LOAD,     /* replace the last value by the memory at it: `number` bytes, unsigned */
  TABLE_LOAD_INT, /* the same, signed */
  TABLE_COPY,     /* push the last value once more */
  TABLE_SWAP,     /* swap the last two values */
  TABLE_SUM,      /* replace the last two values by their sum */
  TABLE_DIVIDE,   /* divide the last value by the number */
  TABLE_MULTIPLY, /* multiply the last value by the number */
  TABLE_MASK,     /* keep the bits of the last value that are set in the number */
  TABLE_EXTEND    /* extend the sign of the last value, which has `number` bytes */
};

struct table_step {
  uint64_t operation;
  int64_t number;
};

_Static_assert(sizeof(struct record_thread) == 160, "records.py reads 160 bytes");
_Static_assert(sizeof(struct table_program) == 48, "table.py writes 48 bytes");

#endif
