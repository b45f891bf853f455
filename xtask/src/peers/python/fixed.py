"""ONNX files: fixed input shapes, what goes in and out, and the steps of quantised outputs."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from inputs import NAMES


def fix_shapes(source, target, shapes):
    """Writes the model with fixed input shapes, which lets peers fold shape arithmetic."""
    model = onnx.load(source)
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for value in model.graph.input:  # what `extend` copied, not what was given to it
        if value.name in shapes:
            dims = value.type.tensor_type.shape
            del dims.dim[:]
            for size in shapes[value.name]:
                dims.dim.add().dim_value = size
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(onnx.shape_inference.infer_shapes(model), target)


def input_specs(path):
    """Returns name, element type and shape of each input."""
    graph = onnx.load(path).graph
    return [{
        "name": value.name,
        "dtype": NAMES[np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))],
        "shape": [dim.dim_value for dim in value.type.tensor_type.shape.dim],
    } for value in graph.input]


def output_specs(path):
    """Returns the name of each output, and its quantisation step if it is dequantised."""
    graph = onnx.load(path).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}
    specs = []
    for value in graph.output:
        node = producers.get(value.name)
        while node is not None and node.op_type in ("Identity", "Reshape", "Transpose"):
            node = producers.get(node.input[0])
        step = None
        if node is not None and node.op_type == "DequantizeLinear" and node.input[1] in constants:
            step = float(numpy_helper.to_array(constants[node.input[1]]).max())
        specs.append({"name": value.name, "step": step})
    return specs
