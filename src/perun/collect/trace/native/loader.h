/* What the parts of the loader share. loader.c says what the loader does. */
#ifndef PERUN_TRACE_LOADER_H
#define PERUN_TRACE_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "record.h"

/* FUNCTION: an entry whose return is caught. DEEP_EXIT: an exit of such a function, for calls that are nested too deeply
 * for the kernel to catch their returns. */
enum { FUNCTION, ENTRY, EXIT, DEEP_EXIT, KINDS };
enum method { SESSION, MULTI, EVENTS, METHODS };

/* The links of the probes of one function, where each function has its own. */
struct links {
    int *files;
    unsigned count;
};

/* Probes of one kind in one file: they are attached together. */
struct probes {
    uint64_t *offsets;
    uint64_t *cookies;
    uint64_t *semaphores;
    unsigned count;
    unsigned room;
};

struct file {
    char *path;
    struct probes probes[KINDS];
};

/* What is to be probed; sizes and functions are by the numbers of functions. */
struct plan {
    struct file *files;
    unsigned file_count;
    struct perun_size *sizes;
    struct perun_function *functions;
    unsigned function_count;
    unsigned long long threshold; /* calls of a function after which it is detached; 0 for no limit */
    unsigned long long again;     /* calls for which a detached function is attached again; 0 for never */
    unsigned period;              /* milliseconds after which all but `entry` are detached, or attached again; 0 for never */
    unsigned entry;
    char *follow; /* folder of the pipes by which Perun is asked for the probes of other programs; NULL for none */
};

extern const char *const method_names[METHODS];

/* End the loader with a message. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *resized(void *old, size_t size);
/* A copy of a text, of at most so many characters; it ends the loader where there is no memory. */
char *copied(const char *text, size_t room);
double seconds(void);
int must_stop(void);

/* plan.c */
void read_plan(const char *path, struct plan *plan);
void add_probe(struct probes *probes, uint64_t offset, uint64_t cookie, uint64_t semaphore);

/* methods.c */
enum method method_named(const char *name);
int link_many(const char *path, struct probes probes, int program, enum method method, int of_returns);
int link_one(const char *path, struct probes probe, int program, int of_returns);
uint32_t attach_type(enum method method);

/* attach.c */
void load(enum method method, const char *path, const struct plan *plan);
void set_start(pid_t process, int follow);
void attach_all(const struct plan *plan);
void attach_functions(const struct plan *plan, const char *wanted, struct links *links);
void detach_function(struct links *links);
void tell_function(const struct plan *plan, unsigned function);
void attach_more(const struct plan *plan, unsigned first_file, unsigned first_function);
void attach_deep_exits(const struct plan *plan, unsigned function, struct links *links);
int map_of(const char *name);
uint64_t summed(const char *map);
unsigned count_unprobed(void);
int detach(void);

/* switching.c */
void start_switching(struct plan *plan);
void note_limit(unsigned function);
void switch_probes(void);
void attach_switched_exits(unsigned function);
int is_switching(void);
void write_switched(FILE *summary);

/* follow.c */
int follow_program(const struct perun_execution *execution, struct plan *plan);

/* recording.c */
void open_recording(const char *path, struct plan *plan);
void read_records(void);
uint64_t close_recording(void);
void write_summary(FILE *summary);

/* command.c */
struct command {
    pid_t supervisor;
    int go, ended;
};
struct command prepare_command(char **arguments);
void start_command(const struct command *command);
int has_ended(const struct command *command, int *status);
void kill_command(pid_t child);

#endif
