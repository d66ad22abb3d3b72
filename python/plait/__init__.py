"""One neural network on every lane of the chip at once.

    plait.load("model.onnx").plan().run(image)

Errors are plait.Error, with the name of the status in `code`. Objects may be used from any thread; a session runs one inference at a time, and a second,
concurrent one is refused with code "busy".
"""
import ctypes
from ctypes import byref, c_size_t

import numpy

from . import _c
from ._c import Error

__all__ = ["Error", "Lanes", "Model", "Plan", "Session", "Tensor", "load", "features", "version", "zoo"]

_DTYPES = [numpy.dtype(t) for t in ("float32", "float16", "int8", "uint8", "int32", "int64", "bool")]
_EFFORTS = {"fast": 0, "default": 1, "high": 2}
_GPU_USES = {False: 0, True: 1, "required": 2}


def version():
    """Version of the library, "MAJOR.MINOR.PATCH"."""
    return _c.library.plait_version().decode()


def features():
    """What the library was built with, of "xnnpack", "opencl", "onnx"."""
    return _c.library.plait_features().decode().split()


def zoo():
    """Names of the built-in networks, smallest first."""
    names = []
    while (name := _c.library.plait_zoo_name(len(names))) is not None:
        names.append(name.decode())
    return names


class _Handle:
    """Owns a handle of the C API."""

    _kind = None

    def __init__(self, handle):
        self._handle = handle

    def __del__(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            getattr(_c.library, f"plait_{self._kind}_destroy")(handle)


class Tensor:
    """Name, dtype and shape of an input or output, in the model's own layout."""

    def __init__(self, info):
        self.name = info.name.decode(errors="replace")
        self.dtype = _DTYPES[info.dtype]
        self.shape = tuple(info.dims[: info.rank])

    def __repr__(self):
        return f"Tensor({self.name!r}, {self.dtype}, {self.shape})"


class Lanes(_Handle):
    """What this machine computes with: CPU clusters and the GPU.

    clusters: cores of each CPU lane, "0-3/4-6/7"; None: as the system shows them. gpu: True, False or "required". opencl_cpu: cores for a CPU OpenCL device as gpu0.
    cache_dir: folder for measurements and plans; None: nothing is kept.
    """

    _kind = "lanes"

    def __init__(self, clusters=None, gpu=True, opencl_cpu=None, cache_dir=None, strict=False):
        options = _c.LanesOptions(clusters=_c.encode(clusters), opencl_cpu=_c.encode(opencl_cpu), gpu=_GPU_USES[gpu], strict=int(strict), cache_dir=_c.encode(cache_dir))
        super().__init__(_c.make("lanes_open", byref(options)))

    def __len__(self):
        count = c_size_t()
        _c.call("lanes_count", self._handle, byref(count))
        return count.value

    @property
    def names(self):
        names = []
        for lane in range(len(self)):
            info = _c.LaneInfo()
            _c.call("lanes_get", self._handle, lane, byref(info))
            names.append(info.name.decode())
        return names


class Model(_Handle):
    """A network; made by load()."""

    _kind = "model"

    def __init__(self, handle):
        super().__init__(handle)
        info = _c.ModelInfo()
        _c.call("model_get_info", self._handle, byref(info))
        self.name = info.name.decode(errors="replace")
        self.macs, self.parameters = info.macs, info.parameters
        self.inputs = self._tensors("model_get_input", info.input_count)
        self.outputs = self._tensors("model_get_output", info.output_count)

    def _tensors(self, function, count):
        tensors = []
        for i in range(count):
            info = _c.TensorInfo()
            _c.call(function, self._handle, i, byref(info))
            tensors.append(Tensor(info))
        return tensors

    def plan(self, lanes=None, *, file=None, strategy=None, effort="default", tune=True, use_cache=True, seed=1, calibration_seconds_per_lane=30.0, annotations=(), progress=None):
        """How to run the model on `lanes` (None: all of this machine).

        file: read this plan instead of searching. strategy: "search", "lane:NAME", "random:SEED". annotations: dicts with "operators" and any of "pin", "forbid", "whole".
        progress: called with (what, share done, seconds left); a true result ends the planning.
        """
        lanes = Lanes() if lanes is None else lanes
        if file is not None:
            return Plan(_c.make("plan_load", self._handle, lanes._handle, _c.encode(file)), self)
        rows = (_c.Annotation * len(annotations))()
        for row, given in zip(rows, annotations):
            unknown = set(given) - {"operators", "pin", "forbid", "whole"}
            if unknown:
                raise ValueError(f"annotation {given}: unknown {', '.join(sorted(unknown))}")
            row.operators, row.pin, row.forbid = (_c.encode(given.get(key)) for key in ("operators", "pin", "forbid"))
            row.whole = int(given.get("whole", False))
        raised = []

        def show(_, what, done, seconds_left):
            try:
                return int(bool(progress(what.decode(errors="replace"), done, seconds_left)))
            except BaseException as error:  # raised again below: it cannot cross C
                raised.append(error)
                return 1

        options = _c.PlanOptions(effort=_EFFORTS[effort], tune=int(tune), use_cache=int(use_cache), seed=seed, calibration_seconds_per_lane=calibration_seconds_per_lane,
                                 annotations=rows, annotation_count=len(rows), strategy_name=_c.encode(strategy),
                                 progress=_c.Progress() if progress is None else _c.Progress(show))
        try:
            return Plan(_c.make("plan_make", self._handle, lanes._handle, byref(options)), self)
        except Error:
            if raised:
                raise raised[0] from None
            raise


class Plan(_Handle):
    """How a model runs: cuts, lanes, orders, memory. Made by Model.plan()."""

    _kind = "plan"

    def __init__(self, handle, model):
        super().__init__(handle)
        self.model = model
        self._session = None

    def run(self, *inputs, **named):
        """Session.run() of a session that is made once."""
        if self._session is None:
            self._session = self.session()
        return self._session.run(*inputs, **named)

    def session(self, *, timeout_us=10e6, idle_spin_us=50.0, timings=False):
        return Session(_c.make("session_create", self._handle, byref(_c.SessionOptions(timeout_us=timeout_us, idle_spin_us=idle_spin_us, timings=int(timings)))), self.model)

    def save(self, path):
        _c.call("plan_save", self._handle, _c.encode(path))

    def explain(self):
        return _c.text("plan_explain", self._handle)

    def explain_json(self):
        return _c.text("plan_explain_json", self._handle)

    @property
    def info(self):
        """Figures of the plan as a dict: see plait_plan_info."""
        info = _c.PlanInfo()
        _c.call("plan_get_info", self._handle, byref(info))
        return {**_figures(info), "strategy": info.strategy.decode(errors="replace")}


class Session(_Handle):
    """A plan with memory, ready to run; made by Plan.session()."""

    _kind = "session"

    def __init__(self, handle, model):
        super().__init__(handle)
        self.model = model

    def run(self, *inputs, **named):
        """One inference: inputs by place or by name, as arrays that have the model's shapes and can become its dtypes safely. Returns a dict of new arrays by output name."""
        for i, array in self._placed(inputs, named):
            _c.call("session_set_input", self._handle, i, array.ctypes.data, array.nbytes)
        _c.call("session_run", self._handle)
        outputs = {}
        for i, tensor in enumerate(self.model.outputs):
            array = outputs[tensor.name] = numpy.empty(tensor.shape, tensor.dtype)
            _c.call("session_get_output", self._handle, i, array.ctypes.data, array.nbytes)
        return outputs

    def _placed(self, inputs, named):
        tensors = self.model.inputs
        if len(inputs) > len(tensors):
            raise ValueError(f"{len(inputs)} inputs were given, the model has {len(tensors)}: {tensors}")
        given = dict(enumerate(inputs))
        for name, value in named.items():
            places = [i for i, tensor in enumerate(tensors) if tensor.name == name]
            if not places or places[0] in given:
                raise ValueError(f"input {name!r} is " + ("given twice" if places else f"unknown; the model has {tensors}"))
            given[places[0]] = value
        if len(given) < len(tensors):
            raise ValueError("inputs are missing: " + ", ".join(repr(t) for i, t in enumerate(tensors) if i not in given))
        for i, value in given.items():
            array = numpy.asarray(value)
            if not numpy.can_cast(array.dtype, tensors[i].dtype, "same_kind"):
                raise ValueError(f"{tensors[i]} cannot be made of {array.dtype} without loss")
            if array.shape != tensors[i].shape:
                raise ValueError(f"{tensors[i]} was given an array of shape {array.shape}")
            yield i, numpy.ascontiguousarray(array, tensors[i].dtype)

    def cancel(self):
        """Ends the inference in progress, in any thread, with code "cancelled"."""
        _c.call("session_cancel", self._handle)

    def trace(self, path):
        """Writes the last inference for ui.perfetto.dev; needs session(timings=True)."""
        _c.call("session_trace", self._handle, _c.encode(path))

    @property
    def stats(self):
        """Counts and times as a dict: see plait_session_stats."""
        stats = _c.SessionStats()
        _c.call("session_get_stats", self._handle, byref(stats))
        return _figures(stats)


def _figures(struct):
    return {name: getattr(struct, name) for name, _ in struct._fields_ if name != "size"}


def load(model, shapes=None):
    """A model from a file (ONNX or Plait's JSON), from bytes, or, by name, from the zoo.

    shapes: sizes for inputs whose file leaves dimensions open, by input name.
    """
    if isinstance(model, str) and model in zoo():
        if shapes:
            raise ValueError(f"{model} is a zoo network; its shapes are fixed")
        return Model(_c.make("model_load_zoo", model.encode()))
    rows = (_c.Shape * len(shapes or {}))()
    for row, (name, dims) in zip(rows, (shapes or {}).items()):
        row.input, row.rank = name.encode(), len(dims)
        row.dims = (ctypes.c_int64 * len(dims))(*dims)
    options = _c.ModelOptions(shapes=rows, shape_count=len(rows))
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        return Model(_c.make("model_load_memory", data, len(data), byref(options)))
    return Model(_c.make("model_load_file", _c.encode(model), byref(options)))
