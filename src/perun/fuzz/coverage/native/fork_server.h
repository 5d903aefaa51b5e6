/* The record that Perun and the program under test share: its layout, also known to `coverage/shared.py`.
 *
 * It is one anonymous file whose descriptor is the value of PERUN_FUZZ. Perun writes the first part before the
 * program starts; the program writes what follows. All numbers have the byte order of the machine.
 */
#ifndef PERUN_FORK_SERVER_H
#define PERUN_FORK_SERVER_H

#include <stdint.h>

#define PERUN_FUZZ_MAGIC 0x315a4650u /* "PFZ1" */
#define PERUN_FUZZ_HEADER 4096u      /* fewest bytes before the first counter */
#define PERUN_FUZZ_CONTROL 198       /* requests are read from it, answers are written to the next descriptor */

enum perun_fuzz_flags {
    PERUN_FUZZ_ONCE = 1, /* run the program once, without a fork server */
};

enum perun_fuzz_state {
    PERUN_FUZZ_UNSEEN = 0,
    PERUN_FUZZ_LOADED = 1,   /* the library was loaded into the program */
    PERUN_FUZZ_READY = 2,    /* counters are shared; `main` is next */
    PERUN_FUZZ_THREADS = 3,  /* the program has started threads before `main`: it cannot be copied */
    PERUN_FUZZ_REFUSED = 4,  /* the kernel refused; `problem` is errno */
};

/* Pages with counters of one module, which is known by its file. */
struct perun_fuzz_range {
    uint64_t device, inode;
    uint64_t address; /* in the module, a multiple of the size of a page */
    uint64_t length;  /* likewise */
    uint64_t offset;  /* in the shared file, likewise */
};

struct perun_fuzz {
    uint32_t magic, flags;
    uint64_t memory;         /* most bytes of address space, 0 for no limit */
    uint64_t edges_offset;   /* room for counters of edges (uint32_t), and how many fit */
    uint64_t edges_capacity;
    uint64_t argument_offset; /* text of an argument that is different in each run */
    uint32_t argument;        /* its index, 0 for none */
    uint32_t ranges;
    uint32_t state, problem;
    uint64_t edges;       /* counters of edges in use */
    uint64_t nanoseconds; /* of the last run: real time, less what a long one has waited for a core */
    int32_t copy;         /* process id of the copy that runs, or ran last */
    uint32_t running;     /* whether that copy has got a request */
    uint64_t begun;       /* when it got it, in nanoseconds */
    struct perun_fuzz_range range[];
};

#endif
