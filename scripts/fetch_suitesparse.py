#!/usr/bin/env python3
"""Downloads matrices of the SuiteSparse Matrix Collection, and the graphs of data/manifest.csv.

  fetch_suitesparse.py SNAP/amazon0505 cant        by group/name or name; globs need the index
  fetch_suitesparse.py --papers                    every matrix that data/manifest.csv names
  fetch_suitesparse.py --rule --limit 512          the papers' selection rule, smallest first
  fetch_suitesparse.py --group Williams --list     show what would be fetched
  fetch_suitesparse.py --recorded general          those of the recorded runs (data/lists/recorded.csv),
                                                   and OUT/general.txt for `spmmbench run @OUT/general.txt`

Archives land as OUT/GROUP/NAME.tar.gz, which spmmbench reads as they are; graphs from other
collections are converted to OUT/GROUP/NAME.mtx. An interrupted download resumes. Each file is
checked against the MD5 that the server publishes (its ETag), against OUT/checksums.json, where
size and SHA-256 are recorded the first time, and, as an archive, for its own checksum and the
matrix size that the index gives. Nothing is written outside OUT, whatever names the index has.
Exit status: 0 all there, 1 no network or bad arguments, 4 some failed.
"""

import argparse
import base64
import csv
import fnmatch
import gzip
import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import socket
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MANIFEST = DATA / "manifest.csv"
RECORDED = DATA / "lists" / "recorded.csv"
COLLECTION = "https://sparse.tamu.edu"
CHUNK = 1 << 20


class NoNetwork(Exception):
    """The server cannot be reached at all."""


class FetchError(Exception):
    """One file cannot be had; the message says why."""


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
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", part):
                raise FetchError(f"{part!r}: expected a group or a matrix name, such as HB or cant")

    @property
    def key(self):
        return f"{self.group}/{self.name}"


def collection_entry(group, name, *sizes):
    path = urllib.parse.quote(f"/MM/{group}/{name}.tar.gz")
    return Entry(name, group, COLLECTION + path, "suitesparse", *sizes)


# ---------------------------------------------------------------- which matrices


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
    entries = []
    for number, row in enumerate(csv.reader(lines[2:]), start=3):
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


# ---------------------------------------------------------------- one download


def published_md5(headers):
    """MD5 of the whole file where the server tells it: Content-MD5, or an ETag that is one."""
    if headers.get("Content-MD5"):
        return base64.b64decode(headers["Content-MD5"]).hex()
    tag = (headers.get("ETag") or "").strip('"')
    return tag.lower() if re.fullmatch(r"[0-9a-fA-F]{32}", tag) else None


def is_offline(error):
    reason = getattr(error, "reason", error)
    return isinstance(reason, (socket.gaierror, ConnectionRefusedError, TimeoutError)) or (
        isinstance(reason, OSError) and reason.errno in (101, 113)
    )  # network or host unreachable


class Downloader:
    def __init__(self, base_url, timeout, retries, pause=1.0):
        self.base_url = base_url.rstrip("/") if base_url else None
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.reached = False  # some server has answered

    def open(self, url, headers=None):
        if self.base_url:
            parts = urllib.parse.urlsplit(url)
            url = self.base_url + parts.path
        request = urllib.request.Request(
            url, headers={"User-Agent": "spmmbench", **(headers or {})}
        )
        try:
            response = urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError:
            self.reached = True
            raise
        except (urllib.error.URLError, OSError) as error:
            if is_offline(error) and not self.reached:
                host = urllib.parse.urlsplit(url).netloc
                raise NoNetwork(
                    f"no network: cannot reach {host} ({getattr(error, 'reason', error)})"
                ) from None
            raise
        self.reached = True
        return response

    def text(self, url):
        try:
            with self.open(url) as response:
                return response.read().decode("utf-8")
        except urllib.error.HTTPError as error:
            raise FetchError(f"{url}: HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
            raise FetchError(f"{url}: {error}") from None

    def fetch(self, url, part):
        """Brings `part` to its full length, resuming what is there. Returns the published MD5."""
        problem = None
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                return self._attempt(url, part)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # the part is as long as the file, or the file has changed
                    part.unlink(missing_ok=True)
                elif error.code < 500 and error.code not in (408, 429):
                    raise FetchError(f"HTTP {error.code} {error.reason}") from None
                problem = f"HTTP {error.code} {error.reason}"
            except (OSError, http.client.HTTPException) as error:
                problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise FetchError(f"{problem} (after {self.retries + 1} attempts; run again to resume)")

    def _attempt(self, url, part):
        tag_file = part.with_name(part.name + ".etag")
        have = part.stat().st_size if part.exists() else 0
        headers = {}
        if have:
            headers["Range"] = f"bytes={have}-"
            if tag_file.exists():  # a changed file is then sent whole
                headers["If-Range"] = tag_file.read_text(encoding="utf-8")
        with self.open(url, headers) as response:
            resumed = response.status == 206
            if resumed:
                match = re.match(
                    r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", "")
                )
                if not match or int(match[1]) != have:
                    part.unlink()
                    raise OSError("the server resumed at another place")
                total = int(match[2])
            else:
                length = response.headers.get("Content-Length")
                total = int(length) if length else None
            if response.headers.get("ETag"):
                with create(tag_file) as file:
                    file.write(response.headers["ETag"].encode())
            with create(part, append=resumed) as file:
                while chunk := response.read(CHUNK):
                    file.write(chunk)
            size = part.stat().st_size
            if total is not None and size != total:
                raise OSError(f"connection cut at {size} of {total} bytes")
            tag_file.unlink(missing_ok=True)
            return published_md5(response.headers)


def create(path, append=False):
    """Opens a file for writing: never through a symlink, never one that others share by name."""
    if path.is_symlink() or (path.exists() and path.stat().st_nlink > 1):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_APPEND if append else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, 0o666), "ab" if append else "wb")


