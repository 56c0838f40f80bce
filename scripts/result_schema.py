"""What no result document holds, as `spmmbench show` reads them: values outside results/schema.json, which the
program writes from the tables that it reads by, and rows that contradict themselves or each other.

Like the program, this leaves patterns of texts and fields that the schema does not name alone.
"""

import json
import math
import pathlib
import statistics

SCHEMA = pathlib.Path(__file__).resolve().parents[1] / "results" / "schema.json"
EXPECTED = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "an integer"),
    "number": ((int, float), "a number"),
    "null": (type(None), "null"),
}
LARGEST_INTEGER, LARGEST_SEED = 2**63 - 1, 2**64 - 1  # of the program
NON_FINITE = {"never": math.inf, "inf": math.inf, "nan": math.nan}


class Damaged(ValueError):
    """The message names the field."""


def number(value):
    """A number of JSON or one of the words that stand for a non-finite one; None stays None."""
    return NON_FINITE.get(value) if isinstance(value, str) else value


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:40] + "..."


def is_of(value, kind):
    type_of_python, _ = EXPECTED[kind]
    return isinstance(value, type_of_python) and (kind == "boolean" or not isinstance(value, bool))


class Schema:
    def __init__(self, path=SCHEMA):
        self._whole = json.loads(path.read_text(encoding="utf-8"))
        self.version = self._whole["properties"]["schema_version"]["const"]

    def part(self, name):
        return self._whole["$defs"][name]

    def check(self, schema, value, place=""):
        """Raises Damaged for the first value that is not as the schema says."""
        forms = self._forms(schema)
        fitting = [form for form in forms if fits(form, value)]
        expected = "" if fitting else described(forms)
        for limits in (schema, *fitting):
            expected = expected or limit_passed(limits, value, LARGEST_SEED if place == "seed" else LARGEST_INTEGER)
        if expected:
            raise Damaged(f"{place and f'{place!r}: '}expected {expected}, got {shown(value)}")
        if isinstance(value, dict):
            self._check_fields(fitting[0], value, place)
        elif isinstance(value, list) and "items" in fitting[0]:
            self._check_items(fitting[0]["items"], value, place)

    def _check_fields(self, schema, value, place):
        below = f"{place}." if place else ""
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", ()):
            if name in fields and name not in value:  # the program misses no key of a map
                raise Damaged(f"expected the field '{below}{name}'")
        for name, item in value.items():
            if known := fields.get(name, others):
                self.check(known, item, below + name)

    def _check_items(self, schema, values, place):
        numbers = any(form.get("type") == "number" for form in self._forms(schema))
        for i, value in enumerate(values):
            if not (numbers and type(value) is float):  # samples are most of a document
                self.check(schema, value, f"{place}[{i}]")

    def _forms(self, schema):
        """What a value may be, one of them."""
        if "$ref" in schema:
            return self._forms(self.part(schema["$ref"].rsplit("/", 1)[1]))
        several = schema.get("anyOf") or schema.get("oneOf")
        return [form for one in several for form in self._forms(one)] if several else [schema]


def fits(form, value):
    return ("type" not in form or is_of(value, form["type"])) and ("enum" not in form or value in form["enum"])


def described(forms):
    """As the program says it, which leaves null and the words for non-finite numbers out."""
    kinds = [form["type"] for form in forms if form.get("type") not in (None, "null")]
    if "enum" in forms[0]:
        return f"one of {json.dumps(forms[0]['enum'])}"
    return " or ".join(EXPECTED[kind][1] for kind in kinds)


def limit_passed(schema, value, largest):
    """What is expected, where a value of the right type is outside the limits."""
    if is_of(value, "number"):
        if not value >= schema.get("minimum", -math.inf):
            return f"at least {schema['minimum']}"
        if not value > schema.get("exclusiveMinimum", -math.inf):
            return f"more than {schema['exclusiveMinimum']}"
        if value > largest and schema.get("type") == "integer":
            return f"an integer from 0 to {largest}"
    if value == "" and "minLength" in schema:
        return "text, not empty"
    return "a list, not empty" if value == [] and "minItems" in schema else ""


# ---- rows that contradict themselves, or each other --------------------------------------------

ROUNDING = 1e-3  # of recorded samples (scripts/slim.py)


def contradiction_of_timing(timing, name):
    samples = [number(sample) for sample in timing["samples_us"]]
    if not min(samples) > 0:
        return f"has {name} samples that are no time above 0"
    median_us, of_samples = number(timing["median_us"]), statistics.median(samples)
    if not abs(median_us - of_samples) <= ROUNDING * of_samples:
        return f"has a {name} median of {median_us:g} us, and samples with one of {of_samples:g} us"
    return ""


def contradiction_of_verdicts(row):
    verdict, exact = row["verify"], row.get("exact")
    if not verdict:
        return "is ok without a verification"
    if not number(verdict["error_over_bound"]) <= 1:
        return f"is ok with an error of {number(verdict['error_over_bound']):g} x its bound"
    if exact and not exact["passed"] and not exact["not_made"]:
        return "is ok though its exact test failed"
    return ""


def contradiction_of(row):
    for stage, ms in row["stages_ms"].items():
        if not 0 <= number(ms) < math.inf:
            return f"has a stage '{stage}' of {number(ms):g} ms"
    for calls, us in row.get("calls_us", {}).items():
        if not 0 < number(us) < math.inf:
            return f"has times of calls, of which {calls} took {number(us):g} us"
    found = contradiction_of_verdicts(row) if row["status"] == "ok" else ""
    for name in ("hot", "cold"):
        found = found or (contradiction_of_timing(row[name], name) if row[name] else "")
    return found


def case_of_document(row):
    """Two rows of a document differ in it."""
    matrix, split = row["matrix"], row.get("split") or {}
    identity = matrix["sha256"] or (matrix["rows"], matrix["cols"])
    fields = ("n", "kernel", "precision", "c_type", "layout", "reorder")
    operation = (row.get("alpha", 1), row.get("beta", 0), row.get("batch", 1), split.get("name"), split.get("gpus"))
    return (matrix["name"], matrix["source"], identity, *(row[field] for field in fields), *operation)


def check_document(document, schema):
    """Raises Damaged. A document whose version is the schema's."""
    schema.check(schema.part("context"), document["context"])
    schema.check({"type": "array"}, document["rows"], "rows")
    cases = set()
    for i, row in enumerate(document["rows"]):
        try:
            schema.check(schema.part("row"), row)
        except Damaged as damage:
            raise Damaged(f"rows[{i}]: {damage}") from None
        found = contradiction_of(row)
        if not found and (case := case_of_document(row)) in cases:
            found = f"has a second row at N = {row['n']} on {row['matrix']['name']}"
        if found:
            raise Damaged(f"'rows[{i}]': {row['kernel']} {found}")
        cases.add(case)
    schema.check({"type": "boolean"}, document.get("complete"), "complete")
    if "answers" in document:
        schema.check({"type": "array", "items": schema.part("answer")}, document["answers"], "answers")
