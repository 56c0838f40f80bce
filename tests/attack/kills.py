"""Runs that are killed, and several runs at once on one output."""

import json
import pathlib
import subprocess
import time

from area import ENVIRONMENT, SLOW, SMALL, TIMEOUT_S, Attack, key, read, require


class Kills(Attack):
    """SIGKILL at random times, five times a run, each time gone on with by --resume: the cases of an undisturbed run, and
    no row that was recorded is measured again."""

    WAYS = (("--device", "-1"), ("--device", "-1", "--isolate"), ("--devices", "-1"), ("--device", "-1", "--csv"))
    KILLS_PER_RUN = 5

    def cases(self):
        inputs = [f"{SMALL}&seed={i}" for i in (1, 2)]
        self.arguments = [*inputs, "-n", "8,16,24,32", *SLOW, "-q"]
        self.kills = []
        whole = self.fresh() / "whole.json"
        start = time.monotonic()
        self.run("run", *self.arguments, "--device", "-1", "--json", whole)
        self.whole_s = time.monotonic() - start
        self.expected = set(map(key, read(whole)["rows"]))
        for i in range(self.count(24)):
            yield f"kill {i}", lambda i=i: self.until_done(self.WAYS[i % len(self.WAYS)])

    def until_done(self, way):
        folder = self.fresh()
        out = folder / "out.json"
        arguments = [self.program, "run", *self.arguments, "--json", str(out), "--resume", *(a for a in way if a != "--csv")]
        if "--csv" in way:
            arguments += ["--csv", str(folder / "out.csv")]
        recorded = {}
        for _ in range(self.KILLS_PER_RUN):
            process = subprocess.Popen(arguments, env=ENVIRONMENT, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            try:
                process.wait(self.rng.uniform(0.02, 0.8) * self.whole_s)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.kills.append(way)
            for row in self.rows_of(out):
                require(recorded.setdefault(key(row), row["hot"]) == row["hot"], f"{key(row)} was measured again")
        result = subprocess.run(arguments, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        require(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        document = read(out)
        require(document["complete"], "not complete")
        require(set(map(key, document["rows"])) == self.expected, "other cases than an undisturbed run")
        require(len(document["rows"]) == len(self.expected), "a case twice")
        for row in document["rows"]:
            require(row["status"] == "ok" and recorded.get(key(row), row["hot"]) == row["hot"], "a row was lost")
        require(not list(folder.glob("*.journal*")), "the journal is still there")
        require(not list(folder.glob("*.part")), "a .part is still there")

    def rows_of(self, out):
        journal = pathlib.Path(f"{out}.journal")
        if not journal.exists():
            return []
        lines = journal.read_bytes().split(b"\n")[:-1]
        return [row for row in map(json.loads, lines) if "kernel" in row]

    def tried(self, cases):
        return f"{len(self.kills)} kills in {cases} runs"


class Writers(Attack):
    """Several runs at once on one output: one of them writes it, the others stop with one line."""

    def cases(self):
        for i in range(self.count(20)):
            yield f"writers {i}", self.together

    def together(self):
        out = self.fresh() / "out.json"
        command = [self.program, "run", SMALL, "-n", "8,16", *SLOW, "--device", "-1", "-q", "--json", str(out)]
        processes = [subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT) for _ in range(4)]
        ends = [(process.communicate(timeout=TIMEOUT_S)[1].decode(), process.returncode) for process in processes]
        require(any(code == 0 for _, code in ends), f"nobody wrote it: {ends}")
        for text, code in ends:
            require(code == 0 or (code == 1 and text.count("\n") == 1), f"exit code {code}: {text}")
        require(len(read(out)["rows"]) == 2 and read(out)["complete"], "not whole")
