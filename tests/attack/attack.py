#!/usr/bin/env python3
"""Attacks the program (kills, damaged files, full disks, bad input) and prints by area how many cases were tried and failed.

  tests/attack/attack.py [--build build/host] [--only kills,journal,...] [--seed 1] [--few]

Minutes on two cores, no GPU needed; `--few` tries a tenth. Each failure is printed with what led to it.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
SMALL = "gen:uniform?rows=50&cols=40&density=0.1"
TIMEOUT_S = 120  # no case takes a tenth of it
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
# Eight cases of about 0.1 s.
SLOW = ("-k", "cpu_csr", "--no-baselines", "--noise", "0", "--min-samples", "4", "--max-samples",
        "100000", "--max-seconds", "0.04")  # fmt: skip
QUICK = ("-k", "cpu_csr", "--device", "-1", "--no-baselines", "--min-samples", "4", "--max-samples", "5",
         "--max-seconds", "0.05")  # fmt: skip


class Failed(Exception):
    """What was promised and did not hold."""


def require(holds, what):
    if not holds:
        raise Failed(what)


def key(row):
    return (row["matrix"]["source"], row["n"], row["kernel"], row["precision"], row["reorder"])


def read(path):
    return json.loads(pathlib.Path(path).read_text())


class Attack:
    """One area. `cases` yields (name, function); a function raises Failed."""

    def __init__(self, options, folder):
        self.program = str(options.build / "spmmbench")
        self.tests = options.build / "tests"
        self.rng = random.Random(options.seed)
        self.share = 0.1 if options.few else 1
        self.folder = folder

    def count(self, whole):
        return max(1, round(whole * self.share))

    def fresh(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run(self, *args, limit="", **kwargs):
        """`limit`: a shell's ulimit."""
        options = {"capture_output": True, "timeout": TIMEOUT_S, "env": ENVIRONMENT, **kwargs}
        command = ["sh", "-c", f'{limit}; exec "$0" "$@"'] if limit else []
        try:
            result = subprocess.run([*command, self.program, *map(str, args)], check=False, **options)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {TIMEOUT_S} s") from None
        require(result.returncode >= 0, f"ended by signal {-result.returncode}")
        return result

    def require_refusal(self, result, code=1):
        text = (result.stderr or b"").decode(errors="replace")
        require(result.returncode == code, f"exit code {result.returncode}, expected {code}: {text}")
        require(text.count("\n") == 1, f"expected one line on stderr: {text!r}")
        require(all(c == "\n" or c.isprintable() for c in text), f"control characters on stderr: {text!r}")


class Kills(Attack):
    """SIGKILL at random times, then --resume, until the run ends: the cases of an undisturbed run, and no row that was
    recorded is measured again."""

    WAYS = (("--device", "-1"), ("--device", "-1", "--isolate"), ("--devices", "-1"), ("--device", "-1", "--csv"))

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
        args = [a for a in way if a != "--csv"]
        arguments = [self.program, "run", *self.arguments, "--json", str(out), *args]
        if "--csv" in way:
            arguments += ["--csv", str(folder / "out.csv")]
        recorded, kills = {}, 0
        while True:
            process = subprocess.Popen([*arguments, "--resume"], env=ENVIRONMENT, stderr=subprocess.PIPE,
                                       stdin=subprocess.DEVNULL)  # fmt: skip
            try:
                _, err = process.communicate(timeout=self.rng.uniform(0.02, 0.8) * self.whole_s)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                self.kills.append(kills)
                require(kills < 200, "no end after 200 kills")
                for row in self.rows_of(out):
                    require(recorded.setdefault(key(row), row["hot"]) == row["hot"], f"{key(row)} was measured again")
        require(process.returncode == 0, f"exit code {process.returncode}: {err.decode()}")
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


