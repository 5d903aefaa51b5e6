/* The compiled module of extension.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

__attribute__((noinline)) long squared(long n) { return n * n; }

static PyObject *square(PyObject *module, PyObject *number) {
  long value = PyLong_AsLong(number);
  return value == -1 && PyErr_Occurred() ? NULL : PyLong_FromLong(squared(value));
}

static PyObject *keep(PyObject *module, PyObject *number) {
  long size = PyLong_AsLong(number);
  volatile char *block = malloc(size > 0 ? size : 1);
  block[0] = 42;
  PyObject *result = PyLong_FromLong(block[0]);
  free((void *)block);
  return result;
}

static PyMethodDef methods[] = {
    {"square", square, METH_O, NULL}, {"keep", keep, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods};

PyMODINIT_FUNC PyInit_extension(void) { return PyModule_Create(&definition); }
