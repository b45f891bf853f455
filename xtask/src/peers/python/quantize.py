"""Makes the QDQ int8 form of a model with onnxruntime's static quantiser, with its defaults: u8
activations, s8 weights by channel, every operator that it can.

Arguments: a JSON file with `onnx`, `out`, `shapes`, `ranges` and `samples`.
"""

import json
import logging
import os
import sys
import tempfile

import onnx
from onnx import version_converter
from onnxruntime.quantization import (
    CalibrationDataReader, QuantFormat, QuantType, quant_pre_process, quantize_static)

from fixed import fix_shapes, input_specs
from inputs import realistic


class Samples(CalibrationDataReader):
    """Realistic inputs, one after the other."""

    def __init__(self, specs, ranges, n_samples):
        self.rest = iter([realistic(specs, ranges, number) for number in range(n_samples)])

    def get_next(self):
        return next(self.rest, None)


def main():
    spec = json.load(open(sys.argv[1]))
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        path = lambda name: os.path.join(directory, name)
        fix_shapes(spec["onnx"], path("fixed.onnx"), spec["shapes"])
        model = onnx.load(path("fixed.onnx"))
        # Scales by channel need opset 13: without it onnxruntime refuses what its quantiser wrote.
        if any(opset.domain == "" and opset.version < 13 for opset in model.opset_import):
            model = version_converter.convert_version(model, 13)
            onnx.save(model, path("fixed.onnx"))
        quant_pre_process(path("fixed.onnx"), path("ready.onnx"), skip_symbolic_shape=True)
        samples = Samples(input_specs(path("ready.onnx")), spec["ranges"], spec["samples"])
        quantize_static(
            path("ready.onnx"), path("int8.onnx"), samples, quant_format=QuantFormat.QDQ,
            per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        model = onnx.load(path("int8.onnx"))
        model.producer_version = ""
        onnx.save(model, spec["out"] + ".part")
    os.replace(spec["out"] + ".part", spec["out"])


main()