class JournalDamage(Attack):
    """A journal with one fault, or several: what `show` reads of it, and what a run that goes on with it makes."""

    def cases(self):
        folder = self.fresh()
        self.csv = folder / "out.csv"
        self.arguments = ["run", SMALL, f"{SMALL}&seed=2", "-n", "1:12:1", *QUICK, "-q", "--csv"]
        self.run(*self.arguments, self.csv)
        self.bytes = pathlib.Path(f"{self.csv}.journal").read_bytes()
        self.rows = {key(row): row for row in self.rows_in(self.bytes)}
        ways = (self.flip, self.overwrite, self.truncate, self.swap, self.delete, self.repeat, self.join)
        for i in range(self.count(500)):
            way = ways[i % len(ways)]
            yield f"{way.__name__} {i}", lambda way=way, i=i: self.damage(way, resume=i % 10 == 0)

    def rows_in(self, text):
        lines = [json.loads(line) for line in text.split(b"\n") if self.is_whole(line)]
        return [row for row in lines if "kernel" in row]

    def is_whole(self, line):
        body, _, rest = line.rpartition(b',"crc32":"')
        return bool(body) and rest == b'%08x"}' % zlib.crc32(body)

    def flip(self, text):
        at = self.rng.randrange(len(text))
        return text[:at] + bytes([text[at] ^ 1 << self.rng.randrange(8)]) + text[at + 1 :]

    def overwrite(self, text):
        at, length = self.rng.randrange(len(text)), self.rng.randrange(1, 4096)
        return text[:at] + bytes(self.rng.randrange(256) for _ in range(min(length, len(text) - at))) + text[at + length :]

    def truncate(self, text):
        return text[: self.rng.randrange(len(text))]

    def lines(self, text):
        return text.split(b"\n")[:-1]

    def swap(self, text):
        lines = self.lines(text)
        a, b = self.rng.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
        return b"\n".join(lines) + b"\n"

    def delete(self, text):
        lines = self.lines(text)
        del lines[self.rng.randrange(len(lines))]
        return b"\n".join(lines) + b"\n"

    def repeat(self, text):
        lines = self.lines(text)
        lines.insert(self.rng.randrange(len(lines)), self.rng.choice(lines))
        return b"\n".join(lines) + b"\n"

    def join(self, text):
        at = self.rng.choice([i for i, c in enumerate(text) if c == 10])
        return text[:at] + text[at + 1 :]

    def damage(self, way, resume):
        folder = self.fresh()
        csv, journal = folder / "out.csv", folder / "out.csv.journal"
        damaged = way(self.bytes)
        journal.write_bytes(damaged)
        whole_lines = [line for line in damaged.split(b"\n") if self.is_whole(line)]
        has_context = any("git_revision" in json.loads(line) for line in whole_lines)
        left = {key(row): row for row in self.rows_in(damaged)}
        shown = self.run("show", journal, "--format", "json")
        if not has_context:
            self.require_refusal_of_lost_context(shown, csv, journal, damaged)
            return
        require(shown.returncode == 0, f"show: {shown.stderr.decode()}")
        rows = {key(row): row["hot"] for row in json.loads(shown.stdout)["rows"]}
        require(rows == {k: row["hot"] for k, row in left.items()}, "show has other rows than are undamaged")
        broken = [i for i, line in enumerate(damaged.split(b"\n")[:-1], 1) if not self.is_whole(line)]
        named = [line for line in shown.stderr.decode().splitlines() if ": damaged" in line]
        require([f"{journal}:{i}:" in line for i, line in zip(broken, named)] == [True] * len(broken),
                f"lines {broken} are damaged, named are {named}")  # fmt: skip
        if resume:
            result = self.run(*self.arguments, csv, "--resume")
            require(result.returncode == 0, f"exit code {result.returncode}: {result.stderr.decode()}")
            after = {key(row): row for row in self.rows_in(journal.read_bytes())}
            require(after.keys() == self.rows.keys(), "other cases than the undamaged run")
            for case, row in left.items():
                require(after[case]["hot"] == row["hot"], f"{case} was whole and was measured again")
            require(len(csv.read_text().splitlines()) == 1 + len(self.rows), "the CSV has other rows")

    def require_refusal_of_lost_context(self, shown, csv, journal, damaged):
        self.require_refusal_or_notes(shown)
        if not damaged:
            return
        result = self.run(*self.arguments, csv, "--resume")
        require(result.returncode == 1 and b"--overwrite" in result.stderr, f"resumed: {result.stderr.decode()}")
        require(journal.read_bytes() == damaged, "the journal was changed")

    def require_refusal_or_notes(self, result):
        require(result.returncode == 1, f"exit code {result.returncode}")


