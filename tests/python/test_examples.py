"""examples/: what is missing or wrong is said without a traceback, and ends with exit code 1."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_case import PACKAGE, SOURCE, main, need

need("numpy", "scipy")
EXAMPLES = SOURCE / "examples"
MISSING = {  # a script: a module that it cannot do without
    "eigen/lobpcg.py": "scipy",
    "eigen/filtered.py": "torch",
    "gcn/gcn.py": "torch",
    "gcn/minibatch.py": "torch",
    "gcn/several_gpus.py": "torch",
    "qwen/qwen.py": "torch",
    "qwen/attend.py": "torch",
}
NEEDED = {"gcn": ("--out", "out", "ring.npz"), "qwen": ("--out", "out"), "eigen": ()}


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_refused(self, text, script, *arguments, **environment):
        paths = [str(self.folder), str(PACKAGE)]
        told = subprocess.run(
            [sys.executable, str(EXAMPLES / script), *map(str, arguments)], capture_output=True, text=True, check=False,
            cwd=self.folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        )  # fmt: skip
        self.assertEqual(told.returncode, 1, (script, told.stderr))
        self.assertNotIn("Traceback", told.stderr, script)
        self.assertIn(text, told.stderr, script)

    def test_a_module_that_is_missing_is_named_with_the_commands_that_install_it(self):
        for script, module in MISSING.items():
            absent = self.folder / f"{module}.py"
            absent.write_text(f"raise ModuleNotFoundError(name={module!r})\n")
            self.assert_refused("-m pip install ", script, *NEEDED[script.partition("/")[0]])
            self.assert_refused(f" lacks {module}. ", script, *NEEDED[script.partition("/")[0]])
            absent.unlink()

    def test_a_library_that_is_missing_is_said(self):
        nowhere = self.folder / "libspmmbench.so"
        self.assert_refused(f"{nowhere}: no such file", "eigen/lobpcg.py", "--side", 4, SPMMBENCH_LIBRARY=str(nowhere))

    def test_an_argument_that_is_wrong_is_said(self):
        for script in ("eigen/lobpcg.py", "qwen/qwen.py", "gcn/report.py", "qwen/report.py"):
            self.assert_refused("unrecognized arguments: --nope", script, "--nope", "--out=x", "x")

    def test_reports_say_what_is_wrong_with_a_file(self):
        for name, content, text in (("cut", "{", "not JSON"), ("list", "[]", "expected what "), ("gone", None, "No such file")):
            path = self.folder / f"{name}.json"
            if content:
                path.write_text(content)
            for script in ("gcn/report.py", "qwen/report.py"):
                self.assert_refused(f"report.py: {path}: {text}", script, path)
        recorded = SOURCE / "results/h200"
        for script, name, text in (
            ("gcn/report.py", "qwen.json", "expected what gcn.py or minibatch.py wrote"),
            ("qwen/report.py", "gcn.json", "damaged: expected the field"),
            ("qwen/report.py", "irregular-fp16-n128.json", "expected what qwen.py wrote"),
        ):
            self.assert_refused(f"report.py: {recorded / name}: {text}", script, recorded / name)


if __name__ == "__main__":
    main()
