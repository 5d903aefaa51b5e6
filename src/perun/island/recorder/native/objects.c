/* A hash table of the objects that are known; the GIL is its lock. */
#include "calls.h"

#include <stdlib.h>

static struct object *table;
static size_t size, used;

static size_t home(PyObject *address, size_t of) { return ((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u >> 20 & (of - 1); }

struct object *find(PyObject *address) {
    if (!used)
        return NULL;
    for (size_t at = home(address, size);; at = (at + 1) & (size - 1)) {
        if (table[at].address == address)
            return &table[at];
        if (!table[at].address)
            return NULL;
    }
}

static void put(struct object *into, size_t of, struct object object) {
    size_t at = home(object.address, of);
    while (into[at].address)
        at = (at + 1) & (of - 1);
    into[at] = object;
}

int remember(PyObject *address, PyObject *reference, uint32_t number, uint16_t kind, bool closes) {
    struct object *known = find(address);
    struct object object = {address, reference, number, kind, closes};
    if (known) {
        Py_XDECREF(known->reference);
        *known = object;
        return 0;
    }
    if (2 * used >= size) {
        size_t larger = size ? 2 * size : 64;
        struct object *grown = calloc(larger, sizeof *grown);
        if (!grown)
            return -1;
        for (size_t at = 0; at < size; at++)
            if (table[at].address)
                put(grown, larger, table[at]);
        free(table);
        table = grown;
        size = larger;
    }
    put(table, size, object);
    used++;
    return 0;
}

void forget(PyObject *address) {
    struct object *known = find(address);
    if (!known)
        return;
    PyObject *reference = known->reference;
    size_t hole = (size_t)(known - table);
    for (size_t at = (hole + 1) & (size - 1); table[at].address; at = (at + 1) & (size - 1)) {
        size_t wish = home(table[at].address, size);
        /* What would not be found behind the hole moves into it. */
        if (((at - wish) & (size - 1)) >= ((at - hole) & (size - 1))) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole] = (struct object){0};
    used--;
    Py_XDECREF(reference);
}
