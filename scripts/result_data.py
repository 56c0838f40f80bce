"""Result documents of `spmmbench run --json` as the scripts see them: loading, and what follows from a row.

What `spmmbench show` refuses is refused here as well, in one line, before anything is drawn or written.
"""

import json
import math
import os
import pathlib
import statistics
import tempfile

from result_schema import Damaged, Schema, check_document, number

SCHEMA = Schema()
STATUSES = ("ok", "wrong", "failed", "timeout", "skipped")
SPEEDUPS = ("cusparse_default_fp32", "cusparse_best", "cublas", "eigen_fp32", "eigen")
# Numbers of which only finite ones can be drawn.
RATES = ("copy_gb_per_s", "timer_floor_us", "gather_gb_per_s", "dense_tflops")
AMOUNTS = ("gflops", "issued_flops", "compulsory_bytes", "bound_us", "of_bound")

# What a row says that was written before the field existed.
OF_OLDER_ROWS = {"pick": None, "alpha": 1, "beta": 0, "batch": 1, "calls_us": {}, "break_even_against": None}

# What is read of a document that a program of examples/ wrote.
TEXT = {"type": "string"}
EXAMPLE_CONTEXT = {
    "device": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
    "started_utc": TEXT,
    "git_revision": TEXT,
    "protocol": {"type": "object"},
}
EXAMPLE_ROW = {
    "matrix": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
    "n": {"type": "integer", "minimum": 1},
    "kernel": TEXT,
    "status": {"enum": STATUSES},
    "hot": {
        "anyOf": [
            {"type": "null"},
            {
                "type": "object",
                "required": ["median_us"],
                "properties": {"median_us": {"type": "number", "exclusiveMinimum": 0}},
            },
        ]
    },
    "metrics": {"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
}


class InputError(Exception):
    """A file that is no result document; the message names it."""


def readable(text):
    """Text of any bytes, fit for a page, a figure or a terminal: what cannot be shown is escaped."""
    if text.isprintable():
        return text
    out = []
    for letter in text:
        code = ord(letter)
        if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
            out.append(f"\\x{code - 0xDC00:02x}")
        elif letter.isprintable():
            out.append(letter)
        else:
            out.append(letter.encode("unicode_escape").decode("ascii"))
    return "".join(out)


def all_readable(value):
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list):
        # Lists of samples are most of a document and hold no text.
        return value if value and isinstance(value[0], float) else [all_readable(v) for v in value]
    if isinstance(value, dict):
        return {readable(key): all_readable(item) for key, item in value.items()}
    return value


# ---- loading -----------------------------------------------------------------------------------


def no_number(word):
    raise ValueError(f"{word} is no number of JSON")


def finite(text):
    value = float(text)
    return value if math.isfinite(value) else no_number(text)


def whole(text):
    finite(text)
    return int(text)


def load_json(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return json.load(file, parse_constant=no_number, parse_float=finite, parse_int=whole)
    except OSError as error:
        raise InputError(f"{readable(str(path))}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{readable(str(path))}: not JSON: {error}") from None


def checked_document(path):
    """The document as it stands in the file."""
    name = readable(str(path))
    document = load_json(path)
    if not isinstance(document, dict) or not {"schema_version", "context", "rows"} <= set(document):
        raise InputError(f"{name}: expected a result document of `spmmbench run --json`")
    version = document["schema_version"]
    if type(version) is not int or version != SCHEMA.version:
        raise InputError(f"{name}: schema version {version!r}; this script reads version {SCHEMA.version}")
    try:
        check_document(document, SCHEMA)
    except Damaged as error:
        raise InputError(f"{name}: damaged: {readable(str(error))}") from None
    return document


def load_document(path):
    """The document with what the scripts read beside its own fields; text of any bytes is readable."""
    try:
        document = all_readable(checked_document(path))
    except RecursionError:  # in a field that the schema does not name
        raise InputError(f"{readable(str(path))}: damaged: its lists are nested too deep") from None
    take_finite(document["context"], RATES)
    document["rows"] = [completed(row) for row in document["rows"]]
    document["name"] = pathlib.Path(readable(str(path))).name
    document.setdefault("answers", None)
    return document


def load_example(path):
    """A document of a program of examples/, which has a context of its own and some fields of a row."""
    name = readable(str(path))
    document = load_json(path)
    parts = {
        part: {"type": "object", "required": list(fields), "properties": fields}
        for part, fields in (("context", EXAMPLE_CONTEXT), ("row", EXAMPLE_ROW))
    }
    if not isinstance(document, dict) or not {"context", "rows"} <= set(document):
        raise InputError(f"{name}: expected what a program of examples/ wrote")
    try:
        SCHEMA.check(parts["context"], document["context"], "context")
        SCHEMA.check({"type": "array", "items": parts["row"]}, document["rows"], "rows")
        return all_readable(document)
    except (Damaged, RecursionError) as error:
        raise InputError(f"{name}: damaged: {readable(str(error))}") from None


def take_finite(values, names):
    """None in place of other numbers."""
    for name in names:
        value = number(values.get(name))
        values[name] = value if value is not None and math.isfinite(value) else None


def completed(row):
    """The row with what the scripts read beside its own fields."""
    row = {**OF_OLDER_ROWS, **row}
    alpha, beta = number(row["alpha"]), number(row["beta"])
    if (alpha, beta) != (1, 0):  # another problem than C = A B
        row["layout"] += f", {alpha:g} A B + {beta:g} C"
    if row["batch"] != 1:
        row["layout"] += f", a batch of {row['batch']:g}"
    take_finite(row, AMOUNTS)
    row["speedup"] = {name: row["speedup"].get(name) for name in SPEEDUPS}
    take_finite(row["speedup"], SPEEDUPS)
    if row["pick"]:
        row["pick"] = {"first": "", **row["pick"]}
    return row


def write_whole(path, content):
    """Writes bytes under their final name only when all are there, so that no reader sees half. An
    OSError names that file."""
    path = pathlib.Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(content)
        else:
            _replace(path, content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _replace(path, content):
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~current_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- what follows from a row -------------------------------------------------------------------


def hot_us(row):
    return row["hot"]["median_us"] if row["hot"] else None


def cold_us(row):
    return row["cold"]["median_us"] if row["cold"] else None


def preparation_ms(row):
    """What a user pays once: every stage but reading the file."""
    stages = (number(ms) for stage, ms in row["stages_ms"].items() if stage != "load")
    return sum(ms for ms in stages if ms is not None)


def density(row):
    matrix = row["matrix"]
    size = matrix["rows"] * matrix["cols"]
    return matrix["nnz"] / size if size else 0.0


def geomean(values):
    values = [v for v in values if v is not None and v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None
