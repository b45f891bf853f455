"""Engines with one interface: bind inputs, call, take results.

Every engine is called the way that costs it least: what can be bound is bound before the clock
starts. A call that runs in another process returns its own wall and processor time; the others
return nothing and are timed by the caller. Each engine's package is imported when it is asked for,
so that a process has only what it needs.
"""

import ctypes
import json
import os
import subprocess

import numpy as np

from inputs import DTYPES, NAMES


class Deployed:
    """A deployed crate, through its C interface."""

    def __init__(self, _form, entry, _threads):
        self.library = ctypes.CDLL(entry["library"])
        self.library.metainfer_create.restype = ctypes.c_void_p
        self.library.metainfer_describe.restype = ctypes.c_char_p
        self.library.metainfer_last_error.restype = ctypes.c_char_p
        self.library.metainfer_run.argtypes = [ctypes.c_void_p] * 3
        self.model = self.library.metainfer_create()
        if not self.model:
            raise RuntimeError(self.library.metainfer_last_error().decode())
        self.description = json.loads(self.library.metainfer_describe())
        empty = lambda spec: aligned(spec["shape"], DTYPES[spec["dtype"]])
        self.inputs = [empty(spec) for spec in self.description["inputs"]]
        self.outputs = [empty(spec) for spec in self.description["outputs"]]
        pointers = lambda arrays: (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        self.pointers = pointers(self.inputs), pointers(self.outputs)
        self.arguments = (
            self.model,
            ctypes.addressof(self.pointers[0]),
            ctypes.addressof(self.pointers[1]),
        )

    def bind(self, inputs):
        for array, spec in zip(self.inputs, self.description["inputs"]):
            array[...] = inputs[spec["name"]]

    def call(self):
        code = self.library.metainfer_run(*self.arguments)
        if code:
            raise RuntimeError(f"metainfer_run returned {code}")

    def results(self):
        specs = self.description["outputs"]
        return {spec["name"]: array.copy() for spec, array in zip(specs, self.outputs)}


class OnnxRuntime:
    """onnxruntime: `run`, or `run_with_iobinding` on arrays bound beforehand."""

    def __init__(self, form, entry, threads):
        import onnxruntime
        self.ort_value = onnxruntime.OrtValue.ortvalue_from_numpy
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Its threads spin while it runs, but not on into another engine's turn.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(
            form["fixed_onnx"], options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.bound = entry["is_bound"]

    def bind(self, inputs):
        self.inputs = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        if not self.bound:
            return
        self.outputs = self.session.run(None, self.inputs)
        self.binding = self.session.io_binding()
        self.values = {name: self.ort_value(array) for name, array in self.inputs.items()}
        for name, array in self.values.items():
            self.binding.bind_ortvalue_input(name, array)
        self.out_values = [self.ort_value(array) for array in self.outputs]
        for name, array in zip(self.names, self.out_values):
            self.binding.bind_ortvalue_output(name, array)

    def call(self):
        if self.bound:
            self.session.run_with_iobinding(self.binding)
        else:
            self.outputs = self.session.run(None, self.inputs)

    def results(self):
        if self.bound:
            self.outputs = [value.numpy() for value in self.out_values]
        return {name: np.array(array) for name, array in zip(self.names, self.outputs)}


class OpenVino:
    """OpenVINO's CPU plugin with the f32 hint, on tensors bound beforehand."""

    def __init__(self, form, _entry, threads):
        import openvino
        self.openvino = openvino
        core = openvino.Core()
        self.compiled = core.compile_model(core.read_model(form["fixed_onnx"]), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        })
        self.request = self.compiled.create_infer_request()
        self.names = [spec["name"] for spec in form["outputs"]]

    def bind(self, inputs):
        self.inputs = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        for name, array in self.inputs.items():
            self.request.set_tensor(name, self.openvino.Tensor(array, shared_memory=True))

    def call(self):
        self.request.infer(share_outputs=True)

    def results(self):
        outputs = self.request.model_outputs
        return {name: np.array(self.request.get_output_tensor(idx).data)
                for idx, name in enumerate(self.names) if idx < len(outputs)}


class Tract:
    """tract, which has one thread; its inputs are its own tensors."""

    def __init__(self, form, _entry, threads):
        if threads > 1:
            raise RuntimeError("its Python package runs a model on one thread")
        import tract
        self.tract = tract
        model = tract.onnx().load(form["fixed_onnx"])
        self.specs = {spec["name"]: spec for spec in form["inputs"]}
        self.order = [model.input_name(idx) for idx in range(model.input_count())]
        for idx, name in enumerate(self.order):
            spec = self.specs[name]
            sizes = ",".join(str(size) for size in [*spec["shape"], spec["dtype"]])
            model.set_input_fact(idx, sizes)
        for idx in range(model.output_count()):
            model.set_output_fact(idx, None)
        self.state = model.into_model().into_runnable().spawn_state()
        self.names = [spec["name"] for spec in form["outputs"]]

    def bind(self, inputs):
        self.inputs = [self.tract.Tensor.from_numpy(np.asarray(inputs[name], order="C"))
                       for name in self.order]

    def call(self):
        self.outputs = self.state.run(self.inputs)

    def results(self):
        return {name: np.array(tensor.to_numpy())
                for name, tensor in zip(self.names, self.outputs)}


class Rten:
    """rten, in a process of its own: `xtask rten`."""

    def __init__(self, form, entry, threads):
        self.specs = form["inputs"]
        self.process = subprocess.Popen(
            [entry["program"], "rten", form["fixed_onnx"], str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.loaded = self.answer()

    def ask(self, command):
        self.process.stdin.write((json.dumps(command) + "\n").encode())
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            lines = self.process.stderr.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(lines[-1] if lines else "it ended")
        return json.loads(line)

    def bind(self, inputs):
        arrays = [np.asarray(inputs[spec["name"]], order="C") for spec in self.specs]
        self.ask({"bind": [
            {"name": spec["name"], "dtype": NAMES[array.dtype], "shape": list(array.shape),
             "bytes": array.tobytes().hex()}
            for spec, array in zip(self.specs, arrays)]})

    def call(self):
        took = self.ask("call")
        return took["wall_ns"], took["cpu_ns"]

    def results(self):
        values = self.ask("results")["values"]
        return {value["name"]: np.frombuffer(
            bytes.fromhex(value["bytes"]), DTYPES[value["dtype"]]).reshape(value["shape"])
            for value in values}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


ENGINES = {
    "ours": Deployed,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "tract": Tract,
    "rten": Rten,
}
# What is imported before the clock of a start runs; ours has nothing to import.
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "tract": "tract"}


def open_engine(spec, entry):
    """Loads the engine of an entry."""
    form = spec["forms"][entry["precision"]]
    return ENGINES[entry["engine"]](form, entry, spec["threads"])


def aligned(shape, dtype):
    """Returns zeros that start on a cache line."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + n_bytes].view(dtype).reshape(shape)