class OutputFaults(Attack):
    """Outputs that cannot be written, or lead elsewhere: the exit code and one line say so, nothing else is harmed, and
    no row that was measured is lost."""

    def cases(self):
        self.recorded = self.fresh() / "recorded.json"
        self.run("run", SMALL, "-n", "8,16", *QUICK, "-q", "--json", self.recorded)
        commands = {
            "version": ["--version"], "help": ["--help"], "run help": ["run", "--help"], "list": ["list"],
            "list json": ["list", "--json"], "schema": ["list", "schema"], "inspect": ["inspect", SMALL],
            "inspect json": ["inspect", SMALL, "--json"], "show": ["show", self.recorded],
            "show csv": ["show", self.recorded, "--format", "csv"],
            "show json": ["show", self.recorded, "--format", "json"],
            "compare": ["compare", self.recorded, self.recorded],
            "compare json": ["compare", self.recorded, self.recorded, "--json", "-"],
            "compare junit": ["compare", self.recorded, self.recorded, "--junit", "-"],
            "dry run": ["run", SMALL, "-k", "cpu_csr", "--dry-run"], "run": ["run", SMALL, *QUICK],
            "run json": ["run", SMALL, *QUICK, "--json", "-"], "run csv": ["run", SMALL, *QUICK, "--csv", "-"],
            "jsonl": ["run", SMALL, *QUICK, "--jsonl"],
            "isolated": ["run", SMALL, *QUICK, "--isolate"],
        }  # fmt: skip
        for redirection in (">/dev/full", ">&-", "<&- >&-", ">&- 2>/dev/full"):
            for name, args in commands.items():
                yield f"{name} {redirection}", lambda a=args, r=redirection: self.redirected(a, r, 1)
        for redirection in ("2>/dev/full", "2>&-", "<&- 2>&-"):
            for name, args in commands.items():
                if "compare" not in name:  # whose verdict is an exit code
                    yield f"{name} {redirection}", lambda a=args, r=redirection: self.redirected(a, r, 0)
        for redirection in (">/dev/full", ">&-", "<&- >&- 2>&-", "2>/dev/full"):
            for args in ((), ("--isolate",), ("--jsonl",)):
                yield f"rows {redirection} {args}", lambda a=args, r=redirection: self.rows_kept(a, r)
        outputs = [
            ["run", SMALL, *QUICK, "-q", "--json", "OUT"], ["run", SMALL, *QUICK, "-q", "--csv", "OUT"],
            ["merge", "OUT", self.recorded], ["compare", self.recorded, self.recorded, "--json", "OUT"],
            ["compare", self.recorded, self.recorded, "--junit", "OUT"], ["convert", SMALL, "OUT.mtx"],
            ["convert", SMALL, "OUT.csr"], ["convert", SMALL, "OUT.mtx.gz"], ["convert", SMALL, "OUT.npy"],
            ["generate", SMALL, "OUT.bin"],
        ]  # fmt: skip
        places = (self.folder_in_the_way, self.file_as_folder, self.link_loop, self.full_device, self.pipe_unread,
                  self.long_name, self.pseudo_file_system, self.link_at_part, self.folder_at_part,
                  self.small_file_limit)  # fmt: skip
        for place, args in itertools.product(places, outputs):
            yield f"{place.__name__} {' '.join(map(str, args[:2]))}", lambda p=place, a=args: self.unwritable(p, a)
        if self.tmpfs_works():
            for size, args in itertools.product((4, 8, 16), outputs):
                yield f"full tmpfs {size} {args[0]}", lambda s=size, a=args: self.full_tmpfs(s, a)
            for args in outputs:
                yield f"read-only {args[0]}", lambda a=args: self.read_only(a)

    def redirected(self, args, redirection, code):
        result = subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', self.program, *map(str, args)],
                                check=False, capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT)  # fmt: skip
        require(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr.decode()}")

    def rows_kept(self, args, redirection):
        out = self.fresh() / "out.json"
        command = ["run", SMALL, "-n", "8,16", *QUICK, *args, "--json", out]
        self.redirected(command, redirection, 0 if redirection == "2>/dev/full" else 1)
        document = read(out)
        require(document["complete"] and len(document["rows"]) == 2, "rows are missing")

    def unwritable(self, place, args):
        folder = self.fresh()
        victim = folder / "victim"
        victim.write_text("precious")
        suffix = next((a[3:] for a in args if isinstance(a, str) and a.startswith("OUT")), "")
        out, code, limit = place(folder, suffix)
        args = [str(out) if isinstance(a, str) and a.startswith("OUT") else a for a in args]
        before = sorted(folder.rglob("*"))
        self.require_refusal(self.run(*args, limit=limit), code)
        require(victim.read_text() == "precious", "another file was changed")
        left = [path for path in sorted(folder.rglob("*")) if path not in before and path.suffix != ".journal"]
        require(not left, f"left behind: {left}")

    def folder_in_the_way(self, folder, suffix):
        (folder / f"out{suffix}").mkdir()
        return folder / f"out{suffix}", 1, ""

    def file_as_folder(self, folder, suffix):
        return folder / "victim" / f"out{suffix}", 1, ""

    def link_loop(self, folder, suffix):
        (folder / f"out{suffix}").symlink_to(f"out{suffix}")
        return folder / f"out{suffix}", 1, ""

    def full_device(self, folder, suffix):
        (folder / f"out{suffix}").symlink_to("/dev/full")
        return folder / f"out{suffix}", 1, ""

    def pipe_unread(self, folder, suffix):
        os.mkfifo(folder / f"out{suffix}")
        return folder / f"out{suffix}", 1, ""

    def long_name(self, folder, suffix):
        return folder / ("x" * 300 + suffix), 1, ""

    def pseudo_file_system(self, _, suffix):
        return pathlib.Path(f"/proc/spmmbench{suffix}"), 1, ""

    def link_at_part(self, folder, suffix):
        (folder / f"out{suffix}.part").symlink_to(folder / "victim")
        return folder / f"out{suffix}", 1, ""

    def folder_at_part(self, folder, suffix):
        (folder / f"out{suffix}.part").mkdir()
        return folder / f"out{suffix}", 1, ""

    def small_file_limit(self, folder, suffix):
        return folder / f"out{suffix}", 1, "ulimit -f 0"

    def mounted(self, size_kib):
        folder = self.fresh()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode != 0:
            return None
        return folder

    def tmpfs_works(self):
        folder = self.mounted(64)
        if folder is None:
            print("attack: no right to mount a tmpfs: full and read-only file systems are left out", file=sys.stderr)
            return False
        subprocess.run(["umount", str(folder)], check=True)
        return True

    def full_tmpfs(self, size_kib, args):
        folder = self.mounted(size_kib)
        try:
            filler = folder / "filler"
            with filler.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
            with filler.open("rb+") as file:
                file.truncate(max(0, filler.stat().st_size - 4096 * self.rng.randrange(0, 2)))
            args = [a.replace("OUT", str(folder / "out")) if isinstance(a, str) else a for a in args]
            result = self.run(*args)
            if result.returncode == 1:
                self.require_refusal(result)
                outputs = [p for p in folder.iterdir() if p.name not in ("filler",) and p.suffix != ".journal"]
                require(not outputs, f"left behind: {outputs}")
            elif "run" in args[0] or "merge" in args[0]:
                require(not folder.joinpath("out").exists() or self.parses(folder / "out"), "half a file")
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=False)

    def parses(self, path):
        text = path.read_text()
        return text.endswith("\n") and (text.startswith("matrix") or bool(json.loads(text)))

    def read_only(self, args):
        folder = self.mounted(1024)
        try:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            args = [a.replace("OUT", str(folder / "out")) if isinstance(a, str) else a for a in args]
            self.require_refusal(self.run(*args))
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=False)


