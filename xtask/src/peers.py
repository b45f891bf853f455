"""Races deployed models against onnxruntime and OpenVINO: one process, one core, one thread, f32.

Reads a JSON specification from the file named by the first argument and writes the results to the
file named by the second. Every engine is called the way that costs it least: inputs and outputs
are bound before the clock starts. Rounds call all engines in a random order, so that slow phases
of the machine hit all of them alike. The lower quartile counts: of wall time, and of the
process's processor time, which leaves out what other processes take of a busy machine.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import time

SPEC = json.load(open(sys.argv[1]))
os.sched_setaffinity(0, {SPEC["core"]})  # before the engines start threads of their own

import numpy as np
import onnx
import onnxruntime
import openvino

DTYPES = {
    "f32": np.float32, "f16": np.float16, "f64": np.float64, "bool": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}


class Deployed:
    """A deployed crate, through its C interface."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
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

    def __init__(self, path, bound):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.bound = bound

    def bind(self, inputs):
        self.inputs = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        self.outputs = self.session.run(None, self.inputs)
        self.binding = self.session.io_binding()
        value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.values = {name: value(array) for name, array in self.inputs.items()}
        for name, array in self.values.items():
            self.binding.bind_ortvalue_input(name, array)
        self.out_values = [value(array) for array in self.outputs]
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
    """OpenVINO's CPU plugin at f32, on tensors bound beforehand."""

    def __init__(self, path, names):
        core = openvino.Core()
        self.compiled = core.compile_model(core.read_model(path), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        })
        self.request = self.compiled.create_infer_request()
        self.names = names

    def bind(self, inputs):
        self.inputs = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        for name, array in self.inputs.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def call(self):
        self.request.infer(share_outputs=True)

    def results(self):
        outputs = self.request.model_outputs
        return {name: np.array(self.request.get_output_tensor(idx).data)
                for idx, name in enumerate(self.names) if idx < len(outputs)}


