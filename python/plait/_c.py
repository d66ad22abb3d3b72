"""The C API (plait/plait.h) by ctypes: the functions that this package uses, their structs, and failures as exceptions."""
import ctypes
import ctypes.util
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

ABI_VERSION = 0
MAX_RANK = 8


class Error(RuntimeError):
    """A call that failed: `code` is the name of its plait_status, e.g. "not_found"."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Sized(ctypes.Structure):
    """A struct whose first member is its size."""

    def __init__(self, **values):
        super().__init__(ctypes.sizeof(type(self)), **values)


class LanesOptions(Sized):
    _fields_ = [("size", c_size_t), ("clusters", c_char_p), ("opencl_cpu", c_char_p), ("gpu", c_int32), ("strict", c_int32), ("cache_dir", c_char_p),
                ("opencl_context", c_void_p), ("opencl_device", c_void_p), ("opencl_queue", c_void_p)]


class LaneInfo(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("description", c_char_p), ("cpus", POINTER(c_int32)), ("cpu_count", c_size_t), ("is_gpu", c_int32),
                ("is_coherent", c_int32)]


class Shape(ctypes.Structure):
    _fields_ = [("input", c_char_p), ("dims", POINTER(c_int64)), ("rank", c_size_t)]


class ModelOptions(Sized):
    _fields_ = [("size", c_size_t), ("shapes", POINTER(Shape)), ("shape_count", c_size_t)]


class TensorInfo(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("dtype", c_int32), ("rank", c_int32), ("dims", c_int64 * MAX_RANK), ("bytes", c_uint64)]


class ModelInfo(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("hash", c_uint64), ("parameters", c_uint64), ("macs", c_uint64), ("input_count", c_uint32),
                ("output_count", c_uint32), ("operator_count", c_uint32), ("reserved", c_uint32)]


class Annotation(ctypes.Structure):
    _fields_ = [("operators", c_char_p), ("pin", c_char_p), ("forbid", c_char_p), ("whole", c_int32), ("reserved", c_int32)]


Progress = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_double, c_double)


class PlanOptions(Sized):
    _fields_ = [("size", c_size_t), ("effort", c_int32), ("tune", c_int32), ("use_cache", c_int32), ("seed", c_uint64), ("calibration_seconds_per_lane", c_double),
                ("annotations", POINTER(Annotation)), ("annotation_count", c_size_t), ("strategy_name", c_char_p), ("strategy", c_void_p), ("strategy_user", c_void_p),
                ("progress", Progress), ("progress_user", c_void_p)]


class PlanInfo(Sized):
    _fields_ = [("size", c_size_t), ("strategy", c_char_p), ("predicted_us", c_double), ("lower_bound_us", c_double), ("planning_us", c_double), ("measured_us", c_double),
                ("best_single_us", c_double), ("memory_bytes", c_uint64), ("part_count", c_uint32), ("handoff_count", c_uint32), ("segment_count", c_uint32),
                ("from_cache", c_uint32)]


class SessionOptions(Sized):
    _fields_ = [("size", c_size_t), ("timeout_us", c_double), ("idle_spin_us", c_double), ("timings", c_int32), ("reserved", c_int32)]


class SessionStats(Sized):
    _fields_ = [("size", c_size_t), ("runs", c_uint64), ("failed", c_uint64), ("last_us", c_double), ("min_us", c_double), ("max_us", c_double), ("mean_us", c_double),
                ("predicted_us", c_double), ("memory_bytes", c_uint64), ("copied_bytes", c_uint64)]


_SIGNATURES = {
    "plait_lanes_open": [POINTER(LanesOptions), POINTER(c_void_p)],
    "plait_lanes_destroy": [c_void_p],
    "plait_lanes_count": [c_void_p, POINTER(c_size_t)],
    "plait_lanes_get": [c_void_p, c_size_t, POINTER(LaneInfo)],
    "plait_model_load_file": [c_char_p, POINTER(ModelOptions), POINTER(c_void_p)],
    "plait_model_load_memory": [c_char_p, c_size_t, POINTER(ModelOptions), POINTER(c_void_p)],
    "plait_model_load_zoo": [c_char_p, POINTER(c_void_p)],
    "plait_model_destroy": [c_void_p],
    "plait_model_get_info": [c_void_p, POINTER(ModelInfo)],
    "plait_model_get_input": [c_void_p, c_size_t, POINTER(TensorInfo)],
    "plait_model_get_output": [c_void_p, c_size_t, POINTER(TensorInfo)],
    "plait_plan_make": [c_void_p, c_void_p, POINTER(PlanOptions), POINTER(c_void_p)],
    "plait_plan_load": [c_void_p, c_void_p, c_char_p, POINTER(c_void_p)],
    "plait_plan_save": [c_void_p, c_char_p],
    "plait_plan_destroy": [c_void_p],
    "plait_plan_get_info": [c_void_p, POINTER(PlanInfo)],
    "plait_plan_explain": [c_void_p, POINTER(c_void_p)],
    "plait_plan_explain_json": [c_void_p, POINTER(c_void_p)],
    "plait_session_create": [c_void_p, POINTER(SessionOptions), POINTER(c_void_p)],
    "plait_session_destroy": [c_void_p],
    "plait_session_set_input": [c_void_p, c_size_t, c_void_p, c_size_t],
    "plait_session_get_output": [c_void_p, c_size_t, c_void_p, c_size_t],
    "plait_session_run": [c_void_p],
    "plait_session_cancel": [c_void_p],
    "plait_session_get_stats": [c_void_p, POINTER(SessionStats)],
    "plait_session_trace": [c_void_p, c_char_p],
}


def _load():
    # What the user names, what the wheel brought, what the system has.
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libplait.so.0")
    name = os.environ.get("PLAIT_LIBRARY") or (bundled if os.path.exists(bundled) else None) or ctypes.util.find_library("plait") or "libplait.so.0"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"Plait's library was not found ({error}); install it, or name it in PLAIT_LIBRARY") from error
    library.plait_abi_version.restype = c_uint32
    if library.plait_abi_version() != ABI_VERSION:
        raise ImportError(f"{name} has ABI version {library.plait_abi_version()}, this package needs {ABI_VERSION}")
    for function in ("plait_version", "plait_features", "plait_last_error"):
        getattr(library, function).restype = c_char_p
    library.plait_status_name.restype = c_char_p
    library.plait_zoo_name.restype = c_char_p
    library.plait_zoo_name.argtypes = [c_size_t]
    library.plait_string_free.restype = None
    library.plait_string_free.argtypes = [c_void_p]
    for function, arguments in _SIGNATURES.items():
        getattr(library, function).argtypes = arguments
        getattr(library, function).restype = ctypes.c_int
    return library


library = _load()


def call(function, *arguments):
    """Calls plait_<function>; raises Error unless it is PLAIT_OK."""
    status = getattr(library, "plait_" + function)(*arguments)
    if status != 0:
        raise Error(library.plait_status_name(status).decode(), library.plait_last_error().decode(errors="replace"))


def make(function, *arguments):
    """Calls plait_<function>, whose last parameter receives a handle; returns the handle."""
    handle = c_void_p()
    call(function, *arguments, byref(handle))
    return handle


def text(function, *arguments):
    """Calls plait_<function>, whose last parameter receives a text; returns the text."""
    pointer = make(function, *arguments)
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        library.plait_string_free(pointer)


def encode(value):
    """A path or name for C; None stays None."""
    return None if value is None else os.fsencode(value)