class BadArguments(Attack):
    """Arguments that mean nothing: one line and exit code 1, at once."""

    ARGUMENTS = (
        "-n 0", "-n -1", "-n 1e3", "-n 1:", "-n 5:4", "-n 1:9223372036854775807:x2",
        "-n 1:9223372036854775807:1", "-n 9223372036854775808", "-n ,", "--noise nan", "--noise -1", "--noise inf",
        "--noise x", "--min-samples 0", "--min-samples 9 --max-samples 3", "--max-samples -1", "--max-seconds nan",
        "--max-seconds 0", "--shard 0/2", "--shard 3/2", "--shard 1/4294967296", "--shard 1/18446744073709551615",
        "--shard 2/18446744073709551615", "--shard 1", "--shard a/b", "--precision fp8", "--precision ,",
        "--c-type fp64", "--b-layout up", "--reorder sideways", "--reorder none,", "-k nothing", "-k cpu_csr?x=1",
        "-x *", "--device 7", "--devices 0,0", "--devices x", "--timeout 5", "--timeout nan --isolate",
        "--tag x", "--seed -1", "--seed x", "--dims 3", "--dims 0 4", "--bin-type fp3", "--prune 2:4",
        "--prune nonsense", "--b no_such.npy", "--config /no/such", "--config /dev/null", "--json", "--resume",
        "--retry-failed --resume", "--resume --overwrite", "--json - --csv -", "--json - --resume --jsonl",
        "--columns nothing", "--sort nothing", "--color red", "--nonsense",
    )  # fmt: skip

    def cases(self):
        for text in self.ARGUMENTS:
            yield f"run {text}", lambda t=text: self.refused("run", SMALL, *quick_beside(t), *t.split(), "-q")
        for args in (["show"], ["show", "no_such"], ["show", "/dev/null"], ["show", "/dev/zero"], ["compare"],
                     ["compare", "a"], ["merge"], ["merge", "x"], ["list", "nothing"], ["inspect"], ["inspect", "no_such"],
                     ["inspect", SMALL, "--threshold", "9:1"], ["inspect", SMALL, "--formats", "nothing"],
                     ["convert", SMALL], ["convert", SMALL, "x.txt"], ["generate", "nothing", "x.mtx"], ["run"],
                     ["run", "@no_such"], ["run", "@/dev/zero"], ["nothing"], [], ["run", "gen:"], ["run", "gen:uniform?"],
                     ["run", "gen:uniform?rows=-1"], ["run", "gen:uniform?rows=1e99"], ["run", "gen:uniform?rows=x"],
                     ["run", "x" * 5000], ["run", "/" + "x/" * 3000], ["run", ""]):  # fmt: skip
            quiet = ["-q"] if args[:1] == ["run"] else []
            yield f"{' '.join(args)[:40]}", lambda a=[*args, *quiet]: self.refused(*a)
        yield "TMPDIR", lambda: self.require_refusal(
            self.run("run", SMALL, *QUICK, "-q", "--json", "-", env={**ENVIRONMENT, "TMPDIR": "/no/such"}))

    def refused(self, *args):
        start = time.monotonic()
        self.require_refusal(self.run(*args, cwd=self.folder))
        require(time.monotonic() - start < 20, "took long")


