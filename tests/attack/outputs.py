"""Outputs that cannot be written."""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

from area import ENVIRONMENT, QUICK, SMALL, TIMEOUT_S, Attack, read, require


class OutputFaults(Attack):
    """Outputs that cannot be written, or lead elsewhere: the exit code and one line say so, nothing else is harmed, and
    no row that was measured is lost."""

    def cases(self):
        self.recorded = self.fresh() / "recorded.json"
        again = self.recorded.with_name("again.json")
        for out in (self.recorded, again):
            self.run("run", SMALL, "-n", "8,16", *QUICK, "-q", "--json", out)
        commands = {
            "version": ["--version"], "help": ["--help"], "run help": ["run", "--help"], "list": ["list"],
            "list json": ["list", "--json"], "schema": ["list", "schema"], "inspect": ["inspect", SMALL],
            "inspect json": ["inspect", SMALL, "--json"], "show": ["show", self.recorded],
            "show csv": ["show", self.recorded, "--format", "csv"],
            "show json": ["show", self.recorded, "--format", "json"],
            "compare": ["compare", self.recorded, again],
            "compare json": ["compare", self.recorded, again, "--json", "-"],
            "compare junit": ["compare", self.recorded, again, "--junit", "-"],
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
            ["merge", "OUT", self.recorded], ["compare", self.recorded, again, "--json", "OUT"],
            ["compare", self.recorded, again, "--junit", "OUT"], ["convert", SMALL, "OUT.mtx"],
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
        left = [path for path in sorted(folder.rglob("*")) if path not in before and not holds_rows(path)]
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
                left = [path for path in folder.iterdir() if path.name != "filler" and not holds_rows(path)]
                require(not left, f"left behind: {left}")
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


def holds_rows(path):
    """What a run keeps that could not write its outputs at the end."""
    return path.suffix == ".journal" and path.stat().st_size > 0
