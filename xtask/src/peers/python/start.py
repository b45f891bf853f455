"""Starts one engine in a process that has nothing loaded: what it takes to its first result.

Reads the specification named by the first argument, runs its entry of the name in the second, and
prints one JSON object.
"""

import importlib
import json
import os
import re
import sys
import time

SPEC = json.load(open(sys.argv[1]))
os.sched_setaffinity(0, SPEC["cores"])  # before an engine starts threads of its own

import numpy as np

from engines import PACKAGES, open_engine


def status_mib(key):
    """Returns a figure of `/proc/self/status`: `VmRSS`, `VmHWM`."""
    with open("/proc/self/status") as file:
        return int(re.search(rf"{key}:\s*(\d+) kB", file.read()).group(1)) / 1024


def package_mib(package):
    directory = os.path.dirname(package.__file__)
    return sum(
        os.path.getsize(os.path.join(parent, file))
        for parent, _, files in os.walk(directory) for file in files if ".so" in file) / 2**20


def main():
    entry = next(entry for entry in SPEC["entries"] if entry["name"] == sys.argv[2])
    form = SPEC["forms"][entry["precision"]]
    inputs = dict(np.load(form["inputs_file"]))
    name = PACKAGES.get(entry["engine"])
    package = importlib.import_module(name) if name else None
    resident = status_mib("VmRSS")
    begin = time.perf_counter_ns()
    engine = open_engine(SPEC, entry)
    loaded = time.perf_counter_ns()
    engine.bind(inputs)
    bound = time.perf_counter_ns()
    took = engine.call()
    end = time.perf_counter_ns()
    result = {
        "load_ms": (loaded - begin) / 1e6,
        "first_ms": (end - bound) / 1e6,
        "peak_memory_mib": status_mib("VmHWM") - resident,
        "disk_mib": None,
    }
    if entry["engine"] == "ours":
        result["disk_mib"] = os.path.getsize(entry["library"]) / 2**20
    elif package:
        result["disk_mib"] = os.path.getsize(form["onnx"]) / 2**20 + package_mib(package)
    if took:  # a process of its own says what it took itself
        result["load_ms"] = engine.loaded["load_ms"]
        result["first_ms"] = took[0] / 1e6
        result["peak_memory_mib"] = engine.ask("memory")["peak_mib"]
        engine.close()
    print(json.dumps(result))


main()