def quick_beside(text):
    """QUICK without the options that the text gives itself."""
    given = set(text.split())
    pairs = (("-k", "cpu_csr"), ("--device", "-1"), ("--no-baselines",), ("--min-samples", "4"), ("--max-samples", "5"))
    return [word for pair in pairs if pair[0] not in given for word in pair]


class BadInputs(Attack):
    """Inputs that never come, are cut while they are read, ask for more than there is, or are called strangely."""

    def cases(self):
        for name in ("p.mtx", "p.mtx.gz", "p.csr", "p.npy", "p.npz", "p.bin", "p.smtx", "p.safetensors"):
            yield f"pipe {name}", lambda n=name: self.pipe(n)
        for args in (["inspect", "IN"], ["convert", "IN", "x.csr"], ["run", "IN", *QUICK, "-q"]):
            yield f"device {args[0]}", lambda a=args: self.device(a)
        for name, head in (("huge rows", "2147483647 2147483647 1"), ("huge columns", "1 2147483647 1"),
                           ("huge count", "3 3 999999999999")):  # fmt: skip
            yield name, lambda h=head: self.huge(h)
        for i in range(self.count(40)):
            yield f"cut while read {i}", self.cut_while_read
        names = ["-dash", "space d", "new\nline", "\x1b[31mred", "=1+1", "+x", "@list", "$money$", 'quo"te', "com,ma",
                 "back\\slash", "tab\t", "ümlaut", b"\xff\xfebytes", "per%cent", "a|b", "q?x=1&y=2", "c:olon", "{0}",
                 "\u202eback"]  # fmt: skip
        for name, way in itertools.product(names, ((), ("--isolate",))):
            yield f"name {name!r} {way}", lambda n=name, w=way: self.named(n, w)
        yield "a bad one among good ones", self.among_good_ones
        for name, change in (("version 9", {6: 9}), ("version 0", {6: 0}), ("order", None)):
            yield f"npy {name}", lambda c=change: self.npy(c)
        for schema in ([], {}, None, "1", 99, -1):
            yield f"schema {schema!r}", lambda s=schema: self.schema(s)
        yield "unreadable folder", self.unreadable_folder
        yield "link loop", self.link_loop

    def matrix(self, folder, name="a.mtx", text=None):
        path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else os.fsencode(name))
        with open(path, "w") as file:
            file.write(text or COORDINATE + "3 3 3\n1 1 1\n2 2 1\n3 1 -2\n")
        return os.fsdecode(path)

    def pipe(self, name):
        path = self.fresh() / name
        os.mkfifo(path)
        for args in (["run", path, *QUICK, "-q", "--dims", 2, 2], ["inspect", path]):
            self.require_refusal(self.run(*args))

    def device(self, args):
        folder = self.fresh()
        (folder / "zero.mtx").symlink_to("/dev/zero")
        result = self.run(*[str(folder / "zero.mtx") if a == "IN" else a for a in args], cwd=folder)
        self.require_refusal(result)

    def huge(self, head):
        path = self.matrix(self.fresh(), text=f"{COORDINATE}{head}\n1 1 1\n")
        for args in (["inspect", path], ["run", path, "-n", "8", *QUICK, "-q"]):
            result = self.run(*args, limit="ulimit -v 8000000")
            require(result.returncode in (0, 1, 4), f"exit code {result.returncode}: {result.stderr.decode()}")

    def cut_while_read(self):
        folder = self.fresh()
        path = folder / "a.mtx"
        rows = 120_000
        text = f"{COORDINATE}{rows} {rows} {rows}\n" + "".join(f"{i} {i} 1.5\n" for i in range(1, rows + 1))
        path.write_text(text)
        delay = self.rng.uniform(0, 0.03)

        def cut():
            time.sleep(delay)
            os.truncate(path, self.rng.randrange(len(text)))

        thread = threading.Thread(target=cut)
        thread.start()
        result = self.run("convert", path, folder / "x.csr")
        thread.join()
        if result.returncode == 0:
            require((folder / "x.csr").exists(), "no output")
        else:
            self.require_refusal(result)
            require(not (folder / "x.csr").exists(), "an output of a broken input")

    def named(self, name, way):
        folder = self.fresh()
        suffix = b".mtx" if isinstance(name, bytes) else ".mtx"
        path = self.matrix(folder, name + suffix)
        relative = os.path.basename(path)
        given = f"./{relative}" if relative[0] in "-@" else relative
        out, csv = folder / "out.json", folder / "out.csv"
        result = self.run("run", given, *QUICK, *way, "--json", out, "--csv", csv, cwd=folder)
        require(result.returncode == 0, f"exit code {result.returncode}: {result.stderr!r}")
        shown = (result.stdout + result.stderr).decode()
        require(all(c == "\n" or c.isprintable() for c in shown.replace("\u202e", "")), f"control characters: {shown!r}")
        row = read(out)["rows"][0]
        require(row["status"] == "ok", row["reason"])
        line = csv.read_text().splitlines()[1]
        require(line[0] not in "=+-@\t", f"a formula: {line[:40]}")
        command = row["command"].replace("spmmbench", self.program, 1)
        again = subprocess.run(["bash", "-c", f"{command} -q --min-samples 4 --max-samples 5"], cwd=folder, check=False,
                               capture_output=True, env=ENVIRONMENT, timeout=TIMEOUT_S)  # fmt: skip
        require(again.returncode == 0, f"its command: {again.stderr!r}")

    def among_good_ones(self):
        folder = self.fresh()
        good, bad = self.matrix(folder, "good.mtx"), self.matrix(folder, "bad.mtx", "nonsense\n")
        result = self.run("inspect", good, bad, SMALL, "--json")
        self.require_refusal(result)
        require(len(json.loads(result.stdout)) == 2, "the good ones are missing")
        out = folder / "out.json"
        self.require_refusal(self.run("run", good, bad, SMALL, *QUICK, "-q", "--json", out))
        require(len(read(out)["rows"]) == 2, "the good ones are missing")

    def npy(self, change):
        dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
        if change is None:
            dictionary = dictionary.replace("False", "1")
        header = bytearray(b"\x93NUMPY\x01\x00" + bytes([118, 0]) + dictionary.ljust(117).encode() + b"\n")
        for at, value in (change or {}).items():
            header[at] = value
        path = self.fresh() / "a.npy"
        path.write_bytes(bytes(header) + bytes(16))
        self.require_refusal(self.run("run", path, *QUICK, "-q"))

    def schema(self, version):
        path = self.fresh() / "a.json"
        path.write_text(json.dumps({"schema_version": version, "context": {}, "complete": True, "rows": []}))
        for args in (["show", path], ["compare", path, path], ["merge", path.with_name("out"), path]):
            self.require_refusal(self.run(*args))

    def unreadable_folder(self):
        if os.geteuid() == 0:
            return  # who may read everything
        folder = self.fresh() / "closed"
        folder.mkdir(0)
        self.require_refusal(self.run("run", folder, *QUICK, "-q"))

    def link_loop(self):
        path = self.fresh() / "a.mtx"
        path.symlink_to("a.mtx")
        for args in (["run", path, *QUICK, "-q"], ["inspect", path], ["show", path], ["convert", path, "x.csr"]):
            self.require_refusal(self.run(*args))


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


