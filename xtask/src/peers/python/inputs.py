"""Inputs: random ones, and deterministic ones that look like what a model is for."""

import numpy as np

DTYPES = {
    "f32": np.float32, "f16": np.float16, "f64": np.float64, "bool": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def random(specs, ranges, generator):
    """Returns noise: standard normal where the type is a float one."""
    inputs = {}
    for spec in specs:
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        if spec["name"] in ranges:
            low, high = ranges[spec["name"]]
            inputs[spec["name"]] = np.asarray(
                generator.integers(low, high + 1, shape), dtype=dtype)
        elif np.issubdtype(dtype, np.floating):
            inputs[spec["name"]] = generator.standard_normal(shape).astype(dtype)
        else:
            inputs[spec["name"]] = generator.integers(0, 2, shape).astype(dtype)
    return inputs


def realistic(specs, ranges, number):
    """Returns images, a tone or words, the same ones for each number."""
    generator = np.random.default_rng(1000 + number)
    inputs = {}
    for spec in specs:
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        if spec["name"] in ranges:
            value = words(shape, *ranges[spec["name"]], generator)
        elif np.issubdtype(dtype, np.floating) and len(shape) == 4:
            value = image(shape, generator)
        elif np.issubdtype(dtype, np.floating) and len(shape) == 2:
            value = tone(shape, generator)
        else:
            value = np.zeros(shape)
        inputs[spec["name"]] = np.asarray(value, dtype=dtype)
    return inputs


def image(shape, generator):
    """Returns a page: a smooth ground, a few boxes with sharp edges, and strokes in lines as of
    text; values in [-1, 1]."""
    n, channels, height, width = shape
    y, x = np.mgrid[0:height, 0:width]
    result = np.empty(shape)
    for item in range(n):
        tilt, ground = generator.uniform(-0.3, 0.3, 2), generator.uniform(0.4, 0.8, channels)
        shade = tilt[0] * x / width + tilt[1] * y / height
        page = ground[:, None, None] + shade[None]
        for _ in range(4):
            top, left = generator.integers(0, height), generator.integers(0, width)
            box = np.s_[:, top:top + max(height // 4, 1), left:left + max(width // 4, 1)]
            page[box] = generator.uniform(-1, 1, channels)[:, None, None]
        line = max(height // 20, 12)
        for top in range(line // 2, height - line // 2, line * 3 // 2):
            left = line
            while left < width - line:
                thick = int(generator.integers(1, 4))
                if generator.random() < 0.5:  # a stroke down, else one across
                    stroke = np.s_[:, top:top + line * 2 // 3, left:left + thick]
                else:
                    row = top + int(generator.integers(0, line // 2))
                    stroke = np.s_[:, row:row + thick, left:left + line // 2]
                page[stroke] = -0.9
                left += int(generator.integers(line // 4, line))
        result[item] = page
    return np.clip(result, -1, 1)


def tone(shape, generator):
    """Returns a vowel-like tone at 16 kHz in the first row; a state that is all zero otherwise."""
    if shape[0] != 1:
        return np.zeros(shape)
    seconds = np.arange(shape[1]) / 16_000
    pitch = generator.uniform(100, 300)
    harmonics = sum(np.sin(2 * np.pi * pitch * k * seconds) / k for k in range(1, 8))
    return (0.2 * harmonics)[None]


def words(shape, low, high, generator):
    """Returns numbers of words, frequent ones more often, as in running text."""
    rank = generator.zipf(1.3, shape)
    return low + np.minimum(rank, 1 << 40) % (high - low + 1)
