#!/usr/bin/env python3
"""`spmmbench run` that is interrupted or killed, and --resume."""

import signal
import subprocess
import time

from cli_case import ENVIRONMENT, PROGRAM, SMALL, CliCase, case_of, main, read


class InterruptionTest(CliCase):
    """Eight cases of about 0.15 s each, disturbed."""

    cases = (SMALL, "-n", "1:8:1")
    slowly = ("-k", "cpu_csr", "--no-baselines", "--device", "-1", "--noise", "0", "--max-samples", "1000000",
              "--max-seconds", "0.07")

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.json"
        self.journal = self.folder / "out.json.journal"

    def start(self):
        return subprocess.Popen(
            [PROGRAM, "run", *self.cases, *self.slowly, "--json", self.out],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip

    def wait_for_rows(self, count, process):
        while not self.journal.exists() or self.journal.read_text().count("\n") < 2 + count:
            self.assertIsNone(process.poll(), "ended before it was disturbed")
            time.sleep(0.01)

    def resume(self):
        command = [PROGRAM, "run", *self.cases, *self.slowly, "--json", self.out, "--resume"]
        result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assert_same_rows_as_undisturbed(self):
        whole = self.folder / "whole.json"
        self.assertEqual(self.run_cpu(*self.cases, "--json", whole).returncode, 0)
        document = read(self.out)
        self.assertTrue(document["complete"])
        self.assertFalse(self.journal.exists())
        self.assertEqual(sorted(map(case_of, document["rows"])), sorted(map(case_of, read(whole)["rows"])))
        self.assertEqual({row["status"] for row in document["rows"]}, {"ok"})

    def test_ctrl_c_leaves_a_valid_file_and_resume_completes_it(self):
        process = self.start()
        self.wait_for_rows(2, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        document = read(self.out)
        self.assertFalse(document["complete"])
        kept = {case_of(row): row["hot"] for row in document["rows"]}
        self.assertGreaterEqual(len(kept), 2)
        self.assertLess(len(kept), 8)
        result = self.resume()
        self.assertIn("[8/8]", result.stderr)
        self.assertLess(result.stdout.count("* cpu_csr "), 8, "finished cases are not measured again")
        self.assert_same_rows_as_undisturbed()
        for row in read(self.out)["rows"]:
            self.assertEqual(kept.get(case_of(row), row["hot"]), row["hot"])

    def test_kill_at_any_moment_then_resume(self):
        for moment in (0, 0.05, 0.5):
            with self.subTest(seconds=moment):
                for path in (self.out, self.journal):
                    path.unlink(missing_ok=True)
                process = self.start()
                time.sleep(moment)
                process.kill()
                process.communicate(timeout=60)
                self.resume()
                self.assert_same_rows_as_undisturbed()

    def test_resume_with_another_seed_is_not_comparable(self):
        process = self.start()
        self.wait_for_rows(1, process)
        process.kill()
        process.communicate(timeout=60)
        result = self.run_cpu(*self.cases, "--json", self.out, "--resume", "--seed", "2", "--quiet")
        self.assert_one_line(result, 5, "was measured with seed '1', this run has '2'")


if __name__ == "__main__":
    main()
