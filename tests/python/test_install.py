"""`pip install python/` needs no compiler, and finds a library beside the package or in the user's
prefix. A wheel holds the program and the library."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from python_case import PACKAGE, SKIPPED, SOURCE, main, need

need("numpy", "scipy")
for name in ("pip", "setuptools", "wheel"):
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed")
        sys.exit(SKIPPED)
LIBRARY = os.environ.get("SPMMBENCH_LIBRARY")
PIP = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
PIP += ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]


class Installed(unittest.TestCase):
    @unittest.skipUnless(LIBRARY, "SPMMBENCH_LIBRARY names no library")
    def test_the_installed_package_multiplies_with_the_library_beside_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(PACKAGE, folder / "source")
            pip = [*PIP, "--target", folder / "site", folder / "source"]
            environment = {**os.environ, "CC": "false", "CXX": "false"}
            subprocess.run(pip, check=True, env=environment)
            self.assertTrue((folder / "site" / "spmmbench" / "py.typed").exists())  # hints count
            shutil.copy(LIBRARY, folder / "site" / "spmmbench" / "libspmmbench.so")
            code = (
                "import numpy, scipy.sparse, spmmbench\n"
                "plan = spmmbench.plan(scipy.sparse.identity(5, numpy.float32), 4, 'cpu_csr')\n"
                "print((plan @ numpy.full((5, 4), 3, numpy.float32)).sum(), spmmbench.load().path)"
            )
            environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
            del environment["SPMMBENCH_LIBRARY"]
            told = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                check=True, cwd=folder,
            ).stdout  # fmt: skip
            self.assertEqual(
                told.split(), ["60.0", str(folder / "site" / "spmmbench" / "libspmmbench.so")]
            )

    @unittest.skipUnless(LIBRARY, "SPMMBENCH_LIBRARY names no library")
    def test_a_library_that_was_installed_for_the_user_is_found(self):
        for folder in ("lib", "lib64"):
            with self.subTest(folder), tempfile.TemporaryDirectory() as name:
                installed = pathlib.Path(name) / folder / "libspmmbench.so"
                installed.parent.mkdir()
                installed.symlink_to(LIBRARY)
                code = (
                    "import sys, spmmbench\n"
                    "sys.prefix = '/nowhere'\n"  # the user's comes next
                    "print(spmmbench.load().path)"
                )
                environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUSERBASE": name}
                del environment["SPMMBENCH_LIBRARY"]
                told = subprocess.run(
                    [sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                    check=True, cwd=name,
                ).stdout  # fmt: skip
                self.assertEqual(told.strip(), str(installed))

    @unittest.skipUnless(LIBRARY, "SPMMBENCH_LIBRARY names no library")
    def test_a_wheel_has_the_program_and_the_library(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wheel = subprocess.run(
                [SOURCE / "scripts" / "wheel.sh", "--of", pathlib.Path(LIBRARY).parent, folder],
                capture_output=True, text=True, check=True,
            ).stdout.strip()  # fmt: skip
            self.assertRegex(wheel, r"-py3-none-(many)?linux_\w+\.whl$")
            site = folder / "site"
            subprocess.run([*PIP, "--target", site, wheel], check=True)
            environment = {**os.environ, "PYTHONPATH": str(site)}
            del environment["SPMMBENCH_LIBRARY"]

            def told(*command):
                return subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True, cwd=folder
                ).stdout

            code = "import spmmbench; print(spmmbench.load().path)"
            library = str(site / "spmmbench" / "libspmmbench.so")
            (license,) = site.glob("spmmbench-*.dist-info/**/LICENSE")
            self.assertEqual(license.read_text(), (SOURCE / "LICENSE").read_text())
            self.assertEqual(told(sys.executable, "-c", code).strip(), library)
            version = told(sys.executable, "-m", "spmmbench", "--version")
            self.assertEqual(version, told(os.environ["SPMMBENCH"], "--version"))
            self.assertEqual(version, told(sys.executable, site / "bin" / "spmmbench", "--version"))

    def test_without_the_program_python_m_says_what_has_it(self):
        done = subprocess.run(
            [sys.executable, "-m", "spmmbench", "--version"], cwd=PACKAGE, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^spmmbench: .*/spmmbench does not exist: .*scripts/wheel.sh")
        self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    main()
