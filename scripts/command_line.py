"""What the command lines of the scripts share."""

import argparse
import os
import pathlib


class Parser(argparse.ArgumentParser):
    """Bad arguments end with exit code 1, as in the program: 2 is a wrong result."""

    def error(self, message):
        self.exit(1, f"{self.prog}: {message}\n")


def find_program():
    """The file that SPMMBENCH names, else what was built in this clone, else the one on PATH."""
    if named := os.environ.get("SPMMBENCH"):
        return named
    builds = pathlib.Path(__file__).resolve().parents[1] / "build"
    for preset in ("release", "host"):
        if (program := builds / preset / "spmmbench").exists():
            return str(program)
    return "spmmbench"
