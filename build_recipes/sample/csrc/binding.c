#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "mps_build_sample/core.h"

static PyObject* operators(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  size_t count = sample_operator_count();
  PyObject* names = PyList_New((Py_ssize_t)count);
  for (size_t index = 0; names != NULL && index < count; ++index) {
    PyObject* name = PyUnicode_FromString(sample_operator_name(index));
    if (name == NULL) {
      Py_CLEAR(names);
      break;
    }
    PyList_SET_ITEM(names, (Py_ssize_t)index, name);
  }
  return names;
}

static PyObject* apply(PyObject* module, PyObject* arguments) {
  (void)module;
  const char* name;
  double value;
  if (!PyArg_ParseTuple(arguments, "sd", &name, &value)) {
    return NULL;
  }
  if (sample_apply(name, &value, 1) != 0) {
    return PyErr_Format(PyExc_KeyError, "no operator %s", name);
  }
  return PyFloat_FromDouble(value);
}

static PyObject* fingerprint(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyLong_FromUnsignedLongLong(sample_fingerprint());
}

static PyObject* mps_built(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyBool_FromLong(sample_mps_built());
}

static PyObject* scale_on_gpu(PyObject* module, PyObject* arguments) {
  (void)module;
  float value;
  float factor;
  if (!PyArg_ParseTuple(arguments, "ff", &value, &factor)) {
    return NULL;
  }
  const char* problem = sample_scale_on_gpu(&value, 1, factor);
  if (problem != NULL) {
    PyErr_SetString(PyExc_RuntimeError, problem);
    return NULL;
  }
  return PyFloat_FromDouble(value);
}

static PyMethodDef methods[] = {
    {"operators", operators, METH_NOARGS, "The names of the operators."},
    {"apply", apply, METH_VARARGS, "apply(name, x): the operator's value at x."},
    {"fingerprint", fingerprint, METH_NOARGS, "A fingerprint of the operator table."},
    {"mps_built", mps_built, METH_NOARGS, "Whether the library was built with MPS."},
    {"scale_on_gpu", scale_on_gpu, METH_VARARGS, "scale_on_gpu(x, factor): the product, computed by Metal."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_C",
    .m_doc = "The binding of libsample_core.",
    .m_size = 0,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__C(void) {
  return PyModuleDef_Init(&definition);
}
