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
    command: Callable  # matrices -> arguments of the program, or of the script
    evaluate: Callable  # what was read -> (lines, what differs)
    inspects: bool = False  # reads the list that `inspect --json` prints, not a result document
    matrices: bool = True  # takes matrices; the others generate theirs
    script: str = ""  # measures instead of the program; takes --out and writes what load_example reads
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


# Systems of the papers -> how the library or the kernel of a plug-in begins that wraps one.
PLUGINS = {
    "Sputnik": ("sputnik",),
    "RoDe": ("rode",),
    "TC-GNN": ("tcgnn",),
    "DTC-SpMM": ("dtc",),
    "Acc-SpMM": ("acc",),
    "HC-SpMM": ("hcspmm",),
    "MP-SpMM": ("mpspmm",),
}


def plugin_system(name):
    """The system that a kernel of a plug-in is, its own name where no paper has it; None for ours."""
    if ":" not in name:
        return None
    parts = ["".join(c for c in part.lower() if c.isalnum()) for part in name.split(":")]
    named = (system for system, starts in PLUGINS.items() if any(p.startswith(starts) for p in parts))
    return next(named, name)


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
