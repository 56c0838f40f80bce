#!/usr/bin/env python3
"""What a person sees: tables and progress on a terminal (a pseudo-terminal here), in a file and in a pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from cli_case import ENVIRONMENT, PROGRAM, QUICK, RECORDED, SMALL, CliCase, main, read, recorded_part, write

NOTRE_DAME = recorded_part("web-NotreDame")
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_terminal(*args, columns=80, stderr_only=False, **environment):
    """Output of the program on a terminal of that many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL if stderr_only else follower, "stderr": follower}
    env = {key: value for key, value in ENVIRONMENT.items() if key != "NO_COLOR"}
    env.update({"TERM": "xterm", **environment})
    process = subprocess.Popen([PROGRAM, *map(str, args)], stdin=follower, env=env, **streams)
    os.close(follower)
    output = b""
    while True:
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # all of the other side is closed
            break
        if not block:
            break
        output += block
    os.close(leader)
    return output.decode(), process.wait(timeout=60)


def lines_of(output):
    return [ESCAPE.sub("", line) for line in output.replace("\r\n", "\n").split("\n")]


class TableTest(CliCase):
    def wide_run(self):
        """A run with a long name, a long reason and large numbers."""
        document = read(NOTRE_DAME)
        rows = [row for row in document["rows"] if row["matrix"]["name"] == "web-NotreDame" and
                row["status"] == "ok"][:16]
        name = "a_matrix_with_a_name_far_longer_than_a_terminal_is_wide_" * 2
        rows.append({**rows[0], "kernel": "a_kernel?with=many&options=that&make=its&name=very&long=1"})
        rows.append({**rows[0], "kernel": "failing", "status": "failed", "hot": None, "cold": None,
                     "reason": "a reason of many words " * 10})
        rows.append({**rows[0], "kernel": "skipping", "status": "skipped", "hot": None, "cold": None,
                     "reason": "words " * 30, "verify": None})
        rows[1]["gflops"], rows[1]["break_even_calls"] = 1.5e11, 1e15
        document["rows"] = [{**row, "matrix": {**row["matrix"], "name": name}} for row in rows]
        path = self.folder / "wide.json"
        write(path, document)
        return path

    def test_nothing_is_wider_than_the_terminal(self):
        for path in (self.wide_run(), RECORDED):
            for columns in (60, 80, 100, 132, 200):
                output, code = on_terminal("show", path, columns=columns)
                self.assertEqual(code, 0)
                widest = max(lines_of(output), key=len)
                self.assertLessEqual(len(widest), columns, widest)

    def test_more_columns_where_there_is_room(self):
        def header(columns):
            output, _ = on_terminal("show", NOTRE_DAME, "-m", "web-NotreDame", columns=columns)
            return next(line for line in lines_of(output) if line.startswith("  kernel"))

        self.assertIn("hot us", header(40))
        narrow, wide = header(80), header(160)
        for name in ("hot us", "x best", "x dflt", "bound", "pays at"):
            self.assertIn(name, narrow)
        self.assertNotIn("noise", narrow)
        for name in ("cold us", "GFLOP/s", "prep ms", "noise", "MB", "error"):
            self.assertIn(name, wide)

    def test_names_and_reasons_are_never_cut_in_a_pipe(self):
        text = self.spmmbench("show", self.wide_run()).stdout
        self.assertIn("a_kernel?with=many&options=that&make=its&name=very&long=1 ", text)
        self.assertIn("failed: " + ("a reason of many words " * 10), text)
        self.assertIn("skipped (" + "words " * 30 + ")", text)
        self.assertIn("a_matrix_with_a_name_far_longer_than_a_terminal_is_wide_" * 2, text)
        self.assertIn("noise", text)

    def test_reasons_are_whole_on_a_terminal_too(self):
        output, _ = on_terminal("show", self.wide_run())
        words = " ".join(" ".join(lines_of(output)).split())
        self.assertIn(("a reason of many words " * 10).strip(), words)

    def test_the_winner_is_in_colour_on_a_terminal_only(self):
        output, _ = on_terminal("show", NOTRE_DAME, "-m", "web-NotreDame")
        self.assertRegex(output, r"\x1b\[1;32m\* rsh ")
        self.assertNotIn("\x1b", self.spmmbench("show", NOTRE_DAME).stdout)
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            output, _ = on_terminal("show", NOTRE_DAME, "-m", "web-NotreDame", **environment)
            self.assertNotIn("\x1b", output)
        output, _ = on_terminal("show", NOTRE_DAME, "--color", "always", NO_COLOR="1")
        self.assertIn("\x1b[1;32m", output)
        output, _ = on_terminal("show", NOTRE_DAME, "--color", "never")
        self.assertNotIn("\x1b", output)
        self.assertIn("\x1b[1;32m", self.spmmbench("show", NOTRE_DAME, "--color", "always").stdout)
        self.assert_one_line(self.spmmbench("show", NOTRE_DAME, "--color", "blue"), 1, "auto, always or never")