def replace(temporary, path):
    """The file is on the disk before it has its name."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def check_archive(entry, path):
    """Reads a .tar.gz to its end, checksum included. Raises FetchError."""
    sizes = None
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                if member.name == f"{entry.name}/{entry.name}.mtx" and member.isfile():
                    lines = archive.extractfile(member)
                    size_line = next((line for line in lines if not line.startswith(b"%")), b"")
                    sizes = [int(word) for word in size_line.split()[:2]]
        with gzip.open(path) as packed:  # tarfile stops before the checksum at the end
            while packed.read(CHUNK):
                pass
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise FetchError(f"damaged archive: {error}") from None
    if sizes is None:
        raise FetchError(f"the archive has no {entry.name}/{entry.name}.mtx")
    if entry.rows and sizes != [entry.rows, entry.cols]:
        raise FetchError(f"the matrix is {sizes}, the index says {[entry.rows, entry.cols]}")


def digest(path, algorithm):
    state = hashlib.new(algorithm)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            state.update(chunk)
    return state.hexdigest()


# ---------------------------------------------------------------- other collections


def edges_of_archive(entry, path):
    """(row, col) pairs counted from 1, and the Matrix Market symmetry they stand for."""
    with zipfile.ZipFile(path) as archive:
        if entry.source == "tu":  # NAME_A.txt: "i, j", both directions
            with archive.open(f"{entry.name}/{entry.name}_A.txt") as file:
                pairs = [tuple(map(int, line.split(b","))) for line in file if line.strip()]
            return pairs, "general"
        member = next(n for n in archive.namelist() if n.endswith("raw/edge.csv.gz"))
        with gzip.open(io.BytesIO(archive.read(member)), "rt", encoding="ascii") as file:
            pairs = [tuple(int(v) + 1 for v in line.split(",")) for line in file if line.strip()]
        lower = [(max(p), min(p)) for p in pairs] + [(v, v) for v in range(1, entry.rows + 1)]
        return lower, "symmetric"


def convert_to_mtx(entry, archive, out):
    try:
        pairs, symmetry = edges_of_archive(entry, archive)
    except (zipfile.BadZipFile, KeyError, StopIteration, ValueError, OSError) as error:
        raise FetchError(f"not the expected archive of {entry.source}: {error}") from None
    temporary = out.with_name(out.name + ".tmp")
    with create(temporary) as file:
        file.write(f"%%MatrixMarket matrix coordinate pattern {symmetry}\n% {entry.url}\n".encode())
        file.write(f"{entry.rows} {entry.cols} {len(pairs)}\n".encode())
        file.writelines(b"%d %d\n" % pair for pair in pairs)
    replace(temporary, out)


# ---------------------------------------------------------------- a folder of files


class Folder:
    def __init__(self, path, downloader, update_lock):
        self.path, self.downloader, self.update_lock = path, downloader, update_lock
        self.lock_path = path / "checksums.json"
        self.lock = {}
        if self.lock_path.exists():
            try:
                self.lock = json.loads(self.lock_path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise FetchError(f"{self.lock_path}: {error}") from None

    def ensure(self, entry):
        """Makes sure that the entry's file is there and right. Returns what was done and the file."""
        suffix = ".tar.gz" if entry.source == "suitesparse" else ".zip"
        archive = self.path / entry.group / (entry.name + suffix)
        matrix = archive if suffix == ".tar.gz" else archive.with_suffix(".mtx")
        if archive.parent.resolve().parent != self.path.resolve():
            raise FetchError(f"{archive.parent} leads outside {self.path}")
        outcome = "already there"
        known = self.lock.get(entry.key, {})
        recorded = known.get("sha256")
        right = archive.exists() and archive.stat().st_size == known.get(
            "bytes", archive.stat().st_size
        )
        if not right or (recorded and digest(archive, "sha256") != recorded):
            self._download(entry, archive, recorded)
            outcome = "fetched"
        elif not recorded:
            if suffix == ".tar.gz":
                check_archive(entry, archive)
            self._record(entry, archive)
        if matrix != archive and (outcome == "fetched" or not matrix.exists()):
            convert_to_mtx(entry, archive, matrix)
        return outcome, matrix

    def _download(self, entry, archive, recorded):
        archive.parent.mkdir(parents=True, exist_ok=True)
        part = archive.with_name(archive.name + ".part")
        md5 = self.downloader.fetch(entry.url, part)
        with open(part, "rb") as file:
            head = file.read(2)
        problem = None
        if md5 and digest(part, "md5") != md5:
            problem = f"bad checksum: MD5 {digest(part, 'md5')}, the server says {md5}"
        elif head != (b"\x1f\x8b" if archive.name.endswith(".gz") else b"PK"):
            problem = "not an archive: the server sent something else"
        elif recorded and not self.update_lock and digest(part, "sha256") != recorded:
            problem = (
                f"bad checksum: differs from {self.lock_path} (--update-lock accepts the new file)"
            )
        if not problem and archive.name.endswith(".tar.gz"):
            try:
                check_archive(entry, part)
            except FetchError as error:
                problem = str(error)
        if problem:
            part.unlink()
            raise FetchError(problem)
        replace(part, archive)
        self._record(entry, archive)

    def _record(self, entry, archive):
        self.lock[entry.key] = {
            "sha256": digest(archive, "sha256"),
            "bytes": archive.stat().st_size,
            "url": entry.url,
        }
        temporary = self.lock_path.with_name("checksums.json.tmp")
        with create(temporary) as file:
            file.write((json.dumps(self.lock, indent=1, sort_keys=True) + "\n").encode())
        replace(temporary, self.lock_path)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(1, f"fetch_suitesparse: {message}\n")


