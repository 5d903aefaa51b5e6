/* Reads the plan: what is to be probed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

void add_probe(struct probes *probes, uint64_t offset, uint64_t cookie, uint64_t semaphore) {
    if (probes->count == probes->room) {
        probes->room = probes->room ? 2 * probes->room : 64;
        probes->offsets = resized(probes->offsets, probes->room * sizeof(uint64_t));
        probes->cookies = resized(probes->cookies, probes->room * sizeof(uint64_t));
        probes->semaphores = resized(probes->semaphores, probes->room * sizeof(uint64_t));
    }
    probes->offsets[probes->count] = offset;
    probes->cookies[probes->count] = cookie;
    probes->semaphores[probes->count++] = semaphore;
}

/* Make room for what is known of a function. */
static void add_function(struct plan *plan, unsigned long long number) {
    if (number >= PERUN_MAX_FUNCTIONS)
        fail("the plan has too many functions");
    unsigned old = plan->function_count, new = (unsigned)number + 1;
    if (new <= old)
        return;
    plan->sizes = resized(plan->sizes, new * sizeof(*plan->sizes));
    memset(plan->sizes + old, 0, (new - old) * sizeof(*plan->sizes));
    plan->functions = resized(plan->functions, new * sizeof(*plan->functions));
    memset(plan->functions + old, 0, (new - old) * sizeof(*plan->functions));
    plan->function_count = new;
}

static void add_size(struct plan *plan, const char *line) {
    unsigned number = 0;
    int used = 0;
    struct perun_size size = {0};
    if (sscanf(line, "%u %d %d %d%n", &number, &size.place, &size.follow, &size.terms, &used) != 4 ||
        number >= PERUN_MAX_FUNCTIONS || size.terms > PERUN_MAX_TERMS)
        fail("cannot parse the size in the plan: %s", line);
    for (int term = 0; term < size.terms; term++) {
        int steps, width, is_signed, more = 0;
        if (sscanf(line + used, " %lld %d %d %d%n", &size.term[term].factor, &width, &is_signed, &steps, &more) != 4 ||
            steps > PERUN_MAX_STEPS)
            fail("cannot parse the size in the plan: %s", line);
        used += more;
        size.term[term].steps = (unsigned char)steps;
        size.term[term].width = (unsigned char)width;
        size.term[term].is_signed = (unsigned char)is_signed;
        for (int step = 0; step < steps; step++) {
            if (sscanf(line + used, " %d%n", &size.term[term].offsets[step], &more) != 1)
                fail("cannot parse the size in the plan: %s", line);
            used += more;
        }
    }
    add_function(plan, number);
    plan->sizes[number] = size;
}

/* The lines of the plan:
 *
 *     F path                       the following probes are in this file
 *     f offset number semaphore    the entry of a function, whose return is caught, too
 *     d offset number semaphore    an exit of such a function, for calls that are nested more deeply than that
 *     e offset number semaphore    an entry alone
 *     x offset number semaphore    an exit: an instruction that leaves the function
 *     S number place follow terms, for each term: factor width signed steps offset...; see struct perun_size
 *     G number                     Go compiled the function
 *     A folder                     ask for the probes of other programs that the command executes; see follow.c
 *     P threshold again            a function is detached after so many calls, and attached again for so many; 0 for never
 *     T milliseconds number        all functions but that one are detached, and attached again, by a timer
 *     N number sampling            only the first of so many calls is recorded; see struct perun_function
 */
void read_plan(const char *path, struct plan *plan) {
    static const char kinds[] = {[FUNCTION] = 'f', [ENTRY] = 'e', [EXIT] = 'x', [DEEP_EXIT] = 'd', 0};
    FILE *lines = fopen(path, "r");
    if (!lines)
        fail("cannot read %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, lines)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        unsigned long long offset, number, semaphore;
        unsigned sampling;
        const char *kind = strchr(kinds, line[0]);
        if (line[0] == 'F') {
            plan->files = resized(plan->files, (plan->file_count + 1) * sizeof(*plan->files));
            memset(plan->files + plan->file_count, 0, sizeof(*plan->files));
            plan->files[plan->file_count++].path = copied(line + 2, SIZE_MAX);
        } else if (line[0] == 'A') {
            plan->follow = copied(line + 2, SIZE_MAX);
        } else if (line[0] == 'S') {
            add_size(plan, line + 2);
        } else if (line[0] == 'G' && sscanf(line + 2, "%llu", &number) == 1) {
            add_function(plan, number);
            plan->functions[number].flags |= PERUN_GOROUTINE;
        } else if (line[0] == 'P' && sscanf(line + 2, "%llu %llu", &plan->threshold, &plan->again) == 2) {
            continue;
        } else if (line[0] == 'T' && sscanf(line + 2, "%u %u", &plan->period, &plan->entry) == 2) {
            continue;
        } else if (line[0] == 'N' && sscanf(line + 2, "%llu %u", &number, &sampling) == 2) {
            add_function(plan, number);
            plan->functions[number].sampling = sampling;
        } else if (plan->file_count && line[0] && kind &&
                   sscanf(line + 2, "%llu %llu %llu", &offset, &number, &semaphore) == 3) {
            add_function(plan, number);
            add_probe(&plan->files[plan->file_count - 1].probes[kind - kinds], offset, number, semaphore);
            plan->functions[number].flags |= *kind == 'f' ? PERUN_RETURNS : *kind == 'd' ? PERUN_HAS_EXITS : 0;
        } else {
            fail("cannot parse the line of the plan: %s", line);
        }
    }
    free(line);
    fclose(lines);
}
