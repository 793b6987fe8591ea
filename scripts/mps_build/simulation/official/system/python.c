/* Python's interface: Linux' Python has the layouts, only variadic calls and errno differ. */
#define _GNU_SOURCE
#include "system.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef void object;
void restore_errno(void);

/* A function of the Python that runs; it is there, or this library would not have been loaded by it. */
static void *python(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address) {
        fprintf(stderr, "mps-build: this Python has no %s\n", name);
        abort();
    }
    return address;
}
#define PYTHON(result, name, ...)                              \
    static result (*own_##name)(__VA_ARGS__);                  \
    if (!own_##name) own_##name = python(#name)

object *darwin_PyErr_Format(object *type, const char *format, void *rest) {
    PYTHON(object *, PyErr_FormatV, object *, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_PyErr_FormatV(type, format, list);
}
object *darwin_PyUnicode_FromFormat(const char *format, void *rest) {
    PYTHON(object *, PyUnicode_FromFormatV, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_PyUnicode_FromFormatV(format, list);
}
object *darwin_PyBytes_FromFormat(const char *format, void *rest) {
    PYTHON(object *, PyBytes_FromFormatV, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_PyBytes_FromFormatV(format, list);
}
int darwin_PyArg_ParseTuple(object *tuple, const char *format, void *rest) {
    PYTHON(int, PyArg_VaParse, object *, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_PyArg_VaParse(tuple, format, list);
}
int darwin_PyArg_ParseTupleAndKeywords(object *tuple, object *keywords, const char *format, char **names, void *rest) {
    PYTHON(int, PyArg_VaParseTupleAndKeywords, object *, object *, const char *, char **, va_list);
    ARGUMENTS(list, rest);
    return own_PyArg_VaParseTupleAndKeywords(tuple, keywords, format, names, list);
}
object *darwin_Py_BuildValue(const char *format, void *rest) {
    PYTHON(object *, Py_VaBuildValue, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_Py_VaBuildValue(format, list);
}
int darwin_PyErr_WarnFormat(object *category, long level, const char *format, void *rest) {
    PYTHON(int, PyErr_WarnEx, object *, const char *, long);
    PYTHON(const char *, PyUnicode_AsUTF8, object *);
    PYTHON(void, Py_DecRef, object *);
    object *text = darwin_PyUnicode_FromFormat(format, rest);
    if (!text) return -1;
    int result = own_PyErr_WarnEx(category, own_PyUnicode_AsUTF8(text), level);
    own_Py_DecRef(text);
    return result;
}
void darwin_PySys_WriteStderr(const char *format, void *rest) {
    ARGUMENTS(list, rest);
    vfprintf(stderr, format, list);
}
int darwin_PyOS_snprintf(char *to, size_t size, const char *format, void *rest) {
    PYTHON(int, PyOS_vsnprintf, char *, size_t, const char *, va_list);
    ARGUMENTS(list, rest);
    return own_PyOS_vsnprintf(to, size, format, list);
}

static object *tuple_of(object **items, long count) {
    PYTHON(object *, PyTuple_New, long);
    PYTHON(int, PyTuple_SetItem, object *, long, object *);
    PYTHON(void, Py_IncRef, object *);
    object *tuple = own_PyTuple_New(count);
    for (long i = 0; tuple && i < count; i++) {
        own_Py_IncRef(items[i]);
        own_PyTuple_SetItem(tuple, i, items[i]);
    }
    return tuple;
}
object *darwin_PyTuple_Pack(long count, void *rest) { return tuple_of(rest, count); }

static object *called(object *callable, object *arguments) {
    PYTHON(object *, PyObject_CallObject, object *, object *);
    PYTHON(void, Py_DecRef, object *);
    object *result = callable && arguments ? own_PyObject_CallObject(callable, arguments) : NULL;
    if (arguments) own_Py_DecRef(arguments);
    if (callable) own_Py_DecRef(callable);
    return result;
}
static object *held(object *callable) {
    PYTHON(void, Py_IncRef, object *);
    if (callable) own_Py_IncRef(callable);
    return callable;
}
/* One argument that is a tuple is the arguments themselves, as CPython says. */
static object *arguments_of(const char *format, void *rest) {
    PYTHON(object *, Py_VaBuildValue, const char *, va_list);
    PYTHON(int, PyType_IsSubtype, object *, object *);
    PYTHON(void, Py_DecRef, object *);
    if (!format || !*format) return tuple_of(NULL, 0);
    ARGUMENTS(list, rest);
    object *value = own_Py_VaBuildValue(format, list);
    static object *tuple_type;
    if (!tuple_type) tuple_type = python("PyTuple_Type");
    if (!value || own_PyType_IsSubtype(((object **)value)[1], tuple_type)) return value;
    object *tuple = tuple_of(&value, 1);
    own_Py_DecRef(value);
    return tuple;
}
static object *attribute(object *owner, const char *name) {
    PYTHON(object *, PyObject_GetAttrString, object *, const char *);
    return own_PyObject_GetAttrString(owner, name);
}
static long count_of(object **items) {
    long count = 0;
    while (items[count]) count++;
    return count;
}
object *darwin_PyObject_CallFunction(object *callable, const char *format, void *rest) { return called(held(callable), arguments_of(format, rest)); }
object *darwin_PyObject_CallMethod(object *owner, const char *name, const char *format, void *rest) {
    object *callable = attribute(owner, name);
    return callable ? called(callable, arguments_of(format, rest)) : NULL;
}
object *darwin_PyObject_CallFunctionObjArgs(object *callable, void *rest) { return called(held(callable), tuple_of(rest, count_of(rest))); }
object *darwin_PyObject_CallMethodObjArgs(object *owner, object *name, void *rest) {
    PYTHON(object *, PyObject_GetAttr, object *, object *);
    object *callable = own_PyObject_GetAttr(owner, name);
    return callable ? called(callable, tuple_of(rest, count_of(rest))) : NULL;
}

object *darwin_PyErr_SetFromErrno(object *type) {
    PYTHON(object *, PyErr_SetFromErrno, object *);
    restore_errno();
    return own_PyErr_SetFromErrno(type);
}
object *darwin_PyErr_SetFromErrnoWithFilename(object *type, const char *name) {
    PYTHON(object *, PyErr_SetFromErrnoWithFilename, object *, const char *);
    restore_errno();
    return own_PyErr_SetFromErrnoWithFilename(type, name);
}

/* _PyRuntime, as code for macOS looks into it. Up to 3.11 it holds the GIL's two mutexes, of 64 bytes there and of 48
   here, before what such code reads: the thread that runs (torch's frames, for torch.compile). */
void *python_runtime(void) {
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");    /* since 3.11 */
    char *runtime = python("_PyRuntime");
    enum { DIFFERENCE = 2 * (64 - sizeof(pthread_mutex_t)) };
    return version && *version >= 0x030c0000 ? runtime : runtime - DIFFERENCE;
}
