"""Makes calibration and validation samples: `make.py KIND WIDTH HEIGHT N FIRST OUT [VOCABULARY]`.

Text is that of the documentation of Python's standard library, drawn in fonts that pip installs, or cut
into word pieces. Sample `k` depends on nothing but `k` and the versions that are pinned.

line   text lines, [n, 3, height, width] u8, blue first
turned text lines, half of them upside down, labels 0 and 1
page   pages of text, turned by 0, 90, 180 or 270 degrees, labels 0 to 3
words  sentences as `input_ids` and `attention_mask` of [n, width]
"""

import importlib
import inspect
import json
import pathlib
import random
import re
import sys

import numpy
from PIL import Image, ImageDraw, ImageFilter, ImageFont

MODULES = """abc argparse array ast asyncio base64 bdb binascii bisect calendar cmath code codecs collections
concurrent.futures configparser contextlib copy csv dataclasses datetime decimal difflib dis doctest email
enum fileinput fnmatch fractions functools gettext glob gzip heapq hmac html.parser http.client imaplib
inspect io ipaddress itertools json locale logging mailbox math mimetypes multiprocessing netrc operator
optparse os pathlib pdb pickle platform plistlib poplib pprint profile queue random re sched shelve shlex
shutil signal smtplib socket sqlite3 statistics string struct subprocess tarfile tempfile textwrap
threading timeit tkinter traceback turtle types typing unittest urllib.request uuid warnings wave weakref
xml.dom.minidom zipfile zoneinfo""".split()


def sentences():
    """Returns sentences of the documentation, in a fixed order, each once."""
    found = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        things = [module] + [value for _, value in sorted(vars(module).items(), key=lambda item: item[0])]
        for thing in things:
            try:
                members = [thing] + [v for _, v in sorted(vars(thing).items(), key=lambda item: item[0])]
            except TypeError:
                members = [thing]
            for member in members:
                text = getattr(member, "__doc__", None)
                if not isinstance(text, str):
                    continue
                for paragraph in inspect.cleandoc(text).split("\n\n"):
                    flat = re.sub(r"\s+", " ", paragraph)
                    for sentence in re.split(r"(?<=[.!?]) ", flat):
                        if 24 <= len(sentence) <= 200 and sentence[0].isupper() and sentence[-1] in ".!?":
                            if sentence.isascii() and sum(map(str.isalpha, sentence)) > 0.7 * len(sentence):
                                found.setdefault(sentence)
    return list(found)


def fonts():
    """Returns the files of all upright fonts, in a fixed order."""
    root = pathlib.Path(numpy.__file__).parent.parent
    files = [path for path in root.rglob("*.[ot]tf") if "numpy" not in str(path)]
    return sorted(files, key=lambda path: path.name)


def noisy(picture, rng):
    """Blurs a picture a little and adds noise, as scans have it."""
    picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.0, 0.8)))
    noise = numpy.random.default_rng(rng.getrandbits(32)).normal(0.0, rng.uniform(0.0, 8.0), (*picture.size[::-1], 3))
    return numpy.clip(numpy.asarray(picture, dtype=numpy.float32) + noise, 0, 255).astype(numpy.uint8)


def line(text, files, width, height, rng):
    """Draws the beginning of a sentence on one line."""
    words = text.split()
    words = words[rng.randrange(len(words)):][: rng.randint(1, 4)] or words[:1]
    font = ImageFont.truetype(str(rng.choice(files)), int(height * rng.uniform(0.45, 0.75)))
    dark, light = rng.randint(0, 90), rng.randint(170, 255)
    ink, paper = (dark, light) if rng.random() < 0.8 else (light, dark)
    tint = [rng.randint(-15, 15) for _ in range(3)]
    color = tuple(max(0, min(255, paper + shade)) for shade in tint)
    picture = Image.new("RGB", (width, height), color)
    draw = ImageDraw.Draw(picture)
    left, top, right, bottom = draw.textbbox((0, 0), " ".join(words), font=font)
    origin = (rng.randint(2, 10) - left, (height - bottom + top) // 2 - top + rng.randint(-3, 3))
    draw.text(origin, " ".join(words), font=font, fill=(ink, ink, ink))
    return noisy(picture, rng)


def page(texts, files, width, height, rng):
    """Draws a page of sentences."""
    paper, ink = rng.randint(200, 255), rng.randint(0, 80)
    picture = Image.new("RGB", (width * 2, height * 2), (paper, paper, paper))
    draw = ImageDraw.Draw(picture)
    size = rng.randint(14, 34)
    font = ImageFont.truetype(str(rng.choice(files)), size)
    y, margin = rng.randint(8, 40), rng.randint(6, 60)
    while y < 2 * height - size:
        words = rng.choice(texts).split()
        row = ""
        for word in words:
            if draw.textlength(f"{row} {word}", font=font) > 2 * width - 2 * margin:
                break
            row = f"{row} {word}".strip()
        draw.text((margin, y), row, font=font, fill=(ink, ink, ink))
        y += int(size * rng.uniform(1.1, 1.5)) + (size if rng.random() < 0.15 else 0)
    return noisy(picture.resize((width, height), Image.Resampling.BILINEAR), rng)


def pieces(text, vocabulary, length):
    """Cuts a sentence into word pieces, longest first, as BERT does without case."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        at, own = 0, []
        while at < len(word):
            end = len(word)
            while end > at and ("▁" if at == 0 else "") + word[at:end] not in vocabulary:
                end -= 1
            if end == at:
                own = [vocabulary["[UNK]"]]
                break
            own.append(vocabulary[("▁" if at == 0 else "") + word[at:end]])
            at = end
        ids += own
    ids = ids[: length - 1] + [vocabulary["[SEP]"]]
    mask = [1] * len(ids) + [0] * (length - len(ids))
    return ids + [0] * (length - len(ids)), mask


def main():
    kind, width, height, n, first, out = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
    texts, files = sentences(), fonts()
    random.Random(0).shuffle(texts)
    if first + n > len(texts):
        sys.exit(f"there are {len(texts)} sentences")
    pictures, labels, ids, masks = [], [], [], []
    vocabulary = {}
    if kind == "words":
        vocabulary = {piece: idx for idx, piece in enumerate(json.load(open(sys.argv[7], encoding="utf-8")))}
    for idx in range(first, first + n):
        rng = random.Random(idx)
        if kind == "words":
            own, mask = pieces(texts[idx], vocabulary, width)
            ids.append(own)
            masks.append(mask)
            continue
        turns = idx % {"line": 1, "turned": 2, "page": 4}[kind]
        if kind == "page":
            picture = numpy.rot90(page(texts, files, width, height, rng), -turns)
        else:
            picture = numpy.rot90(line(texts[idx], files, width, height, rng), 2 * turns)
        labels.append(turns)
        pictures.append(picture[..., ::-1].transpose(2, 0, 1))
    if kind == "words":
        numpy.savez_compressed(out, input_ids=numpy.array(ids), attention_mask=numpy.array(masks))
    elif kind == "line":
        numpy.savez_compressed(out, x=numpy.ascontiguousarray(pictures))
    else:
        numpy.savez_compressed(out, x=numpy.ascontiguousarray(pictures), labels=numpy.array(labels))


main()
