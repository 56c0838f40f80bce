"""Inputs that are no matrices, or strange ones."""

import itertools
import json
import os
import subprocess
import threading
import time

from area import COORDINATE, ENVIRONMENT, QUICK, SMALL, TIMEOUT_S, Attack, read, require


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

    def link_loop(self):
        path = self.fresh() / "a.mtx"
        path.symlink_to("a.mtx")
        for args in (["run", path, *QUICK, "-q"], ["inspect", path], ["show", path], ["convert", path, "x.csr"]):
            self.require_refusal(self.run(*args))
