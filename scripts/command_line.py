"""What the command lines of the scripts share."""

import argparse
import importlib
import os
import pathlib
import platform
import shlex
import sys


def path_of(text):
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text")  # of a variable that is not set
    return pathlib.Path(text)


def numbered(count: int, one: str, many: str = "") -> str:
    """'1 case', '2 cases'; `many`: the plural, where it is not the word with an s"""
    return f"{count} {one if count == 1 else many or one + 's'}"


class Parser(argparse.ArgumentParser):
    """Bad arguments end with exit code 1, as in the program: 2 is a wrong result."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register("type", pathlib.Path, path_of)  # called in its place

    def error(self, message):
        self.exit(1, f"{self.prog}: {message}\n")


def require(*modules):
    """Ends the script where this Python lacks one of the modules, with which Python that is and how to
    get one that has them. To be called behind the arguments, so that --help needs none of them, or, where
    classes of the script are made of a module, before that is imported."""
    missing = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:  # also of a module that this one needs
            if (lacked := error.name or name) not in missing:
                missing.append(lacked)
    if not missing:
        return
    script = pathlib.Path(sys.argv[0])
    listed = " and ".join([", ".join(missing[:-1]), missing[-1]] if missing[1:] else missing)
    python = "~/.venvs/spmmbench/bin/python"
    own = {"spmmbench": str(pathlib.Path(__file__).resolve().parents[1] / "python")}  # not in a registry
    sys.exit(
        f"{script.name}: {sys.executable} (Python {platform.python_version()}) lacks {listed}. "
        "To make a Python that has all it needs, and to run it:\n"
        f"  python3 -m venv ~/.venvs/spmmbench && {python} -m pip install {shlex.join(own.get(name, name) for name in modules)}\n"
        f"  {python} {shlex.join([str(script), *sys.argv[1:]])}"
    )


def run(main):
    """Ends the script with what `main` returns. What result_data or libspmmbench refuse, memory that does not
    suffice, and files that cannot be read or written are one line and exit code 1."""
    from result_data import InputError, readable

    try:
        sys.exit(main())
    except Exception as error:
        package = sys.modules.get("spmmbench")
        told = (InputError, OSError, MemoryError, *([package.Error] if package else []))
        if not isinstance(error, told):
            raise
        file = getattr(error, "filename", None)
        text = f"{readable(str(file))}: {error.strerror}" if file else str(error)
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {text}")


def find_program():
    """The file that SPMMBENCH names, else what was built in this clone, else the one on PATH."""
    if named := os.environ.get("SPMMBENCH"):
        return named
    builds = pathlib.Path(__file__).resolve().parents[1] / "build"
    for preset in ("release", "host"):
        if (program := builds / preset / "spmmbench").exists():
            return str(program)
    return "spmmbench"
