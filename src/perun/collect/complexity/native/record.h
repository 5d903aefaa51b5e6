/* What the runtime reads and writes; perun/collect/complexity/records.py and table.py are its other ends.
 *
 * PERUN_COMPLEXITY_FOLDER names the folder for the files, PERUN_COMPLEXITY_TABLE a file of what to record, and
 * PERUN_COMPLEXITY_STORAGE the number of calls that are kept until they are written. A process makes its files when the first
 * function is entered: `P.process`, and for each of its threads `P-T.calls`, where P is its number and a count.
 *
 * What is written to is mapped: whatever ends the process, its files hold what it did. All numbers are of the machine's order. */
#ifndef PERUN_COMPLEXITY_RECORD_H
#define PERUN_COMPLEXITY_RECORD_H

#include <stdint.h>

#define RECORD_VERSION 2u
#define RECORD_BYTE_ORDER 0x01020304u
#define RECORD_PROCESS_MAGIC "PERUNCXP"
#define RECORD_CALLS_MAGIC "PERUNCXC"
#define RECORD_TABLE_MAGIC "PERUNCXT"
#define RECORD_HEADER_SIZE 4096u

/* -- P.process: a header, then definitions of functions, then modules as lines `number path` in P.modules ----------- */

#define RECORD_MAX_FUNCTIONS ((1u << 17) - 16) /* the numbers above have meanings of their own */

struct record_process {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t pid, parent;
  uint32_t is_tsc;    /* ticks are those of the processor, else nanoseconds */
  uint32_t ended;     /* by itself */
  uint64_t ticks[3];  /* at the beginning, a little later, and as late as known */
  uint64_t clock[3];  /* CLOCK_MONOTONIC at these, in nanoseconds */
  uint32_t functions; /* definitions */
  uint32_t lost_functions;
};

struct record_function {
  uint64_t address; /* as the file of the module numbers them */
  uint32_t module;
  uint32_t reserved;
};

/* -- P-T.calls: a header, the last events, and those before them --------------------------------------------------- */

/* What is written to at every call is in the second line of the cache. */
struct record_thread {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t pid, tid;
  uint32_t error;      /* of the system call after which nothing was recorded, 0 for none */
  uint32_t number;     /* of the thread in the process */
  uint64_t events_at;  /* in the file */
  uint64_t written_at; /* in the file, of the events that were moved out of the way of later ones */
  uint64_t written;    /* bytes of these */
  uint64_t window;     /* where the last events are mapped */
  uint64_t next, end;  /* where the next event goes, and where there is no room for any */
  uint64_t zero;       /* ticks at which its time began, later by what the runtime took for itself */
  uint64_t top, most_frames;
  uint32_t busy, reserved;
  uint64_t stack, stack_size; /* of the thread */
  /* Counts of exits that were missing, of entries and exits in a signal handler that interrupted the runtime, of
   * calls within too many others, and of calls whose entries could not be written. */
  uint64_t missed, skipped, too_deep, lost;
};

/* An event has a number in its low bits, and what it means decides about the high ones. Every entry of a thread has
 * its exit, in the order of parentheses, unless the thread ended before.
 *
 * The ticks since `zero` go round: those of two events that follow each other are less than 2^46 apart. */
#define RECORD_ID_BITS 17u
#define RECORD_ID_MASK ((1u << RECORD_ID_BITS) - 1)
#define RECORD_NOBODY RECORD_ID_MASK

/* Numbers of functions mean that one is entered at the ticks of the high bits. */
#define RECORD_EXIT RECORD_ID_MASK           /* of the last call that is open, at these ticks */
#define RECORD_SIZE (RECORD_ID_MASK - 1)     /* of the structure of the call whose entry is the event before */
#define RECORD_UNSAMPLED_COUNT (RECORD_ID_MASK - 2) /* how many calls sampling omitted here */
#define RECORD_UNSAMPLED_TICKS (RECORD_ID_MASK - 3) /* comes right after it: the ticks that they took */
#define RECORD_UNSAMPLED (RECORD_ID_MASK - 4) /* sampling omits the call of the entry before, not those in it */

/* -- the table: a header, then the arrays in the order of their counts, then the paths ------------------------------- */

struct table_header {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t modules, functions, programs, steps;
  uint32_t only_listed; /* functions that are not in the table are not recorded */
  uint32_t paths;       /* bytes */
};

struct table_module {
  uint32_t path, path_size; /* in the paths; the real path of the file */
  uint32_t functions, first_function;
  uint32_t programs, first_program;
};

struct table_function { /* sorted by address */
  uint64_t address, size;
  uint32_t is_recorded;
  uint32_t sampling; /* every so many calls are recorded; 0 and 1 for all */
};

enum table_place { TABLE_REGISTER, TABLE_MEMORY, TABLE_ADDRESS };
#define TABLE_INLINED 256u /* added to the place: where the function is inlined, not for itself */

/* How the size is read where the hook that returns to [low, high) says that `function` was entered: the first value
 * is that of a register, of memory at a register's value and an offset, or that sum itself. */
struct table_program {
  uint64_t function, low, high;
  int64_t offset;
  uint32_t place, base; /* the register, as DWARF numbers them; TABLE_FRAME for the frame's address */
  uint32_t steps, first_step;
};

#define TABLE_FRAME 255u

enum table_operation {
  TABLE_ADD,      /* the number to the last value */
  TABLE_LOAD,     /* so many bytes from memory, without sign */
  TABLE_LOAD_INT, /* the same with a sign */
  TABLE_COPY,     /* the last value once more */
  TABLE_SWAP,     /* the last two values */
  TABLE_SUBTRACT, /* the last value from the one before */
  TABLE_SUM,      /* the last two values */
  TABLE_DIVIDE,   /* the last value by the number */
  TABLE_MULTIPLY, /* the last value by the number */
  TABLE_MASK,     /* the bits of the number of the last value */
  TABLE_EXTEND    /* the sign of the last value, which has so many bytes */
};

struct table_step {
  uint64_t operation;
  int64_t number;
};

_Static_assert(sizeof(struct record_thread) == 160, "records.py reads 160 bytes");
_Static_assert(sizeof(struct table_program) == 48, "table.py writes 48 bytes");

#endif
