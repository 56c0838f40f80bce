"""Result documents of `spmmbench run --json` as the scripts see them: loading, and what follows from a row.

A document of an older schema is read with what it has: absent fields become None. A newer one, or a
file that is damaged, is refused in one line before anything is drawn or written.
"""

import json
import math
import os
import pathlib
import statistics
import tempfile

OLDEST_SCHEMA, NEWEST_SCHEMA = 1, 1
STATUSES = ("ok", "wrong", "failed", "timeout", "skipped")
SPEEDUPS = ("cusparse_default_fp32", "cusparse_best", "cublas", "eigen_fp32", "eigen")

# What a row says when its document does not.
ABSENT_ROW = {
    "baseline": False,
    "binary": False,
    "params": {},
    "pick": None,
    "precision": "fp32",
    "c_type": "fp32",
    "layout": "row",
    "reorder": "none",
    "alpha": 1,
    "beta": 0,
    "batch": 1,
    "reason": "",
    "stages_ms": {},
    "calls_us": {},
    "format": None,
    "device_bytes": None,
    "verify": None,
    "hot": None,
    "cold": None,
    "gflops": None,
    "issued_flops": None,
    "compulsory_bytes": None,
    "bound_us": None,
    "of_bound": None,
    "speedup": {},
    "break_even_calls": None,
    "break_even_against": None,
    "metrics": {},
    "command": "",
}
ABSENT_MATRIX = {
    "source": "",
    "sha256": "",
    "rows": 0,
    "cols": 0,
    "nnz": 0,
    "mean_row": 0.0,
    "max_row": 0,
    "cv_row": 0.0,
}
ABSENT_PICK = {"kernel": "", "first": "", "measured_us": {}, "remembered": False, "why": ""}
ABSENT_TIMING = {"q1_us": None, "q3_us": None, "min_us": None, "n": 0, "samples_us": []}
ABSENT_DEVICE = {
    "kind": "",
    "name": "unknown device",
    "uuid": "",
    "compute_capability": 0,
    "sm_count": 0,
    "l2_bytes": 0,
    "memory_bytes": 0,
    "driver_version": "",
    "runtime_version": "",
    "cusparse_version": "",
    "cublas_version": "",
}
ABSENT_CONTEXT = {
    "tool_version": "",
    "git_revision": "unknown",
    "build_flags": "",
    "started_utc": "",
    "hostname": "",
    "argv": [],
    "seed": None,
    "device": {},
    "copy_gb_per_s": None,
    "timer_floor_us": None,
    "clocks_before": {},
    "clocks_after": {},
    "protocol": {},
}


class InputError(Exception):
    """A file that is no result document; the message names it."""


def number(value):
    """A JSON number or one of the words that stand for a non-finite one; None stays None."""
    if isinstance(value, str):
        return {"never": math.inf, "inf": math.inf, "nan": math.nan}.get(value)
    return value


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


