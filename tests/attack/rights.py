"""Files and folders of others."""

import os
import subprocess

from area import COORDINATE, QUICK, SMALL, Attack, require

NOBODY = 65534


class NoRights(Attack):
    """What the user may not read or write: one line and exit code 1, nothing is changed. Tried as a user without
    rights, since root has all of them."""

    def cases(self):
        if os.geteuid() == 0:
            self.prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        require(self.is_refused_everything(), "the user has the rights of root")
        self.recorded = self.fresh() / "recorded.json"
        self.recorded.parent.chmod(0o777)  # mkdtemp's 0700 is its owner's
        again = self.recorded.with_name("again.json")
        for out in (self.recorded, again):
            self.run("run", SMALL, "-n", "8,16", *QUICK, "-q", "--json", out)
        outputs = [
            ["run", SMALL, *QUICK, "-q", "--json", "OUT"], ["run", SMALL, *QUICK, "-q", "--csv", "OUT"],
            ["merge", "OUT", self.recorded], ["compare", self.recorded, again, "--json", "OUT"],
            ["compare", self.recorded, again, "--junit", "OUT"], ["convert", SMALL, "OUT.mtx"],
            ["convert", SMALL, "OUT.csr"], ["convert", SMALL, "OUT.npy"], ["generate", SMALL, "OUT.bin"],
        ]  # fmt: skip
        for args in outputs:
            for exists in (False, True):
                yield f"closed folder {args[0]}", lambda a=args, e=exists: self.closed_folder(a, e)
        inputs = [["run", "IN", *QUICK, "-q"], ["inspect", "IN"], ["convert", "IN", "OUT"], ["show", "IN"],
                  ["compare", "IN", self.recorded], ["merge", "OUT", "IN"], ["run", "@IN", *QUICK, "-q"],
                  ["run", SMALL, *QUICK, "-q", "--config", "IN"], ["run", SMALL, *QUICK, "-q", "--b", "IN"]]  # fmt: skip
        for args in inputs:
            for way in ("file", "folder", "folder of file"):
                yield f"unreadable {way} {args}", lambda a=args, w=way: self.unreadable(a, w)

    def is_refused_everything(self):
        folder = self.fresh()
        folder.chmod(0)
        return subprocess.run([*self.prefix, "ls", folder], check=False, capture_output=True).returncode != 0

    def closed_folder(self, args, exists):
        folder = self.fresh()
        suffix = next(a[3:] for a in args if str(a).startswith("OUT"))
        out = folder / f"out{suffix}"
        if exists:
            out.write_text("precious")
        folder.chmod(0o555)
        self.require_refusal(self.run(*[out if str(a).startswith("OUT") else a for a in args]))
        require(list(folder.iterdir()) == ([out] if exists else []), "something was left behind")
        require(not exists or out.read_text() == "precious", "the file was changed")

    def unreadable(self, args, way):
        folder = self.fresh()
        folder.chmod(0o777)
        closed = folder / "closed"
        closed.mkdir()
        matrix = closed / "a.mtx"
        matrix.write_text(COORDINATE + "3 3 2\n1 1 1\n2 2 1\n")
        if way == "file":
            matrix.chmod(0)
        else:
            closed.chmod(0)
        given = closed if way == "folder" else matrix
        out = folder / "out.csr"
        names = {"IN": given, "@IN": f"@{given}", "OUT": out}
        self.require_refusal(self.run(*[names.get(a, a) for a in args]))
        require(not out.exists(), "an output of an input that was not read")
