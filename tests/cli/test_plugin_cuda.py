#!/usr/bin/env python3
"""Kernels of shared libraries for a GPU: the example, their code on the host, and every fault that one may have."""

import pathlib
import shutil
import subprocess
import unittest

import cli_case
from cli_case import ENVIRONMENT, SOURCE, main
from installed import build, has_gpu, run
from plugin_case import FOLDER, PREFIX, Plugins, setUpModule, tearDownModule  # noqa: F401 (unittest calls both)


class CudaExample(Plugins):
    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_it_compiles_and_says_what_it_needs(self):
        library = build("examples/plugin/cuda", PREFIX, FOLDER / "cuda",
                        "-DCMAKE_CUDA_ARCHITECTURES=90") / "libcsr_warp.so"
        if has_gpu(self):
            rows = self.rows(library, precision="fp16", device=0)
            self.assert_reason(rows["csr_warp:csr_warp"], "ok", "")
            return
        row = self.rows(library, precision="fp16", expected=4)["csr_warp:csr_warp"]
        self.assert_reason(row, "skipped", "no CUDA device")


class HostCode(Plugins):
    """What a plug-in for a GPU does on the host, with the CUDA runtime of include/spmmbench/cuda_on_host.c."""

    def check(self, library, **environment):
        return subprocess.run([cli_case.PROGRAM, "check-plugin", "--host-code", library], capture_output=True, text=True,
                              timeout=240, check=False, env={**ENVIRONMENT, **environment})

    @unittest.skipUnless(shutil.which("nvcc"), "needs the CUDA toolkit")
    def test_faults_are_found_without_a_gpu(self):
        toolkit = pathlib.Path(shutil.which("nvcc")).resolve().parents[1] / "include"
        runtime, library = FOLDER / "cuda_on_host.o", FOLDER / "libhost_code.so"
        run("cc", "-O0", "-fPIC", "-fsanitize=address", "-I", toolkit, "-c", PREFIX / "include/spmmbench/cuda_on_host.c",
            "-o", runtime)
        run("c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-fsanitize=address", "-I", PREFIX / "include", "-I", toolkit,
            SOURCE / "tests/plugin/host_code.cpp", runtime, "-o", library)
        sanitizer = run("gcc", "-print-file-name=libasan.so").strip()
        result = self.check(library, LD_PRELOAD=sanitizer)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"ok +host_code:right: \d+ cases of its host code ended well")
        self.assertIn("FAILED  host_code:too_small: exit", result.stdout)
        self.assertIn("heap-buffer-overflow", result.stderr)
        self.assertIn("FAILED  host_code:loses: exit", result.stdout)
        self.assertNotIn("ok      host_code:loses", result.stdout)
        self.assertIn("LeakSanitizer", result.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_code_of_nvcc_links_with_it(self):
        library = FOLDER / "libcsr_warp_host.so"
        run("nvcc", "-shared", "-cudart", "none", "-Xcompiler=-fPIC", "-std=c++20", "-arch=compute_80", "-I",
            PREFIX / "include", SOURCE / "examples/plugin/cuda/csr_warp.cu", PREFIX / "include/spmmbench/cuda_on_host.c",
            "-o", library)
        result = self.check(library)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"ok +csr_warp_host:csr_warp: \d{2,} cases of its host code ended well")


class CudaFaults(Plugins):
    def one_small_value(self):
        """A matrix whose first nonzero is hidden by rounding, but in the exact test."""
        path = self.folder / "small.mtx"
        lines = [f"{row + 1} {(row * 7 + i * 13) % 900 + 1} {1e-9 if row == i == 0 else 0.3 + i / 40}"
                 for row in range(1000) for i in range(20)]
        path.write_text("\n".join(["%%MatrixMarket matrix coordinate real general", f"1000 900 {len(lines)}", *lines, ""]))
        return path

    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_on_a_gpu_too_a_fault_costs_its_row(self):
        library = FOLDER / "libflags_cuda.so"
        run("nvcc", "-shared", "-Xcompiler=-fPIC", "-std=c++17", "-arch=compute_80", "-I", PREFIX / "include",
            SOURCE / "tests/plugin/flags_cuda.cu", "-o", library)
        if not has_gpu(self):
            result = self.spmmbench("check-plugin", f"{library}:good")
            self.assertEqual((result.returncode, result.stdout.split()[0]), (4, "skipped"), "nothing was checked")
            self.skipTest("compiles; needs a GPU to run")
        rows = self.rows(library, "--timeout", 20, device=0, expected=2)
        for name, status in (
                ("good", "ok"), ("both", "ok"), ("adds", "ok"), ("legacy", "ok"), ("waits", "ok"), ("own_stream", "wrong"),
                ("no_launch", "wrong"), ("beyond", "wrong"), ("far", "failed"), ("trap", "failed"), ("hang", "timeout"),
                ("takes_values", "ok")):
            with self.subTest(name):
                self.assert_reason(rows["flags_cuda:" + name], status, "")
        rows = self.rows(",".join(f"{library}:{name}" for name in ("takes_values", "leaves_out")), device=0, expected=2,
                         matrix=self.one_small_value())
        self.assert_reason(rows["flags_cuda:leaves_out"], "wrong", "exact test with other values in place: C(0, ")
        honest = rows["flags_cuda:takes_values"]
        self.assert_reason(honest, "ok", "")
        self.assertTrue(honest["exact"]["timed_plan"])


if __name__ == "__main__":
    main()