def load_json(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return json.load(file, parse_constant=no_number)
    except OSError as error:
        raise InputError(f"{readable(str(path))}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{readable(str(path))}: not JSON: {error}") from None


def load_document(path):
    name = readable(str(path))
    document = load_json(path)
    if not isinstance(document, dict) or not {"schema_version", "context", "rows"} <= set(document):
        raise InputError(f"{name}: expected a result document of `spmmbench run --json`")
    version = document["schema_version"]
    if type(version) is not int or not OLDEST_SCHEMA <= version <= NEWEST_SCHEMA:
        known = (
            f"{OLDEST_SCHEMA} to {NEWEST_SCHEMA}"
            if OLDEST_SCHEMA < NEWEST_SCHEMA
            else f"{NEWEST_SCHEMA}"
        )
        raise InputError(f"{name}: schema version {version!r}; this script reads version {known}")
    try:
        document = all_readable(document)
        document["context"] = checked_context(document["context"])
        rows = document["rows"]
        if not isinstance(rows, list):
            raise ValueError("rows are no list")
        document["rows"] = [checked_row(row, i + 1) for i, row in enumerate(rows)]
        document["answers"] = checked_answers(document.get("answers"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: damaged: {error}") from None
    document["name"] = pathlib.Path(name).name
    document.setdefault("complete", True)
    return document


def checked_answers(answers):
    """None in a run that was made before answers were written."""
    if answers is None:
        return None
    if not isinstance(answers, list):
        raise ValueError("answers are no list")
    for answer in answers:
        steps = answer.get("steps") if isinstance(answer, dict) else None
        if not isinstance(steps, list) or not steps:
            raise ValueError("an answer has no steps")
        check_texts(answer, ("source", "layout", "precision", "c_type"), "an answer's ")
        if type(answer.get("n")) is not int:
            raise ValueError("an answer's n is no integer")
        for step in steps:
            calls = step.get("from_calls") if isinstance(step, dict) else None
            if type(calls) is not int or calls < 1:
                raise ValueError("a step of an answer has no from_calls")
            check_texts(step, ("kernel", "reorder"), "an answer's ")
    return answers


def filled(value, absent, what):
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    return {**absent, **value}


def checked_context(context):
    context = filled(context, ABSENT_CONTEXT, "the context")
    device = filled(context["device"] or {}, ABSENT_DEVICE, "the device")
    context["device"] = device
    for part in ("clocks_before", "clocks_after", "protocol"):
        context[part] = filled(context[part] or {}, {}, part)
    if not isinstance(context["argv"], list):
        raise ValueError("argv is no list")
    texts = ("tool_version", "git_revision", "build_flags", "started_utc", "hostname")
    check_texts(context, texts, "")
    rates = ("seed", "copy_gb_per_s", "timer_floor_us", "gather_gb_per_s", "dense_tflops")
    check_numbers(context, rates, "")
    for name, absent in ABSENT_DEVICE.items():
        (check_texts if isinstance(absent, str) else check_numbers)(device, [name], "device.")
    for part in ("clocks_before", "clocks_after"):
        check_numbers(context[part], context[part], f"{part}.")
    return context


def check_texts(values, names, what):
    for name in names:
        if not isinstance(values.get(name), str):
            raise ValueError(f"{what}{name} is no text")


def check_numbers(values, names, what):
    """None is one."""
    for name in names:
        if not is_number(values.get(name)):
            raise ValueError(f"{what}{name} is no number")


def in_numbers(values):
    """With numbers for the words that stand for non-finite ones."""
    return {name: number(value) for name, value in values.items()}


def is_number(value):
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def checked_row(row, place):
    """The row with every field that the scripts read; ValueError says what is damaged."""
    row = filled(row, ABSENT_ROW, f"row {place}")
    where = f"row {place}"
    matrix = filled(row.get("matrix"), ABSENT_MATRIX, f"{where}: the matrix")
    row["matrix"] = matrix
    if not isinstance(matrix.get("name"), str) or not isinstance(row.get("kernel"), str):
        raise ValueError(f"{where}: no name of the matrix or the kernel")
    if row.get("status") not in STATUSES:
        raise ValueError(
            f"{where}: status {row.get('status')!r}, expected one of {', '.join(STATUSES)}"
        )
    if type(row.get("n")) is not int or row["n"] < 1:
        raise ValueError(f"{where}: n is no positive integer")
    for field in ("rows", "cols", "nnz", "mean_row", "max_row", "cv_row"):
        if matrix[field] is None or not is_number(matrix[field]):
            raise ValueError(f"{where}: matrix.{field} is no number")
    check_texts(matrix, ("source", "sha256"), f"{where}: matrix.")
    texts = ("precision", "c_type", "layout", "reorder", "reason", "command")
    check_texts(row, texts, f"{where}: ")
    check_numbers(row, ["alpha", "beta", "batch"], f"{where}: ")
    if (row["alpha"], row["beta"]) != (1, 0):  # another problem than C = A B
        row["layout"] += f", {row['alpha']:g} A B + {row['beta']:g} C"
    if row["batch"] != 1:
        row["layout"] += f", a batch of {row['batch']:g}"
    for field in ("baseline", "binary"):
        if not isinstance(row[field], bool):
            raise ValueError(f"{where}: {field} is neither true nor false")
    if row["break_even_against"] is not None:
        check_texts(row, ["break_even_against"], f"{where}: ")
    numbers = ("gflops", "issued_flops", "bound_us", "of_bound", "break_even_calls")
    check_numbers(in_numbers(row), numbers, f"{where}: ")
    check_numbers(row, ["device_bytes", "compulsory_bytes"], f"{where}: ")
    for field in ("params", "stages_ms", "metrics", "speedup"):
        row[field] = filled(row[field] or {}, {}, f"{where}: {field}")
    row["speedup"] = {name: number(row["speedup"].get(name)) for name in SPEEDUPS}
    for field in ("speedup", "stages_ms", "metrics"):
        check_numbers(in_numbers(row[field]), row[field], f"{where}: ")
    if row["pick"] is not None:
        row["pick"] = filled(row["pick"], ABSENT_PICK, f"{where}: pick")
        check_texts(row["pick"], ("kernel", "why"), f"{where}: pick.")
        check_numbers(row["pick"]["measured_us"], row["pick"]["measured_us"], f"{where}: pick.measured_us.")
    for field in ("hot", "cold"):
        if row[field] is not None:
            row[field] = checked_timing(row[field], f"{where}: {field}")
    for field in ("format", "verify"):
        if row[field] is not None:
            row[field] = filled(row[field], {}, f"{where}: {field}")
            numbers = [name for name in row[field] if name not in ("name", "extra")]
            check_numbers(in_numbers(row[field]), numbers, f"{where}: {field}.")
    if row["format"]:
        check_numbers(row["format"], ["bytes"], f"{where}: format.")
    return row


def checked_timing(timing, what):
    timing = filled(timing, ABSENT_TIMING, what)
    median_us = timing.get("median_us")
    if median_us is None or not is_number(median_us) or not 0 < median_us < math.inf:
        raise ValueError(f"{what}: median_us is no time above 0")
    for name in ("q1_us", "q3_us", "min_us"):
        timing[name] = median_us if timing[name] is None else timing[name]
    samples = timing["samples_us"]
    numbers = [timing["q1_us"], timing["q3_us"], timing["min_us"]]
    if not isinstance(samples, list) or not all(map(is_number, [*numbers, *samples])):
        raise ValueError(f"{what}: a sample is no number")
    return timing


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


def numbered(count: int, one: str, many: str = "") -> str:
    """'1 case', '2 cases'; `many`: the plural, where it is not the word with an s"""
    return f"{count} {one if count == 1 else many or one + 's'}"


def geomean(values):
    values = [v for v in values if v is not None and v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None
