"""Which matrices: names, globs, the manifest, the recorded runs and the index of the collection."""

import csv
import fnmatch
import re
import urllib.parse
from dataclasses import dataclass

from suitesparse.download import FetchError

COLLECTION = "https://sparse.tamu.edu"


@dataclass(frozen=True)
class Entry:
    name: str
    group: str
    url: str
    source: str = "suitesparse"
    rows: int = 0  # 0: unknown
    cols: int = 0
    nnz: int = 0

    def __post_init__(self):
        for part in (self.group, self.name):
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{,99}", part):
                raise FetchError(
                    f"{part[:40]!r}: expected a group or a matrix name, such as HB or cant, of at most 100 characters"
                )

    @property
    def key(self):
        return f"{self.group}/{self.name}"


def collection_entry(group, name, *sizes):
    path = urllib.parse.quote(f"/MM/{group}/{name}.tar.gz")
    return Entry(name, group, COLLECTION + path, "suitesparse", *sizes)


def read_manifest(path):
    """The named entries, and the minima (rows, cols, nnz) of the selection rule."""
    entries, rule = [], (0, 0, 0)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["name"]:
                continue
            sizes = int(row["rows"]), int(row["cols"]), int(row["nnz"])
            if row["name"] == "*":
                rule = sizes
            else:
                entries.append(Entry(row["name"], row["group"], row["url"], row["source"], *sizes))
    return entries, rule


@dataclass(frozen=True)
class Elsewhere:
    """A matrix of a recorded run that this script does not download."""

    name: str
    where: str
    line: str | None  # of a list for spmmbench; None: it has to be fetched by hand


def read_recorded(path, name, least_nnz):
    """What the recorded runs call the list `name`: Entry or Elsewhere each."""
    chosen, lists = [], set()
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            lists.update(row["lists"].split())
            if name not in row["lists"].split() or int(row["nnz"]) < least_nnz:
                continue
            sizes = int(row["rows"]), int(row["cols"]), int(row["nnz"])
            if row["collection"] == "suitesparse":
                chosen.append(collection_entry(*row["where"].split("/", 1), *sizes))
            elif row["collection"] in ("tu", "ogb"):
                chosen.append(Entry(row["name"], row["collection"], row["where"], row["collection"], *sizes))
            elif row["collection"] == "generator":
                chosen.append(Elsewhere(row["name"], row["where"], row["where"]))
            else:
                where = f"{row['where']}{' (' + row['note'] + ')' if row['note'] else ''}"
                chosen.append(Elsewhere(row["name"], where, None))
    if name not in lists:
        raise FetchError(f"no recorded list {name}; there are: {', '.join(sorted(lists))}")
    return chosen


def parse_index(text):
    """ssstats.csv: the number of matrices, a date, then group,name,rows,cols,nonzeros,... each."""
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].strip().isdigit():
        raise FetchError("the index is not ssstats.csv: expected the number of matrices on line 1")
    entries, reader = [], csv.reader(lines[2:])
    try:
        rows = list(reader)
    except csv.Error as error:
        raise FetchError(f"index line {reader.line_num + 2}: {error}") from None
    for number, row in enumerate(rows, start=3):
        if not row:
            continue
        try:
            entries.append(collection_entry(row[0], row[1], *map(int, row[2:5])))
        except (IndexError, ValueError, TypeError):
            raise FetchError(
                f"index line {number}: expected group,name,rows,cols,nonzeros,..."
            ) from None
        except FetchError as error:
            raise FetchError(f"index line {number}: {error}") from None
    return entries


def select(args, manifest, rule, load_index):
    """Entries to fetch, in order and without repeats."""
    chosen = list(manifest) if args.papers else []
    patterns = []
    for name in args.names:
        known = [e for e in manifest if name in (e.name, e.key)]
        if known:
            chosen += known
        elif "/" in name and not re.search(r"[*?\[]", name):
            chosen.append(collection_entry(*name.split("/", 1)))
        else:
            patterns.append(name)
    if patterns or args.group or args.rule:
        index = load_index()
        for pattern in patterns:
            found = [
                e
                for e in index
                if fnmatch.fnmatchcase(e.key if "/" in pattern else e.name, pattern)
            ]
            if not found:
                raise FetchError(f"no matrix is called {pattern}")
            chosen += found
        if args.group or args.rule:
            minima = [
                max(given, of_rule if args.rule else 0)
                for given, of_rule in zip((args.min_rows, args.min_cols, args.min_nnz), rule)
            ]
            found = [
                e
                for e in index
                if (not args.group or fnmatch.fnmatchcase(e.group, args.group))
                and e.rows >= minima[0]
                and e.cols >= minima[1]
                and e.nnz >= minima[2]
                and (not args.max_nnz or e.nnz <= args.max_nnz)
            ]
            chosen += sorted(found, key=lambda e: (e.nnz, e.key))
    unique = list(dict.fromkeys(chosen))
    return unique[: args.limit] if args.limit else unique
