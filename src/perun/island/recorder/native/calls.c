#include "calls.h"

enum { FEW = 8 };

bool ending;

static PyObject *run(struct call *call, PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names,
                     bool method) {
    if (call->next)
        return call->next(self);
    if (!method)
        return PyObject_Vectorcall(call->original, arguments, (size_t)count, names);
    Py_ssize_t all = count + (names ? PyTuple_Size(names) : 0);
    PyObject *few[FEW], **copy = few;
    if (all >= FEW && !(copy = PyMem_Malloc((size_t)(all + 1) * sizeof *copy)))
        return PyErr_NoMemory();
    copy[0] = self;
    for (Py_ssize_t at = 0; at < all; at++)
        copy[at + 1] = arguments[at];
    PyObject *result = PyObject_Vectorcall(call->original, copy, (size_t)count + 1, names);
    if (copy != few)
        PyMem_Free(copy);
    return result;
}

static int64_t length(PyObject *object) {
    if (!object)
        return 0;
    if (PyBytes_Check(object))
        return PyBytes_Size(object);
    if (PyUnicode_Check(object))
        return PyUnicode_GetLength(object);
    Py_buffer view;
    if (PyObject_CheckBuffer(object) && PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) == 0) {
        int64_t bytes = view.len;
        PyBuffer_Release(&view);
        return bytes;
    }
    PyErr_Clear();
    return 0;
}

static int64_t integer(PyObject *object) {
    int64_t value = object && PyLong_Check(object) ? PyLong_AsLongLong(object) : 0;
    if (value == -1 && PyErr_Occurred())
        PyErr_Clear();
    return value;
}

static int64_t nanoseconds(PyObject *seconds) {
    double value = seconds ? PyFloat_AsDouble(seconds) : 0;
    if (PyErr_Occurred())
        PyErr_Clear();
    return value > 0 && value < 9e9 ? (int64_t)(value * 1e9 + 0.5) : 0;
}

static int64_t amount_of(struct call *call, PyObject *result, PyObject *first, struct frame *frame) {
    switch (call->amount) {
    case ONE:
        return 1;
    case RESULT:
        return integer(result);
    case LENGTH_OF_RESULT:
        return length(result);
    case LENGTH_OF_FIRST:
        return length(first);
    case NANOSECONDS_OF_FIRST:
        return nanoseconds(first);
    case FIRST_OF_RESULT:
        if (result && PyTuple_Check(result) && PyTuple_Size(result) > 0) {
            PyObject *part = PyTuple_GetItem(result, 0);
            return PyLong_Check(part) ? integer(part) : length(part);
        }
        return 0;
    case NESTED:
        return frame ? frame->nested : 0;
    default:
        return 0;
    }
}

/* An error of the program passes through what is done for the record; other errors are none of the program's. */
static PyObject *ask(PyObject *function, PyObject *arguments, bool may_refuse) {
    struct thread *thread = this_thread();
    if (!arguments) {
        PyErr_Clear();
        return NULL;
    }
    if (thread)
        thread->ignoring++;
    PyObject *answer = PyObject_CallObject(function, arguments);
    Py_DECREF(arguments);
    if (thread && thread == this_thread())
        thread->ignoring -= thread->ignoring > 0;
    if (!answer && !may_refuse) {
        bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
        PyErr_Clear();
        if (interrupted)
            PyErr_SetInterrupt(); /* it is the program's, which is asked again when this is done */
    }
    return answer;
}

static uint32_t described(struct call *call, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *names, PyObject *result, uint64_t start) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *words = PyTuple_New(count);
    for (Py_ssize_t at = 0; words && at < count; at++) {
        Py_INCREF(arguments[at]);
        PyTuple_SetItem(words, at, arguments[at]);
    }
    PyObject *named = PyDict_New();
    for (Py_ssize_t at = 0; named && names && at < PyTuple_Size(names); at++)
        PyDict_SetItem(named, PyTuple_GetItem(names, at), arguments[count + at]);
    PyObject *answer = NULL;
    if (words && named)
        answer = ask(call->describe,
                     Py_BuildValue("OOOOK", self ? self : Py_None, words, named, result ? result : Py_None,
                                   (unsigned long long)start),
                     false);
    Py_XDECREF(words);
    Py_XDECREF(named);
    uint32_t number = answer && PyLong_Check(answer) ? (uint32_t)integer(answer) : 0;
    Py_XDECREF(answer);
    PyErr_Restore(type, value, trace);
    return number;
}

