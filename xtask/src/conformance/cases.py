"""Writes the ONNX project's backend test cases in a form that needs no ONNX package to read.

Usage: cases.py DIRECTORY

Makes DIRECTORY/<case>/model.onnx, and for each set of data i inputs_<i>.safetensors and
outputs_<i>.safetensors with tensors under their names in the model. DIRECTORY/cases.json lists the
cases. A case whose values have no form here gets the reason instead of files.
"""

import contextlib
import glob
import json
import os
import re
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test import loader

# Element types that are written, by their number in ONNX, under their names in safetensors.
TYPES = {
    TensorProto.FLOAT: "F32",
    TensorProto.UINT8: "U8",
    TensorProto.INT8: "I8",
    TensorProto.UINT16: "U16",
    TensorProto.INT16: "I16",
    TensorProto.INT32: "I32",
    TensorProto.INT64: "I64",
    TensorProto.BOOL: "BOOL",
    TensorProto.FLOAT16: "F16",
    TensorProto.DOUBLE: "F64",
    TensorProto.UINT32: "U32",
    TensorProto.UINT64: "U64",
}

# Real networks whose weights are one number each. They come with expected outputs only: their own
# runner feeds them numbers that rise from 0 towards 1.
LIGHT = "light"
KINDS = ["node", "pytorch-converted", "pytorch-operator", "simple", LIGHT]


def main():
    directory = sys.argv[1]
    listed = []
    nodes = {}
    for kind in KINDS:
        cases = light_cases() if kind == LIGHT else loaded_cases(kind)
        for name, model, sets, rtol, atol in cases:
            operator = operator_of(name, kind, model, nodes)
            entry = {
                "name": name,
                "kind": kind,
                "operator": operator,
                "rtol": rtol,
                "atol": atol,
                "inputs": [info.name for info in open_inputs(model)],
                "sets": 0,
                "not_covered": reason(model),
            }
            if entry["not_covered"] is None:
                entry["sets"] = write(os.path.join(directory, name), model, sets())
            listed.append(entry)
    with open(os.path.join(directory, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(sorted(listed, key=lambda entry: entry["name"]), file, indent=1)


def loaded_cases(kind):
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        cases = loader.load_model_tests(kind=kind)
    for case in cases:
        if case.model_dir is None:
            model = case.model
            sets = lambda case=case: case.data_sets
        else:
            model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
            sets = lambda case=case: stored_sets(case.model_dir)
        yield case.name, model, sets, case.rtol, case.atol


def stored_sets(directory):
    for data in sorted(glob.glob(os.path.join(directory, "test_data_set_*"))):
        yield stored(data, "input"), stored(data, "output")


def stored(directory, prefix):
    n_files = len(glob.glob(os.path.join(directory, f"{prefix}_*.pb")))
    return [
        onnx.load_tensor(os.path.join(directory, f"{prefix}_{idx}.pb")) for idx in range(n_files)
    ]


def light_cases():
    directory = os.path.join(loader.DATA_DIR, LIGHT)
    for path in sorted(glob.glob(os.path.join(directory, "*.onnx"))):
        name = os.path.basename(path).removesuffix(".onnx")
        model = onnx.load(path)
        about = os.path.join(loader.DATA_DIR, "real", name.replace("light_", "test_"), "data.json")
        with open(about, encoding="utf-8") as file:
            about = json.load(file)
        output = path.removesuffix(".onnx") + "_output_0.pb"

        def sets(model=model, output=output):
            inputs = []
            for info in open_inputs(model):
                shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
                count = int(np.prod(shape))
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
            yield inputs, [onnx.load_tensor(output)]

        yield name, model, sets, about["rtol"], about["atol"]


def open_inputs(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    return [info for info in model.graph.input if info.name not in constants]


def operator_of(name, kind, model, nodes):
    """What a case counts for: its only operator; of a function's expansion the function; else the
    collection that it is from."""
    if kind == "node":
        match = re.fullmatch(r"(.+)_expanded(_ver\d+)?", name)
        if match and match[1] in nodes:
            return nodes[match[1]]
        nodes[name] = title(model.graph.node[0])
        return nodes[name]
    titles = {title(node) for node in model.graph.node if node.op_type != "Constant"}
    return titles.pop() if len(titles) == 1 else f"({kind})"


def title(node):
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def reason(model):
    """Why a case cannot be written; None if it can."""
    domains = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    if domains:
        return f"operators of {', '.join(sorted(domains))}"
    for info in [*model.graph.input, *model.graph.output]:
        form = info.type.WhichOneof("value")
        if form != "tensor_type":
            return f"values of {form.removesuffix('_type')} type"
        element = info.type.tensor_type.elem_type
        if element not in TYPES:
            return f"values of {TensorProto.DataType.Name(element).lower()} type"
    return None


def write(directory, model, sets):
    os.makedirs(directory, exist_ok=True)
    onnx.save(model, os.path.join(directory, "model.onnx"))
    count = 0
    for inputs, outputs in sets:
        for kind, infos, values in [
            ("inputs", open_inputs(model), inputs),
            ("outputs", model.graph.output, outputs),
        ]:
            if len(infos) != len(values):
                raise ValueError(f"{directory}: {len(infos)} {kind}, data for {len(values)}")
            path = os.path.join(directory, f"{kind}_{count}.safetensors")
            save(path, [(info, array(value)) for info, value in zip(infos, values)])
        count += 1
    return count


def array(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def save(path, values):
    header, chunks, end = {}, [], 0
    for info, value in values:
        element = info.type.tensor_type.elem_type
        expected = onnx.helper.tensor_dtype_to_np_dtype(element)
        if value.dtype != expected:
            raise ValueError(f"{path}: `{info.name}` is {value.dtype}, the model says {expected}")
        data = np.ascontiguousarray(value).astype(expected.newbyteorder("<")).tobytes()
        header[info.name] = {
            "dtype": TYPES[element],
            "shape": list(value.shape),
            "data_offsets": [end, end + len(data)],
        }
        chunks.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(chunks))


main()
