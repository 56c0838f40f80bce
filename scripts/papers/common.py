"""What the papers' figures and tables share: a published number, a target, reading of rows."""

from dataclasses import dataclass
from typing import Callable

from result_data import InputError


@dataclass
class Line:
    """One number. cases: the measurements behind it."""

    what: str
    published: float | None
    measured: float | None
    cases: int
    digits: int = 2


@dataclass
class Target:
    title: str
    source: str
    published_on: str
    command: Callable  # matrices -> arguments of the program
    evaluate: Callable  # what was read -> (lines, what differs)
    inspects: bool = False  # reads the list that `inspect --json` prints, not a result document
    matrices: bool = True  # takes matrices; the others generate theirs
    plugins: bool = False  # compares systems, of which others may be brought as plug-ins


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def verified(documents):
    return [
        row
        for document in documents
        for row in document["rows"]
        if row["status"] == "ok" and row["hot"]
    ]


def options_of(name):
    """("rsh", {"two_opt": "0"}) of rsh?two_opt=0."""
    base, _, options = name.partition("?")
    return base, dict(option.partition("=")[::2] for option in options.split("&") if option)


def run_command(*arguments):
    """`spmmbench run`, quickly: sampling per case is bounded, as a whole figure is measured at once."""
    return ["run", *arguments, "--max-seconds", "0.1", "-q"]


def checked_inspection(value, name):
    """The list that `inspect --json` prints, else an error that says so."""
    for matrix in value if isinstance(value, list) else [None]:
        try:
            whole = isinstance(matrix["name"], str) and matrix["reorderings"][0]["formats"].items()
        except (AttributeError, IndexError, KeyError, TypeError):
            whole = False
        if whole is False:
            raise InputError(f"{name}: expected what `spmmbench inspect --json` prints")
    return value
