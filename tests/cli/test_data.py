#!/usr/bin/env python3
"""The bundled matrices are what data/README.md says: its commands make them again."""

import gzip
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = os.environ.get("SPMMBENCH")


class DataTest(unittest.TestCase):
    def test_every_command_makes_its_file_again(self):
        commands = re.findall(
            r"`(spmmbench generate [^`]+)`", (SOURCE / "data/README.md").read_text()
        )
        bundled = sorted(path.name for path in (SOURCE / "data").glob("*.mtx*"))
        made = []
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                _, verb, spec, target = shlex.split(command)
                name = pathlib.Path(target).name
                again = pathlib.Path(folder) / name
                subprocess.run([PROGRAM, verb, spec, str(again)], check=True, capture_output=True)
                # The text, not the archive: another zlib may pack it differently.
                self.assertEqual(
                    gzip.decompress(again.read_bytes()),
                    gzip.decompress((SOURCE / "data" / name).read_bytes()),
                    name,
                )
                made.append(name)
        self.assertEqual(sorted(made), bundled)

    def test_the_archives_carry_no_time_stamp(self):
        for path in (SOURCE / "data").glob("*.gz"):
            self.assertEqual(path.read_bytes()[4:8], bytes(4), path.name)

    def test_all_together_are_small(self):
        self.assertLess(sum(path.stat().st_size for path in (SOURCE / "data").iterdir()), 2_000_000)


if __name__ == "__main__":
    if not PROGRAM:
        print("SPMMBENCH is not set")
        sys.exit(77)
    unittest.main()