/* Wait as the limits say, and note it; false where the wait was interrupted by an exception. */
static bool limited(struct call *call, struct frame *frame, uint16_t api, uint32_t object, int64_t amount) {
    PyObject *answer = ask(call->after, Py_BuildValue("(IL)", (unsigned)api, (long long)amount), true);
    if (!answer)
        return false;
    int64_t deadline = integer(answer);
    Py_DECREF(answer);
    struct thread *thread = this_thread();
    if (deadline > 0 && thread && frame->generation == thread->generation)
        event(thread, frame->start, (uint64_t)deadline, NOTE_EXPECTED, 0, object, 1);
    return true;
}

static bool allowed(PyObject *before, uint16_t api) {
    PyObject *answer = ask(before, Py_BuildValue("(I)", (unsigned)api), true);
    Py_XDECREF(answer);
    return answer != NULL;
}

static void undone(PyObject *failed, uint16_t api) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(ask(failed, Py_BuildValue("(I)", (unsigned)api), false));
    PyErr_Restore(type, value, trace);
}

/* Part of another call on the same object. */
static PyObject *absorbed(struct call *call, struct frame *outer, PyObject *self, PyObject *const *arguments,
                          Py_ssize_t count, PyObject *names, bool method) {
    outer->absorbing++;
    PyObject *result = run(call, self, arguments, count, names, method);
    struct thread *thread = this_thread();
    if (!thread || thread->generation != outer->generation)
        return result;
    outer->absorbing--;
    if (result && call->rules & RAW)
        outer->physical += amount_of(call, result, count ? arguments[0] : NULL, NULL);
    else if (result && !outer->absorbing)
        outer->nested += amount_of(call, result, count ? arguments[0] : NULL, NULL);
    return result;
}

PyObject *invoke(struct call *call, PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names,
                 bool method) {
    struct thread *thread = this_thread();
    if (!thread || thread->ignoring)
        return run(call, self, arguments, count, names, method);
    struct object *known = call->rules & OF_SELF && self ? find(self) : NULL;
    if (call->rules & OF_SELF && !known && (!call->describe || call->rules & CLOSES))
        return run(call, self, arguments, count, names, method);
    uint32_t object = known ? known->number : 0;
    uint16_t api = (uint16_t)(call->api + (known && call->rules & BY_KIND ? known->kind : 0));
    if (object && thread->top && thread->top->object == object)
        return absorbed(call, thread->top, self, arguments, count, names, method);
    if (call->before && !ending && !allowed(call->before, api))
        return NULL;
    struct frame *frame = begin(thread, api, object);
    if (!frame)
        return run(call, self, arguments, count, names, method);
    /* What is asked of a sleep counts however it ends. */
    int64_t asked = call->amount == NANOSECONDS_OF_FIRST && count ? nanoseconds(arguments[0]) : 0;
    if (asked && frame->slot)
        frame->slot->amount = asked;
    /* A signal that came while this was noted would else be seen only after a long wait. */
    bool is_wait = asked || call->rules & ONLY_LONG;
    PyObject *result = is_wait && PyErr_CheckSignals() < 0 ? NULL : run(call, self, arguments, count, names, method);
    uint64_t end = now();
    uint16_t flags = result || !PyErr_Occurred() ? 0 : RAISED;
    thread = this_thread();
    if (!thread || frame->generation != thread->generation) {
        drop(frame);
        return result;
    }
    if (call->rules & ONLY_LONG && end - frame->start < LONG) {
        finish(thread, frame, end, 0, 0, 0, 0);
        return result;
    }
    if (call->describe && !ending && (!known || call->rules & ALWAYS || end - frame->start >= LONG)) {
        uint32_t number = described(call, self, arguments, count, names, result, frame->start);
        object = number ? number : object;
        if (call->rules & BY_KIND && self && (known = find(self)))
            api = (uint16_t)(call->api + known->kind);
    }
    int64_t amount = result ? amount_of(call, result, count ? arguments[0] : NULL, frame) : asked;
    if (!result && call->failed && !ending)
        undone(call->failed, api);
    if (result && call->after && !ending) {
        if (!limited(call, frame, api, object, amount)) {
            Py_DECREF(result);
            result = NULL;
            flags = RAISED;
        }
        end = now();
        thread = this_thread();
        if (!thread || frame->generation != thread->generation) {
            drop(frame);
            return result;
        }
    }
    if (call->rules & RAW) {
        frame->physical = 0;
        flags |= PHYSICAL;
    }
    finish(thread, frame, end, api, object, amount, flags);
    if (call->rules & CLOSES && object)
        event(thread, end, end, NOTE_CLOSED, 0, object, 0);
    return result;
}

PyObject *next_item(struct call *call, PyObject *self) { return invoke(call, self, NULL, 0, NULL, true); }
