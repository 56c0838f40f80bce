#!/usr/bin/env python3
"""scripts/kernel_resources.py: what ptxas prints is read right, a change is found, and the kernels of
this build use what results/resources.json recorded."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SCRIPT = SOURCE / "scripts" / "kernel_resources.py"
sys.path.insert(0, str(SCRIPT.parent))
import kernel_resources  # noqa: E402

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN9spmmbench12_GLOBAL__N_14scanIfLi8EEEvPT_' for 'sm_90a'
ptxas info    : Function properties for _ZN9spmmbench12_GLOBAL__N_14scanIfLi8EEEvPT_
    8 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 2048 bytes smem
ptxas info    : Compile time = 3.000 ms
ptxas info    : Compiling entry function '_Z4copyPf' for 'sm_90a'
ptxas info    : Function properties for _Z4copyPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z4copyPf' for 'sm_80'
ptxas info    : Function properties for _Z4copyPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""


class KernelResources(unittest.TestCase):
    def test_reads_registers_spills_and_shared_memory_of_one_architecture(self):
        kernels = kernel_resources.parse_ptxas(PTXAS)
        self.assertEqual(
            list(kernels.values()),
            [
                {"stack_bytes": 8, "spill_bytes": 16, "registers": 40, "shared_bytes": 2048},
                {"stack_bytes": 0, "spill_bytes": 0, "registers": 16, "shared_bytes": 0},
            ],
        )

    def test_names_have_no_namespaces_and_no_parameters(self):
        self.assertEqual(
            kernel_resources.shorten(
                "void spmmbench::(anonymous namespace)::scan<float, (Mode)1, 8>(float*, long)"
            ),
            "scan<float, (Mode)1, 8>",
        )

    def test_a_kernel_of_a_joined_file_belongs_to_the_source_that_defines_it(self):
        slices, joined = SOURCE / "kernels/jagged_slices/device_build.cu", SOURCE / "kernels/row_order/match_order.cu"
        sources = [SOURCE / "kernels/gap_slices/device_build.cu", slices, joined]
        built = "jagged::move_entries<jagged::Build<unsigned int> >"
        self.assertEqual(kernel_resources.defining(built, sources), slices)
        self.assertEqual(kernel_resources.defining("match::join_clusters", sources), joined, "in a header of its folder")
        skips, lists = SOURCE / "kernels/esmm_skip/esmm_skip.cu", SOURCE / "kernels/esmm/esmm.cu"
        self.assertEqual(kernel_resources.defining("esmm::skip_tiles", [lists, skips]), skips)
        self.assertEqual(kernel_resources.defining("esmm::extract_b<float>", [skips, lists]), lists,
                         "in a header that one of its folder includes")

    def test_a_kernel_that_the_file_of_its_folder_defines_is_recorded_without_the_namespace(self):
        naive, bcsr = SOURCE / "kernels/csr_naive/csr_naive.cu", SOURCE / "kernels/async_bcsr/async_bcsr.cu"
        self.assertEqual(kernel_resources.recorded_name("csr_naive::csr_naive_kernel<float>", naive),
                         "csr_naive_kernel<float>")
        self.assertEqual(kernel_resources.recorded_name("async_bcsr::kernel<int>", bcsr), "async_bcsr::kernel<int>")

    def test_shared_memory_is_compared_in_steps_of_16_bytes(self):
        alone, joined, more = ({"kernels/a.cu": {"scan": {"shared_bytes": count}}} for count in (4, 16, 20))
        self.assertEqual(kernel_resources.compare(alone, joined), ([], []))
        self.assertEqual(len(kernel_resources.compare(joined, more)[0]), 1)

    def test_registers_are_compared_as_a_multiprocessor_gives_them_out(self):
        fewer, same, more = ({"kernels/a.cu": {"scan": {"registers": count}}} for count in (39, 40, 41))
        self.assertEqual(kernel_resources.compare(fewer, same), ([], []))
        self.assertEqual(len(kernel_resources.compare(same, more)[0]), 1)

    def test_a_change_is_one_line_and_none_is_silence(self):
        recorded = {"kernels/a.cu": {"scan": {"registers": 40, "spill_bytes": 0}}}
        self.assertEqual(kernel_resources.compare(recorded, recorded), ([], []))
        spilling = {"kernels/a.cu": {"scan": {"registers": 40, "spill_bytes": 16}}}
        self.assertEqual(
            kernel_resources.compare(recorded, spilling),
            (["kernels/a.cu: scan: spill_bytes 0 -> 16"], []),
        )
        gone, _ = kernel_resources.compare(recorded, {})
        self.assertEqual(len(gone), 1)

    def test_a_new_kernel_is_named_and_no_failure(self):
        new = {"kernels/a.cu": {"scan": {"registers": 40, "spill_bytes": 0}}}
        changed, unrecorded = kernel_resources.compare({}, new)
        self.assertEqual(changed, [])
        self.assertEqual(len(unrecorded), 1)

    def test_what_is_written_reads_back(self):
        files = {"kernels/a.cu": {"scan<float>": {"registers": 40}, "copy": {"registers": 16}}}
        self.assertEqual(json.loads(kernel_resources.to_json("13.0", files))["kernels"], files)

    def test_this_build_uses_what_was_recorded(self):
        build = pathlib.Path(os.environ.get("SPMMBENCH", "")).parent
        if not (build / "compile_commands.json").exists():
            self.skipTest("no build folder")
        if not (SOURCE / "results" / "resources.json").exists():
            self.skipTest("results/resources.json is not recorded")
        done = subprocess.run(
            [sys.executable, SCRIPT, build], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode == kernel_resources.SKIPPED:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
