/* The module `_recorder`: what `perun.island.recorder` needs of C. */
#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 128, ITERATIONS = 8 };

static struct call calls[CALLS];
static PyMethodDef definitions[CALLS];
static int made;

/* A function of Python's C interface gets nothing but its arguments: so each call has one of its own. */
#define METHOD(n)                                                                                                      \
    static PyObject *method_##n(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {       \
        return invoke(&calls[n], self, arguments, count, names, true);                                                 \
    }                                                                                                                  \
    static PyObject *function_##n(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {     \
        (void)self;                                                                                                    \
        return invoke(&calls[n], NULL, arguments, count, names, false);                                                \
    }
#define ENTRY(n) {(PyCFunction)(void (*)(void))method_##n, (PyCFunction)(void (*)(void))function_##n},
#define EIGHT(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)
#define ALL(of)                                                                                                        \
    EIGHT(of, 00) EIGHT(of, 01) EIGHT(of, 02) EIGHT(of, 03) EIGHT(of, 04) EIGHT(of, 05) EIGHT(of, 06) EIGHT(of, 07)    \
    EIGHT(of, 010) EIGHT(of, 011) EIGHT(of, 012) EIGHT(of, 013) EIGHT(of, 014) EIGHT(of, 015) EIGHT(of, 016)           \
    EIGHT(of, 017)

ALL(METHOD)
static const PyCFunction entries[CALLS][2] = {ALL(ENTRY)};

static struct call iterations[ITERATIONS];
static int iterated;
#define NEXT(n)                                                                                                        \
    static PyObject *next_##n(PyObject *self) { return next_item(&iterations[n], self); }
EIGHT(NEXT, )
#define NAME_OF_NEXT(n) next_##n,
static const iternextfunc nexts[ITERATIONS] = {EIGHT(NAME_OF_NEXT, )};

static PyObject *optional(PyObject *object) { return object == Py_None ? NULL : object; }

static bool fill_call(struct call *call, PyObject *original, PyObject *arguments) {
    unsigned api, amount;
    PyObject *describe, *before, *after, *failed;
    if (!PyArg_ParseTuple(arguments, "IIIOOOO", &api, &amount, &call->rules, &describe, &before, &after, &failed))
        return false;
    call->api = (uint16_t)api;
    call->amount = (enum amount)amount;
    call->original = original;
    call->describe = optional(describe);
    call->before = optional(before);
    call->after = optional(after);
    call->failed = optional(failed);
    Py_XINCREF(original);
    Py_XINCREF(call->describe);
    Py_XINCREF(call->before);
    Py_XINCREF(call->after);
    Py_XINCREF(call->failed);
    return true;
}

/* The text of an attribute, for ever; NULL where it is none. */
static char *text_of(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    const char *text = value && PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    char *copy = text ? strdup(text) : NULL;
    Py_XDECREF(value);
    PyErr_Clear();
    return copy;
}

/* As Python's own functions have it: signature and text. */
static char *documentation(PyObject *original, const char *name) {
    char *signature = text_of(original, "__text_signature__"), *text = text_of(original, "__doc__");
    char *whole = text;
    if (signature && text) {
        size_t size = strlen(name) + strlen(signature) + strlen(text) + 8;
        if ((whole = malloc(size)))
            snprintf(whole, size, "%s%s\n--\n\n%s", name, signature, text);
        free(text);
    }
    free(signature);
    return whole;
}

static PyObject *wrap(PyObject *module, PyObject *arguments) {
    PyObject *original, *owner, *rest;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOO!", &original, &owner, &PyTuple_Type, &rest))
        return NULL;
    if (made == CALLS) {
        PyErr_SetString(PyExc_RuntimeError, "too many calls are recorded");
        return NULL;
    }
    if (!fill_call(&calls[made], original, rest))
        return NULL;
    char *name = text_of(original, "__name__");
    PyMethodDef *definition = &definitions[made];
    definition->ml_name = name ? name : "";
    definition->ml_doc = documentation(original, definition->ml_name);
    definition->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    bool method = owner != Py_None;
    definition->ml_meth = entries[made++][!method];
    if (method)
        return PyDescr_NewMethod((PyTypeObject *)owner, definition);
    PyObject *self = PyObject_GetAttrString(original, "__self__");
    PyErr_Clear();
    PyObject *home = PyObject_GetAttrString(original, "__module__");
    PyErr_Clear();
    PyObject *function = PyCFunction_NewEx(definition, self, home);
    Py_XDECREF(self);
    Py_XDECREF(home);
    return function;
}

/* Where a type has the function of the slot `at`, after `tp_name`; NULL where this Python has it elsewhere. */
static iternextfunc *place_of_next(PyTypeObject *type) {
    enum { ITER = 24, ITERNEXT = 25 };
    void **slots = (void **)((char *)type + sizeof(PyVarObject));
    if (slots[ITER] != PyType_GetSlot(type, Py_tp_iter) || slots[ITERNEXT] != PyType_GetSlot(type, Py_tp_iternext))
        return NULL;
    return (iternextfunc *)&slots[ITERNEXT];
}

/* Record the iteration over objects of a type; answers whether that is possible. */
static PyObject *wrap_next(PyObject *module, PyObject *arguments) {
    PyObject *type, *rest;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyType_Type, &type, &PyTuple_Type, &rest))
        return NULL;
    iternextfunc *place = place_of_next((PyTypeObject *)type);
    if (!place || !*place || iterated == ITERATIONS)
        Py_RETURN_FALSE;
    struct call *call = &iterations[iterated];
    if (!fill_call(call, NULL, rest))
        return NULL;
    call->next = *place;
    *place = nexts[iterated++];
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_TRUE;
}

