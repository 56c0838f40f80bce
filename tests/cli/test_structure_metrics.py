#!/usr/bin/env python3
"""The structure of every format on the bundled matrices is what results/structure.json recorded."""

import json
import subprocess
import sys

from cli_case import ENVIRONMENT, PROGRAM, SOURCE, CliCase, main

SCRIPT = SOURCE / "scripts" / "structure_metrics.py"
RECORDED = SOURCE / "results" / "structure.json"


class StructureMetricsTest(CliCase):
    def script(self, *args, threads="2"):
        command = [sys.executable, SCRIPT, "--spmmbench", PROGRAM, *args]
        environment = {**ENVIRONMENT, "OMP_NUM_THREADS": threads}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def test_one_thread_gives_the_recorded_metrics(self):
        made = self.folder / "made.json"
        self.script("--record", "--file", made, threads="1")
        made, record = json.loads(made.read_text()), json.loads(RECORDED.read_text())
        self.assertEqual({case: made.get(case) for case in record}, record)  # a new format adds cases

    def test_two_threads_give_them_too_and_a_change_is_named(self):
        planted = self.folder / "planted.json"
        record = json.loads(RECORDED.read_text())
        record["fem2d_plate, none, csr"]["index_bytes"] += 4
        record["fem2d_plate, rsh, wcsr"]["fill"] *= 1.001
        del record["fem2d_plate, rcm, coo"]
        record["fem2d_plate, rcm, gone"] = {}
        planted.write_text(json.dumps(record))
        result = self.script("--file", planted)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^fem2d_plate, none, csr: index_bytes was \d+, is \d+$")
        self.assertRegex(result.stdout, r"(?m)^fem2d_plate, rsh, wcsr: fill was ")
        self.assertIn("fem2d_plate, rcm, coo: not recorded", result.stdout)
        self.assertIn("fem2d_plate, rcm, gone: no longer there", result.stdout)
        self.assertIn("3 differences", result.stdout)

    def test_a_program_that_is_not_there_is_one_line(self):
        self.assert_one_line(self.script("--spmmbench", "nowhere"), 1, "nowhere: No such file")


if __name__ == "__main__":
    main()
