#!/usr/bin/env python3
"""libspmmbench.so as somebody else's program finds and uses it."""

import os
import re
import shutil
import subprocess
import unittest

from cli_case import SOURCE, CliCase, main
from installed import build, has_gpu, install, run


class InstalledLibrary(CliCase):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        install(self.prefix, "plugin", "library")

    def run_consumer(self, program, **kwargs):
        result = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False,
                                **kwargs)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_a_cmake_project_finds_links_and_calls_it(self):
        version = re.search(r"project\(spmmbench VERSION (\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        built = build("tests/library", self.prefix, self.folder, f"-DWANTED_VERSION={version}")
        self.run_consumer(built / "consumer")
        self.run_consumer(built / "measure")

    def test_a_cmake_project_that_wants_another_version_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "requested\\s+version \"0.1\""):
            build("tests/library", self.prefix, self.folder, "-DWANTED_VERSION=0.1")

    @unittest.skipUnless(shutil.which("pkg-config"), "needs pkg-config")
    def test_pkg_config_gives_the_flags_wherever_it_was_installed(self):
        (pc,) = self.prefix.rglob("spmmbench.pc")
        flags = run("pkg-config", "--cflags", "--libs", "spmmbench",
                    env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}).split()
        program = self.folder / "consumer"
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic",
            SOURCE / "tests/library/consumer.c", *flags, "-o", program)
        (library,) = self.prefix.rglob("libspmmbench.so")
        self.run_consumer(program, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})

    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_every_gpu_kernel_is_exact_on_the_callers_stream_at_multiples_of_16_bytes(self):
        (library,) = self.prefix.rglob("libspmmbench.so")
        program = self.folder / "consumer_cuda"
        run("nvcc", SOURCE / "tests/library/consumer_cuda.c", "-I", self.prefix / "include", "-L", library.parent,
            "-lspmmbench", "-o", program)
        if not has_gpu(self):
            self.skipTest("compiles; needs a GPU to run")
        result = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False,
                                env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_only_the_entries_are_visible(self):
        (library,) = self.prefix.rglob("libspmmbench.so")
        lines = run("nm", "-D", "--defined-only", library).splitlines()
        entries = ["spmmbench_attending", "spmmbench_gating", "spmmbench_kernels", "spmmbench_measuring"]
        self.assertEqual([line.split()[-1] for line in lines], entries)

    def test_each_header_is_c99_and_cxx11_alone_or_cxx17(self):
        for header in sorted((self.prefix / "include/spmmbench").glob("*.h*")):
            both, cpp_alone = (("cc", "c", "c99"), ("c++", "c++", "c++11")), (("c++", "c++", "c++17"),)
            for compiler, language, standard in cpp_alone if header.suffix == ".hpp" else both:
                with self.subTest(f"{header.name} {standard}"):
                    run(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                        "-pedantic", "-fsyntax-only", "-I", self.prefix / "include", "-",
                        input=f'#include "spmmbench/{header.name}"\nint main(void) {{ return 0; }}\n')


if __name__ == "__main__":
    main()
