"""What the areas of the attack share: how to run the program, and what a refusal is."""

import json
import os
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
SMALL = "gen:uniform?rows=50&cols=40&density=0.1"
TIMEOUT_S = 120  # no case takes a tenth of it
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
# Eight cases of about 0.1 s.
SLOW = ("-k", "cpu_csr", "--no-baselines", "--noise", "0", "--min-samples", "4", "--max-samples",
        "100000", "--max-seconds", "0.04")  # fmt: skip
QUICK = ("-k", "cpu_csr", "--device", "-1", "--no-baselines", "--min-samples", "4", "--max-samples", "5",
         "--max-seconds", "0.05")  # fmt: skip

class Failed(Exception):
    """What was promised and did not hold."""

def require(holds, what):
    if not holds:
        raise Failed(what)

def key(row):
    return (row["matrix"]["source"], row["n"], row["kernel"], row["precision"], row["reorder"])

def read(path):
    return json.loads(pathlib.Path(path).read_text())

class Attack:
    """One area. `cases` yields (name, function); a function raises Failed."""

    def __init__(self, options, folder):
        self.program = str(options.build / "spmmbench")
        self.prefix = []  # a command that runs the program as another user
        self.tests = options.build / "tests"
        self.rng = random.Random(options.seed)
        self.share = 0.1 if options.few else 1
        self.folder = folder
        self.folder.chmod(0o755)  # for the user without rights

    def count(self, whole):
        return max(1, round(whole * self.share))

    def tried(self, cases):
        """In the words of the table."""
        return str(cases)

    def fresh(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run(self, *args, limit="", **kwargs):
        """`limit`: a shell's ulimit."""
        options = {"capture_output": True, "timeout": TIMEOUT_S, "env": ENVIRONMENT, **kwargs}
        command = ["sh", "-c", f'{limit}; exec "$0" "$@"'] if limit else []
        try:
            result = subprocess.run([*self.prefix, *command, self.program, *map(str, args)], check=False, **options)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {TIMEOUT_S} s") from None
        require(result.returncode >= 0, f"ended by signal {-result.returncode}")
        return result

    def require_refusal(self, result, code=1):
        text = (result.stderr or b"").decode(errors="replace")
        require(result.returncode == code, f"exit code {result.returncode}, expected {code}: {text}")
        require(text.count("\n") == 1, f"expected one line on stderr: {text!r}")
        require(all(c == "\n" or c.isprintable() for c in text), f"control characters on stderr: {text!r}")