static PyObject *unwrap_next(PyObject *module, PyObject *type) {
    iternextfunc *place = place_of_next((PyTypeObject *)type);
    (void)module;
    for (int at = 0; place && at < iterated; at++)
        if (*place == nexts[at])
            *place = iterations[at].next;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}

/* Set an attribute of a type that Python holds for immutable: (type, its real dictionary, name, value). */
static PyObject *put_attribute(PyObject *module, PyObject *arguments) {
    PyObject *type, *dictionary, *name, *value;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!O!UO", &PyType_Type, &type, &PyDict_Type, &dictionary, &name, &value))
        return NULL;
    if (PyDict_SetItem(dictionary, name, value))
        return NULL;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}

static PyObject *gone(PyObject *self, PyObject *reference) {
    PyObject *address = PyLong_AsVoidPtr(self);
    (void)reference;
    struct object *known = find(address);
    if (known && known->closes) {
        struct thread *thread = this_thread();
        uint64_t time = now();
        if (thread)
            event(thread, time, time, NOTE_CLOSED, 0, known->number, 0);
    }
    forget(address);
    Py_RETURN_NONE;
}

static PyMethodDef gone_definition = {"gone", gone, METH_O, NULL};

/* Know an object, until it is gone: (object, number, kind, whether it is then closed); answers whether it can be. */
static PyObject *track(PyObject *module, PyObject *arguments) {
    PyObject *object;
    unsigned number, kind;
    int closes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OIIp", &object, &number, &kind, &closes))
        return NULL;
    PyObject *address = PyLong_FromVoidPtr(object);
    PyObject *callback = address ? PyCFunction_NewEx(&gone_definition, address, NULL) : NULL;
    PyObject *reference = callback ? PyWeakref_NewRef(object, callback) : NULL;
    Py_XDECREF(address);
    Py_XDECREF(callback);
    if (!reference) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    if (remember(object, reference, number, (uint16_t)kind, closes)) {
        Py_DECREF(reference);
        return PyErr_NoMemory();
    }
    Py_RETURN_TRUE;
}

static PyObject *number_of(PyObject *module, PyObject *object) {
    struct object *known = find(object);
    (void)module;
    return PyLong_FromUnsignedLong(known ? known->number : 0);
}

static PyObject *open_recording(PyObject *module, PyObject *arguments) {
    PyObject *path;
    long long read, written;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&LL", PyUnicode_FSConverter, &path, &read, &written))
        return NULL;
    ending = false;
    int error = recording_open(PyBytes_AsString(path), read, written);
    Py_DECREF(path);
    if (!error)
        Py_RETURN_NONE;
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *close_recording(PyObject *module, PyObject *arguments) {
    long long read, written;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "LL", &read, &written))
        return NULL;
    recording_close(read, written);
    ending = true;
    Py_RETURN_NONE;
}

static PyObject *write_event(PyObject *module, PyObject *arguments) {
    unsigned api, object, flags;
    unsigned long long start, end;
    long long amount;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "IIKKLI", &api, &object, &start, &end, &amount, &flags))
        return NULL;
    struct thread *thread = this_thread();
    if (thread)
        event(thread, start, end, (uint16_t)api, (uint16_t)flags, object, amount);
    Py_RETURN_NONE;
}

static PyObject *write_text(PyObject *module, PyObject *arguments) {
    unsigned api, object;
    unsigned long long start;
    PyObject *bytes;
    char *text;
    Py_ssize_t size;
    (void)module;
    /* Not "y#": what is built with Python 3.13 or later and uses it is refused by the Pythons before. */
    if (!PyArg_ParseTuple(arguments, "IIKO", &api, &object, &start, &bytes) ||
        PyBytes_AsStringAndSize(bytes, &text, &size) < 0)
        return NULL;
    struct thread *thread = this_thread();
    if (thread)
        event_text(thread, start, (uint16_t)api, object, text, (size_t)size);
    Py_RETURN_NONE;
}

/* Number of this thread, and of its island; the island becomes another one where a number is given. */
static PyObject *thread_state(PyObject *module, PyObject *arguments) {
    long island = -1;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "|l", &island))
        return NULL;
    struct thread *thread = this_thread();
    PyObject *answer = Py_BuildValue("ll", thread ? (long)thread->number : -1, thread ? (long)thread->island : 0);
    if (thread && island >= 0)
        thread->island = (uint32_t)island;
    return answer;
}

static PyObject *end_thread(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    thread_ends();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"open", open_recording, METH_VARARGS, NULL},
    {"close", close_recording, METH_VARARGS, NULL},
    {"wrap", wrap, METH_VARARGS, NULL},
    {"wrap_next", wrap_next, METH_VARARGS, NULL},
    {"unwrap_next", unwrap_next, METH_O, NULL},
    {"put_attribute", put_attribute, METH_VARARGS, NULL},
    {"track", track, METH_VARARGS, NULL},
    {"number_of", number_of, METH_O, NULL},
    {"event", write_event, METH_VARARGS, NULL},
    {"text", write_text, METH_VARARGS, NULL},
    {"thread_state", thread_state, METH_VARARGS, NULL},
    {"thread_ends", end_thread, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_recorder", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__recorder(void) { return PyModule_Create(&definition); }