def parse_arguments(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="GROUP/NAME or NAME, globs allowed")
    add("--papers", action="store_true", help="every matrix that the manifest names")
    add(
        "--rule", action="store_true", help="the manifest's selection rule (rows, columns, entries)"
    )
    add("--recorded", metavar="LIST", help="a list of data/lists/recorded.csv: general, pruned, held-out")
    add("--group", help="every matrix of the groups that match this glob")
    for what in ("min-rows", "min-cols", "min-nnz", "max-nnz", "limit"):
        add(f"--{what}", type=int, default=0, metavar="N")
    add(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("matrices"),
        help="target folder (matrices)",
    )
    add("--index", type=pathlib.Path, help="a copy of ssstats.csv instead of downloading it")
    add("--manifest", type=pathlib.Path, default=MANIFEST)
    add("--base-url", help="a mirror that replaces scheme and host of every address")
    add("--list", action="store_true", help="print what would be fetched")
    add("--update-lock", action="store_true", help="accept files that differ from checksums.json")
    add("--retries", type=int, default=4, metavar="N")
    add("--timeout", type=float, default=30, metavar="SECONDS")
    args = parser.parse_args(argv)
    if not (args.names or args.papers or args.rule or args.group or args.recorded):
        parser.error("expected matrix names, --papers, --rule, --group or --recorded")
    return args


def main(argv):
    args = parse_arguments(argv)
    downloader = Downloader(args.base_url, args.timeout, args.retries)

    def load_index():
        if args.index:
            return parse_index(args.index.read_text(encoding="utf-8"))
        return parse_index(downloader.text(COLLECTION + "/files/ssstats.csv"))

    try:
        entries = select(args, *read_manifest(args.manifest), load_index)
        elsewhere = []
        if args.recorded:
            recorded = read_recorded(RECORDED, args.recorded, args.min_nnz)
            entries += [e for e in recorded if isinstance(e, Entry)]
            elsewhere = [e for e in recorded if isinstance(e, Elsewhere)]
        if args.list:
            for e in entries:
                sizes = f"{e.rows} x {e.cols}, {e.nnz} entries" if e.rows else "size unknown"
                print(f"{e.key:40} {sizes}")
            for e in elsewhere:
                print(f"{e.name:40} {e.where}")
            return 0
        args.out.mkdir(parents=True, exist_ok=True)
        folder = Folder(args.out, downloader, args.update_lock)
        failed, runnable = 0, [e.line for e in elsewhere if e.line]
        for number, entry in enumerate(entries, start=1):
            try:
                outcome, matrix = folder.ensure(entry)
                outcome = f"{outcome}: {matrix}"
                runnable.append(str(matrix))
            except FetchError as error:
                failed += 1
                outcome = f"failed: {error}"
            print(f"[{number}/{len(entries)}] {entry.key}: {outcome}", file=sys.stderr, flush=True)
        if args.recorded:
            for e in elsewhere:
                if not e.line:
                    print(f"not fetched: {e.name}, from {e.where}", file=sys.stderr)
            with create(args.out / f"{args.recorded}.txt") as file:
                file.write("".join(f"{line}\n" for line in runnable).encode())
    except NoNetwork as error:
        print(f"fetch_suitesparse: {error}", file=sys.stderr)
        return 1
    except (FetchError, OSError, ValueError) as error:
        print(f"fetch_suitesparse: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch_suitesparse: interrupted; run again to resume", file=sys.stderr)
        return 130
    if failed:
        print(f"fetch_suitesparse: {failed} of {len(entries)} failed", file=sys.stderr)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
