"""Races deployed models against other engines: one process, interleaved, in random order.

Reads a JSON specification from the file named by the first argument and writes the results to the
file named by the second. Each engine first starts in processes of its own (`start.py`); one that
fails there is a reason and takes no part. Rounds call all engines in a random order, so that slow
phases of the machine hit all of them alike. The lower quartile counts: of processor time on one
thread, which leaves out what other processes take of a busy machine, and of wall time on more.
"""

import json
import os
import random
import subprocess
import sys
import time

SPEC = json.load(open(sys.argv[1]))
os.sched_setaffinity(0, SPEC["cores"])  # before the engines start threads of their own

import numpy as np

import inputs
from engines import open_engine
from fixed import fix_shapes, input_specs, output_specs

# Processes that each engine is started in.
N_STARTS = 5
# Where threads of another engine might still spin, a turn starts after that, seconds.
PAUSE = 0.001 if SPEC["threads"] > 1 else 0


def prepare():
    """Adds inputs and outputs of each precision's model to the specification."""
    generator = np.random.default_rng(SPEC["seed"])
    noise = None
    for form in SPEC["forms"].values():
        fix_shapes(form["onnx"], form["fixed_onnx"], form["shapes"])
        form["inputs"] = input_specs(form["fixed_onnx"])
        form["outputs"] = output_specs(form["fixed_onnx"])
        form["inputs_file"] = form["fixed_onnx"] + ".npz"
        noise = noise or [inputs.random(form["inputs"], SPEC["ranges"], generator)
                          for _ in range(SPEC["inputs"])]
        np.savez(form["inputs_file"], **noise[0])
    with open(sys.argv[1], "w") as file:
        json.dump(SPEC, file, indent=2)
    return noise


def start(entry):
    """Starts an engine in processes of its own; returns medians, or raises what it said."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py")
    runs = []
    for _ in range(N_STARTS):
        run = subprocess.run([sys.executable, program, sys.argv[1], entry["name"]],
                             capture_output=True, text=True)
        if run.returncode:
            lines = run.stderr.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"it ended with {run.returncode}")
        runs.append(json.loads(run.stdout))
    median = lambda key: float(np.median([run[key] for run in runs]))
    return {key: None if value is None else median(key) for key, value in runs[0].items()}


def relative_error(actual, reference):
    """Returns the largest relative L2 distance over the outputs; infinite if one is not finite."""
    worst = 0.0
    for name, expected in reference.items():
        expected, value = expected.astype(np.float64), actual[name].astype(np.float64)
        norm = np.linalg.norm(expected) or 1.0
        error = np.linalg.norm(value.ravel() - expected.ravel()) / norm
        worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return worst


def steps(actual, reference, outputs):
    """Returns the largest distance in quantisation steps; nothing if no output is quantised."""
    worst = None
    for spec in outputs:
        if spec["step"]:
            value = actual[spec["name"]].astype(np.float64).ravel()
            distance = np.abs(value - reference[spec["name"]].astype(np.float64).ravel())
            worst = max(worst or 0.0, float(distance.max() / spec["step"]))
    return worst


def compare(engines, entries, noise):
    """Returns each engine's distances to onnxruntime on the same model, on noise and on inputs
    that look real."""
    real = [inputs.realistic(next(iter(SPEC["forms"].values()))["inputs"], SPEC["ranges"], number)
            for number in range(100, 100 + SPEC["inputs"])]
    result = {name: {"noise": 0.0, "real": 0.0, "steps": None} for name in engines}
    for kind, given in [("real", real), ("noise", noise)]:
        for values in given:
            references = {}
            for name in sorted(engines, key=lambda name: entries[name]["is_reference"],
                               reverse=True):
                entry, engine = entries[name], engines[name]
                engine.bind(values)
                engine.call()
                found = engine.results()
                reference = references.setdefault(entry["precision"], found)
                figures = result[name]
                figures[kind] = max(figures[kind], relative_error(found, reference))
                distance = steps(found, reference, SPEC["forms"][entry["precision"]]["outputs"])
                if distance is not None:
                    figures["steps"] = max(figures["steps"] or 0.0, distance)
    return result


def race(engines):
    """Returns wall and processor time of each call, nanoseconds, by engine."""
    samples = {name: [] for name in engines}
    order = random.Random(SPEC["seed"])
    names = list(engines)
    for engine in engines.values():
        for _ in range(SPEC["warmup"]):
            engine.call()
    for _ in range(SPEC["rounds"]):
        order.shuffle(names)
        for name in names:
            if PAUSE:
                time.sleep(PAUSE)
            call = engines[name].call
            start_cpu = time.process_time_ns()
            start = time.perf_counter_ns()
            own = call()
            end = time.perf_counter_ns()
            took = own or (end - start, time.process_time_ns() - start_cpu)
            samples[name].append(took)
    return {name: np.array(values) for name, values in samples.items()}


def figures(values):
    """Returns what one clock says of one engine, microseconds."""
    half = len(values) // 2
    p25 = lambda part: float(np.percentile(part, 25)) / 1e3
    return {
        "p25_us": p25(values),
        "median_us": float(np.median(values)) / 1e3,
        "p25_us_halves": [p25(values[:half]), p25(values[half:])] if half else None,
    }


def versions():
    from importlib.metadata import version
    return {name: version(name) for name in ("onnxruntime", "openvino", "tract")}


def main():
    noise = prepare()
    entries = {entry["name"]: entry for entry in SPEC["entries"]}
    starts, missing, engines = {}, {}, {}
    for name, entry in entries.items():
        try:
            starts[name] = start(entry)
            engine = open_engine(SPEC, entry)
            engine.bind(noise[0])
            engine.call()
            engines[name] = engine
        except Exception as error:  # an engine that cannot run the model is a result too
            missing[name] = str(error) or repr(error)
    for precision in SPEC["forms"]:
        if not any(entries[name]["is_reference"] for name in engines
                   if entries[name]["precision"] == precision):
            for name in [name for name in engines if entries[name]["precision"] == precision]:
                missing.setdefault(name, "onnxruntime, which it is compared with, cannot run it")
                del engines[name]
    distances = compare(engines, entries, noise)
    for name in engines:
        engines[name].bind(noise[0])
    samples = race(engines)
    result = {
        "model": SPEC["model"],
        "threads": SPEC["threads"],
        "cores": SPEC["cores"],
        "rounds": SPEC["rounds"],
        "inputs": SPEC["inputs"],
        "versions": versions(),
        "engines": [{
            "name": name,
            "engine": entries[name]["engine"],
            "precision": entries[name]["precision"],
            "wall": figures(values[:, 0]),
            "processor": figures(values[:, 1]),
            "relative_error_noise": distances[name]["noise"],
            "relative_error_real": distances[name]["real"],
            "quantisation_steps": distances[name]["steps"],
            "start": starts[name],
        } for name, values in samples.items()],
        "missing": missing,
    }
    with open(sys.argv[2], "w") as file:
        json.dump(result, file, indent=2)
        file.write("\n")


main()
