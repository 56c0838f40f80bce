"""What the command-line tests share: the program under test, a scratch folder, documents."""

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = os.environ.get("SPMMBENCH")
SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SMALL = "gen:uniform?rows=50&cols=40&density=0.1"
RECORDED = SOURCE / "results/h200/irregular-fp16-n128.json"
# One thread, few samples and no baselines: what is tested is not the speed.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
QUICK = ("--device", "-1", "--min-samples", "4", "--max-samples", "5", "--max-seconds", "0.05",
         "--no-baselines")


def python_with_packages(*packages):
    """The distribution's interpreter may have them where the first on PATH has not."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", f"import {', '.join(packages)}"]
        if pathlib.Path(python).exists() and not subprocess.run(probe, capture_output=True, check=False).returncode:
            return python
    return None


class CliCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def spmmbench(self, *args, **kwargs):
        command = [PROGRAM, *map(str, args)]
        options = {"capture_output": True, "text": True, "timeout": 120, "env": ENVIRONMENT}
        return subprocess.run(command, check=False, **{**options, **kwargs})

    def run_cpu(self, *args, **kwargs):
        """`spmmbench run` of the CPU kernel, quickly."""
        return self.spmmbench("run", *args, "-k", "cpu_csr", *QUICK, **kwargs)

    def run_with_addresses(self, kib, *args):
        """run_cpu in a process of at most so many KiB of addresses."""
        command = ["sh", "-c", f'ulimit -v {kib}; exec "$0" "$@"', PROGRAM, "run", *map(str, args), "-k", "cpu_csr", *QUICK]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)

    def least_addresses(self, matrix):
        """KiB of addresses with which a small case has room, up to 8 MiB too many."""
        too_few, enough = 16 << 10, 1 << 20
        while enough - too_few > 8 << 10:
            kib = (too_few + enough) // 2
            has_room = self.run_with_addresses(kib, matrix, "-n", 8).returncode == 0
            too_few, enough = (too_few, kib) if has_room else (kib, enough)
        return enough

    def assert_one_line(self, result, code, expected):
        """The exit code, and exactly one line on stderr that names what was expected."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(expected, result.stderr)


def read(path):
    return json.loads(pathlib.Path(path).read_text())


@functools.cache
def recorded_part(matrix):
    """A document with what RECORDED has of one matrix: its 4.8 MB take a command most of its time."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    document = read(RECORDED)
    document["rows"] = [row for row in document["rows"] if row["matrix"]["name"] == matrix]
    document["answers"] = [answer for answer in document["answers"] if answer["matrix"] == matrix]
    path = pathlib.Path(folder.name) / RECORDED.name
    write(path, document)
    return path


def note_verdicts(rows):
    """For scripts/docs_tables_cheats.py, where SPMMBENCH_VERDICTS names a file."""
    if path := os.environ.get("SPMMBENCH_VERDICTS"):
        with open(path, "a") as file:
            file.writelines(f"{row['kernel']},{row['status']}\n" for row in rows)


def write(path, document):
    pathlib.Path(path).write_text(json.dumps(document))


def journal_line(value):
    """A line of a journal: its last member is the checksum of what stands before it."""
    body = json.dumps(value)[:-1]
    return f'{body},"crc32":"{zlib.crc32(body.encode()):08x}"}}\n'


def case_of(row):
    fields = ("n", "kernel", "precision", "c_type", "layout", "reorder")
    return (row["matrix"]["source"], *(row[field] for field in fields))


def main():
    if not PROGRAM:
        print("SPMMBENCH is not set")
        sys.exit(77)
    unittest.main()