class ProgressTest(CliCase):
    slowly = ("-k", "cpu_csr", "--no-baselines", "--device", "-1", "--noise", "0", "--max-samples",
              "1000000", "--max-seconds", "0.8")

    def test_one_line_that_moves_within_a_case(self):
        output, code = on_terminal("run", SMALL, "-n", "8,16", *self.slowly, stderr_only=True)
        self.assertEqual(code, 0)
        drawings = [part for part in re.split(r"\r\x1b\[K", output) if "[" in part]
        within = [part for part in drawings if part.startswith("[1/2]") and "n=8" in part]
        self.assertGreaterEqual(len(within), 3, drawings)
        self.assertGreater(len(set(within)), 1, "the time of the case moves")
        self.assertRegex(drawings[-1], r"^\[2/2\] \d+s, \d+s left  uniform.* n=16 cpu_csr \d+s$")
        self.assertTrue(any("loading " in part for part in drawings))
        self.assertNotIn("\n", "".join(drawings), "it stays one line")
        self.assertNotIn("[", re.split(r"\r\x1b\[K", output)[-1], "the line is wiped at the end")

    def test_it_is_narrower_than_the_terminal(self):
        output, _ = on_terminal("run", SMALL, *self.slowly, columns=40, stderr_only=True)
        for part in re.split(r"\r\x1b\[K", output):
            if part.startswith("["):
                self.assertLess(len(part), 40)

    def test_one_line_per_matrix_where_there_is_no_terminal(self):
        result = self.run_cpu(SMALL, SMALL + "&seed=2", "-n", "8,16")
        lines = [line for line in result.stderr.splitlines() if line.startswith("[")]
        self.assertEqual([line.split()[0] for line in lines], ["[2/4]", "[4/4]"])
        self.assertIn("seed=2", lines[1])
        self.assertNotIn("\x1b", result.stderr)

    def test_inspect_says_what_it_is_at(self):
        output, code = on_terminal("inspect", SMALL, "--formats", "csr,coo", columns=120, stderr_only=True)
        self.assertEqual(code, 0)
        drawings = [part for part in re.split(r"\r\x1b\[K", output) if part]
        name = "uniform?cols=40&density=0.1&rows=50"
        for count, what in enumerate((f"loading {SMALL}", f"{name} structure", f"{name} none", f"{name} none csr",
                                      f"{name} none coo"), 1):
            self.assertTrue(any(part.startswith(f"[{count}/5] ") and f" {what} " in part for part in drawings),
                            (what, drawings))
        self.assertNotIn("\n", output)
        self.assertTrue(output.endswith("\r\x1b[K"), "the line is wiped at the end")
        self.assertEqual(self.spmmbench("inspect", SMALL).stderr, "", "no terminal")

    def test_quiet_is_silent_on_a_terminal(self):
        output, code = on_terminal("run", SMALL, "-q", "-k", "cpu_csr", *QUICK)
        self.assertEqual((output, code), ("", 0))


if __name__ == "__main__":
    main()