class Planted(Attack):
    """Kernels that are nearly right (tests/faults): each must be called wrong, and the right one right."""

    def cases(self):
        faults = self.tests / "spmmbench_faults"
        tests = ROOT / "tests" / "cli" / "test_planted.py"
        environment = {**os.environ, "SPMMBENCH": self.program, "SPMMBENCH_FAULTS": str(faults)}
        listing = subprocess.run([sys.executable, "-c", LIST_TESTS, tests.parent, tests.stem], check=True, text=True,
                                 capture_output=True, env=environment).stdout.split()  # fmt: skip
        for name in listing:
            yield name, lambda n=name: self.one(tests, n, environment)

    def one(self, tests, name, environment):
        result = subprocess.run([sys.executable, tests, name], check=False, capture_output=True, text=True, env=environment)
        require(result.returncode == 0, result.stderr[-500:])


LIST_TESTS = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
for suite in unittest.defaultTestLoader.loadTestsFromName(sys.argv[2]):
    for test in suite:
        print(test.id().split(".", 1)[1])
"""


class Gate(Attack):
    """Comparisons of unchanged runs, simulated: any SLOWER in at most 1 % of them."""

    ALLOWED = 0.01

    def cases(self):
        comparisons = self.count(200)
        program = self.tests / "spmmbench_gate_simulation"
        result = subprocess.run([program, str(comparisons), "1928"], check=True, capture_output=True, text=True)
        for line in result.stdout.splitlines()[2:]:
            name, unchanged, _ = line.rsplit(maxsplit=2)
            yield name.strip(), lambda n=int(unchanged), c=comparisons: self.few(n, c)
        self.comparisons = comparisons

    def few(self, false_alarms, comparisons):
        # More than this is seen in one simulation of 1,000 where the rate is what is allowed.
        most = next(k for k in range(comparisons) if binomial_tail(comparisons, self.ALLOWED, k) < 0.001)
        require(false_alarms <= most, f"{false_alarms} of {comparisons} comparisons")


def binomial_tail(trials, rate, above):
    """Probability of more than `above` successes."""
    term, total = (1 - rate) ** trials, 0.0
    for k in range(above + 1):
        total += term
        term *= (trials - k) / (k + 1) * rate / (1 - rate)
    return 1 - total


AREAS = {
    "kills": Kills, "journal": JournalDamage, "outputs": OutputFaults, "writers": Writers, "arguments": BadArguments,
    "inputs": BadInputs, "planted": Planted, "gate": Gate,
}  # fmt: skip


def attack(area, options, folder):
    """(cases tried, in words, failures)"""
    one = area(options, folder)
    failures = []

    def attempt(name, case):
        try:
            case()
        except Failed as failure:
            failures.append((name, str(failure)))
            print(f"FAILED {name}: {failure}", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tried = len(list(pool.map(lambda case: attempt(*case), one.cases())))
    return one.tried(tried) if hasattr(one, "tried") else str(tried), failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build" / "host")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--few", action="store_true", help="a tenth of the cases drawn at random")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - AREAS.keys()
    if unknown:
        parser.error(f"--only: expected some of {', '.join(AREAS)}, got {', '.join(unknown)}")
    results = collections.OrderedDict()
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            start = time.monotonic()
            tried, failures = attack(AREAS[name], options, pathlib.Path(folder))
            results[name] = (tried, failures, time.monotonic() - start)
    print("| area | what is promised | cases tried | failed | s |\n|---|---|---|---|---|")
    for name, (tried, failures, seconds) in results.items():
        promise = " ".join(AREAS[name].__doc__.split())
        print(f"| {name} | {promise} | {tried} | {len(failures)} | {seconds:.0f} |")
    return 1 if any(failures for _, failures, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