def aligned(shape, dtype):
    """Returns zeros that start on a cache line."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + n_bytes].view(dtype).reshape(shape)


def fix_shapes(source, target, shapes):
    """Writes the model with fixed input shapes, which lets both peers fold shape arithmetic."""
    model = onnx.load(source)
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for value in kept:
        if value.name in shapes:
            dims = value.type.tensor_type.shape
            del dims.dim[:]
            for size in shapes[value.name]:
                dims.dim.add().dim_value = size
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(onnx.shape_inference.infer_shapes(model), target)


def random_inputs(specs, ranges, generator):
    inputs = {}
    for spec in specs:
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        if spec["name"] in ranges:
            low, high = ranges[spec["name"]]
            inputs[spec["name"]] = generator.integers(low, high + 1, shape).astype(dtype)
        elif np.issubdtype(dtype, np.floating):
            inputs[spec["name"]] = generator.standard_normal(shape).astype(dtype)
        else:
            inputs[spec["name"]] = generator.integers(0, 2, shape).astype(dtype)
    return inputs


def relative_error(actual, reference):
    """Returns the largest relative L2 distance over the outputs; infinite if one is not finite."""
    worst = 0.0
    for name, expected in reference.items():
        expected, value = expected.astype(np.float64), actual[name].astype(np.float64)
        norm = np.linalg.norm(expected) or 1.0
        error = np.linalg.norm(value.ravel() - expected.ravel()) / norm
        worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return worst


def race(engines, n_rounds, n_warmup, seed):
    """Returns wall and processor time of each call, nanoseconds, by engine."""
    samples = {name: [] for name in engines}
    order = random.Random(seed)
    names = list(engines)
    for engine in engines.values():
        for _ in range(n_warmup):
            engine.call()
    for _ in range(n_rounds):
        order.shuffle(names)
        for name in names:
            call = engines[name].call
            start_cpu = time.process_time_ns()
            start = time.perf_counter_ns()
            call()
            end = time.perf_counter_ns()
            samples[name].append((end - start, time.process_time_ns() - start_cpu))
    return {name: np.array(values) for name, values in samples.items()}


def figures(samples, ours):
    """Returns what one clock says; a peer counts in its fastest form."""
    p25 = {name: float(np.percentile(values, 25)) / 1e3 for name, values in samples.items()}
    peers = {"onnxruntime": min(p25["onnxruntime"], p25["onnxruntime-bound"])}
    if "openvino" in p25:
        peers["openvino"] = p25["openvino"]
    half = len(next(iter(samples.values()))) // 2
    result = {
        "p25_us": p25,
        "median_us": {name: float(np.median(v)) / 1e3 for name, v in samples.items()},
        "p25_us_halves": {
            name: [float(np.percentile(part, 25)) / 1e3 for part in (v[:half], v[half:])]
            for name, v in samples.items()},
        "ratio": {name: {peer: p25[name] / value for peer, value in peers.items()}
                  for name in ours},
    }
    if "tuned" in p25 and "untuned" in p25:
        result["tuned_over_untuned"] = p25["tuned"] / p25["untuned"]
        # Of what is saved against the fastest peer, the part that is owed to tuning.
        gain = min(peers.values()) - p25["tuned"]
        share = (p25["untuned"] - p25["tuned"]) / gain if gain > 0 else None
        result["share_of_gain_by_tuning"] = share
    return result


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def start(name):
    """Prints what it takes this process, which has nothing loaded yet, to a first result."""
    inputs = dict(np.load(SPEC["inputs_file"]))
    names = list(SPEC["output_names"])
    libraries = {ours["name"]: ours["library"] for ours in SPEC["ours"]}
    resident = resident_mib()
    begin = time.perf_counter_ns()
    if name in libraries:
        engine = Deployed(libraries[name])
    elif name == "openvino":
        engine = OpenVino(SPEC["fixed_onnx"], names)
    else:
        engine = OnnxRuntime(SPEC["fixed_onnx"], bound=False)
    loaded = time.perf_counter_ns()
    if name in libraries or name == "openvino":
        engine.bind(inputs)
        bound = time.perf_counter_ns()
        engine.call()
    else:
        bound = time.perf_counter_ns()
        engine.session.run(None, inputs)
    end = time.perf_counter_ns()
    print(json.dumps({
        "load_ms": (loaded - begin) / 1e6,
        "first_ms": (end - bound) / 1e6,
        "memory_mib": resident_mib() - resident,
    }))


def starts(names):
    """Starts each engine in processes of their own; returns medians."""
    result = {}
    for name in names:
        command = [sys.executable, __file__, sys.argv[1], "--start", name]
        runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                for _ in range(5)]
        result[name] = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
    for ours in SPEC["ours"]:
        result[ours["name"]]["disk_mib"] = os.path.getsize(ours["library"]) / 2**20
    for name, package in (("onnxruntime", onnxruntime), ("openvino", openvino)):
        if name in result:
            size = os.path.getsize(SPEC["onnx"]) + sum(
                os.path.getsize(os.path.join(directory, file))
                for directory, _, files in os.walk(os.path.dirname(package.__file__))
                for file in files if ".so" in file)
            result[name]["disk_mib"] = size / 2**20
    return result


def main():
    fix_shapes(SPEC["onnx"], SPEC["fixed_onnx"], SPEC["shapes"])
    engines = {ours["name"]: Deployed(ours["library"]) for ours in SPEC["ours"]}
    specs = next(iter(engines.values())).description["inputs"]
    engines["onnxruntime"] = OnnxRuntime(SPEC["fixed_onnx"], bound=False)
    engines["onnxruntime-bound"] = OnnxRuntime(SPEC["fixed_onnx"], bound=True)
    reference = engines["onnxruntime"]
    missing = {}
    try:
        engines["openvino"] = OpenVino(SPEC["fixed_onnx"], reference.names)
    except Exception as error:  # a peer that cannot run the model is a result too
        missing["openvino"] = str(error)

    generator = np.random.default_rng(SPEC["seed"])
    errors = {name: 0.0 for name in engines if name != "onnxruntime"}
    for _ in range(SPEC["inputs"]):
        inputs = random_inputs(specs, SPEC["ranges"], generator)
        for engine in engines.values():
            engine.bind(inputs)
            engine.call()
        expected = reference.results()
        for name in errors:
            errors[name] = max(errors[name], relative_error(engines[name].results(), expected))

    SPEC["inputs_file"] = sys.argv[2] + ".inputs.npz"
    SPEC["output_names"] = reference.names
    np.savez(SPEC["inputs_file"], **inputs)
    with open(sys.argv[1], "w") as file:
        json.dump(SPEC, file, indent=2)
    samples = race(engines, SPEC["rounds"], SPEC["warmup"], SPEC["seed"])
    ours = [spec["name"] for spec in SPEC["ours"]]
    result = {
        "model": SPEC["model"],
        "core": SPEC["core"],
        "rounds": SPEC["rounds"],
        "inputs": SPEC["inputs"],
        "versions": {"onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__},
        "missing": missing,
        "wall": figures({name: values[:, 0] for name, values in samples.items()}, ours),
        "cpu": figures({name: values[:, 1] for name, values in samples.items()}, ours),
        "relative_error": errors,
        "start": starts(name for name in engines if name != "onnxruntime-bound"),
    }
    with open(sys.argv[2], "w") as file:
        json.dump(result, file, indent=2)
        file.write("\n")


if sys.argv[2] == "--start":
    start(sys.argv[3])
else:
    main()
