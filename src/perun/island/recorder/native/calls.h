/* Stands in for functions and methods of Python: calls the original, and records that. */
#ifndef PERUN_ISLAND_CALLS_H
#define PERUN_ISLAND_CALLS_H

#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "recorder.h"

/* Exported by Python 3.11 as well, where it is not yet part of the limited API. */
#if Py_LIMITED_API < 0x030c0000
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);
#endif

/* What the amount of a call is. */
enum amount { NOTHING, ONE, RESULT, LENGTH_OF_RESULT, LENGTH_OF_FIRST, NANOSECONDS_OF_FIRST, NESTED, FIRST_OF_RESULT };

/* How a call is recorded. */
enum {
    OF_SELF = 1,     /* the object is the first argument; where it is not known, `describe` is asked, or nothing recorded */
    RAW = 2,         /* exchanges bytes with the system: what it moves is physical */
    ONLY_LONG = 4,   /* is recorded only where it took at least `LONG` */
    BY_KIND = 8,     /* the API is that of the kind of the object */
    CLOSES = 16,     /* the object is closed by it */
    ALWAYS = 32,     /* `describe` is asked after each call */
};

enum { LONG = 1000000 /* ns */ };

struct call {
    PyObject *original;
    PyObject *describe; /* (self or None, arguments, result or None, start) -> number of the object, or None */
    PyObject *before;   /* (api) may refuse; of limits */
    PyObject *after;    /* (api, amount) -> deadline in ns, or 0; of limits */
    PyObject *failed;   /* (api) where the call that `before` allowed failed */
    enum amount amount;
    unsigned rules;
    uint16_t api;
    iternextfunc next;
};

/* The objects that are known, by their addresses. */
struct object {
    PyObject *address; /* borrowed */
    PyObject *reference; /* weak, its callback forgets the object */
    uint32_t number;
    uint16_t kind;
    bool closes; /* the object is closed when this one is gone */
};
struct object *find(PyObject *address);
int remember(PyObject *address, PyObject *reference, uint32_t number, uint16_t kind, bool closes);
void forget(PyObject *address);

/* The interpreter ends: functions of Python are not asked any more. */
extern bool ending;

PyObject *invoke(struct call *call, PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names,
                 bool method);
PyObject *next_item(struct call *call, PyObject *self);

#endif
