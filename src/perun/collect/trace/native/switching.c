/* Detaches and attaches probes while the command runs (dynamic-probing and timed-sampling).
 *
 * Each function has links of its own then. A function is not recorded any more from the moment when it reaches its limit,
 * or when the timer says so; its probes stay until its recorded calls have ended, so that no exit is missing.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "loader.h"

enum { CLOSERS = 32 };        /* threads that detach at once: each waits for the kernel, and all wait for the same */
static const double SHORTEST = 0.1; /* seconds until a function is attached again, doubled each time */

enum state { ATTACHED, ENDING, DETACHED };

/* What becomes of a function: `since` when it is detached, and for how long. */
struct switched {
    struct links links;
    enum state state;
    int was_off, is_full;
    double until, pause;
};

static struct plan *plan;
static struct switched *functions;
static struct links *all_links;
static char *wanted;
static unsigned ending;
static int is_off;
static double next_switch;

int is_switching(void) { return plan != NULL; }

/* Where the plan asks for it, the functions get what the probes need for it. */
void start_switching(struct plan *planned) {
    struct rlimit files;
    if (!planned->threshold && !planned->period)
        return;
    plan = planned;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    functions = calloc(plan->function_count + 1, sizeof(*functions));
    all_links = calloc(plan->function_count + 1, sizeof(*all_links));
    wanted = calloc(plan->function_count + 1, 1);
    if (!functions || !all_links || !wanted)
        fail("out of memory");
    for (unsigned number = 0; number < plan->function_count; number++) {
        struct perun_function *known = &plan->functions[number];
        known->flags |= PERUN_COUNTED;
        known->limit = plan->threshold;
        if (plan->period && number != plan->entry)
            known->flags |= PERUN_TIMED;
        functions[number].state = DETACHED;
        functions[number].pause = SHORTEST;
    }
}

static long long open_calls(unsigned function) {
    struct perun_count count = {0};
    bpf_map_lookup_elem(map_of("counts"), &function, &count);
    return count.open;
}

static void end(unsigned function) {
    if (functions[function].state != ATTACHED)
        return;
    functions[function].state = ENDING;
    functions[function].was_off = 1;
    ending++;
}

/* A function has reached its limit. */
void note_limit(unsigned function) {
    if (!plan || function >= plan->function_count)
        fail("a probe tells the limit of an unknown function");
    functions[function].is_full = functions[function].was_off = 1;
    end(function);
}

static void *close_some(void *first) {
    for (unsigned number = (unsigned)(uintptr_t)first; number < plan->function_count; number += CLOSERS)
        if (functions[number].links.count) {
            detach_function(&functions[number].links);
            free(functions[number].links.files);
            functions[number].links = (struct links){0};
        }
    return NULL;
}

/* Detach the functions that end and have no recorded call open. */
static void detach_ended(double now) {
    unsigned found = 0;
    for (unsigned number = 0; number < plan->function_count; number++) {
        struct switched *one = &functions[number];
        if (one->state != ENDING || open_calls(number) > 0)
            continue;
        one->links = all_links[number]; /* to be closed */
        all_links[number] = (struct links){0};
        one->state = DETACHED;
        one->until = now + one->pause;
        one->pause *= 2;
        if (plan->functions[number].flags & PERUN_AT_EXITS) {
            plan->functions[number].flags &= ~PERUN_AT_EXITS;
            tell_function(plan, number);
        }
        found++;
    }
    ending -= found;
    pthread_t closers[CLOSERS];
    unsigned started = 0;
    for (; found && started < CLOSERS; started++)
        if (pthread_create(&closers[started], NULL, close_some, (void *)(uintptr_t)started))
            break;
    for (unsigned number = 0; number < started; number++)
        pthread_join(closers[number], NULL);
    for (unsigned rest = started; found && rest < CLOSERS; rest++)
        close_some((void *)(uintptr_t)rest);
}

/* Attach the detached functions that are due, and give those that had reached their limit another one. */
static void attach_due(double now) {
    unsigned found = 0;
    for (unsigned number = 0; number < plan->function_count; number++) {
        struct switched *one = &functions[number];
        wanted[number] = one->state == DETACHED && (one->is_full ? plan->again && now >= one->until : !is_off);
        if (!wanted[number])
            continue;
        if (one->is_full) {
            struct perun_count count = {0};
            bpf_map_lookup_elem(map_of("counts"), &number, &count);
            plan->functions[number].limit = count.calls + plan->again;
            tell_function(plan, number);
        }
        one->is_full = 0;
        one->state = ATTACHED;
        found++;
    }
    if (found)
        attach_functions(plan, wanted, all_links);
}

static void switch_by_timer(double now) {
    int zero = 0;
    if (now < next_switch)
        return;
    next_switch = now + plan->period * 1e-3;
    is_off = !is_off;
    if (is_off) {
        bpf_map_update_elem(map_of("paused"), &zero, &is_off, BPF_ANY);
        for (unsigned number = 0; number < plan->function_count; number++)
            if (number != plan->entry)
                end(number);
        return;
    }
    for (unsigned number = 0; number < plan->function_count; number++)
        if (functions[number].state == ENDING && !functions[number].is_full) {
            functions[number].state = ATTACHED;
            ending--;
        }
    attach_due(now);
    bpf_map_update_elem(map_of("paused"), &zero, &is_off, BPF_ANY);
}

/* Do what is due; the first call attaches all. */
void switch_probes(void) {
    if (!plan)
        return;
    double now = seconds();
    if (next_switch == 0) {
        attach_due(now);
        next_switch = seconds() + (plan->period ? plan->period * 1e-3 : 1e9);
        return;
    }
    if (plan->period)
        switch_by_timer(now);
    if (ending)
        detach_ended(now);
    if (plan->again)
        attach_due(now);
}

/* Probe the exits of a function for calls that are nested deeply. */
void attach_switched_exits(unsigned function) { attach_deep_exits(plan, function, &all_links[function]); }

/* The functions that were not recorded all the time, and how many calls they had while they were probed. */
void write_switched(FILE *summary) {
    for (unsigned number = 0; plan && number < plan->function_count; number++) {
        struct perun_count count = {0};
        bpf_map_lookup_elem(map_of("counts"), &number, &count);
        if (functions[number].was_off)
            fprintf(summary, "switched %u %llu\n", number, count.calls);
    }
}
