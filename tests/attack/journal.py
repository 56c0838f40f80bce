"""Journals with damaged lines."""

import json
import pathlib
import zlib

from area import QUICK, SMALL, Attack, key, require


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
        require(shown.returncode == 1, f"show: exit code {shown.returncode}")
        if not damaged:
            return
        result = self.run(*self.arguments, csv, "--resume")
        require(result.returncode == 1 and b"--overwrite" in result.stderr, f"resumed: {result.stderr.decode()}")
        require(journal.read_bytes() == damaged, "the journal was changed")
