"""What the command lines of the scripts share."""

import argparse
import importlib
import os
import pathlib
import platform
import shlex
import sys


class Parser(argparse.ArgumentParser):
    """Bad arguments end with exit code 1, as in the program: 2 is a wrong result."""

    def error(self, message):
        self.exit(1, f"{self.prog}: {message}\n")


def require(*modules):
    """Ends the script where this Python lacks one of the modules, with which Python that is and how to
    get one that has them. To be called behind the arguments, so that --help needs none of them."""
    missing = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if not missing:
        return
    script = pathlib.Path(sys.argv[0])
    python = "~/.venvs/spmmbench/bin/python"
    sys.exit(
        f"{script.name}: {sys.executable} (Python {platform.python_version()}) lacks {' and '.join(missing)}. "
        "To make a Python that has all it needs, and to run it:\n"
        f"  python3 -m venv ~/.venvs/spmmbench && {python} -m pip install {' '.join(modules)}\n"
        f"  {python} {shlex.join([str(script), *sys.argv[1:]])}"
    )


def find_program():
    """The file that SPMMBENCH names, else what was built in this clone, else the one on PATH."""
    if named := os.environ.get("SPMMBENCH"):
        return named
    builds = pathlib.Path(__file__).resolve().parents[1] / "build"
    for preset in ("release", "host"):
        if (program := builds / preset / "spmmbench").exists():
            return str(program)
    return "spmmbench"
