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
import gzip
import io
import json
import pathlib
import sys
import tarfile
import zipfile
import zlib

from command_line import Parser
from suitesparse.choice import (
    COLLECTION,
    Elsewhere,
    Entry,
    parse_index,
    read_manifest,
    read_recorded,
    select,
)
from suitesparse.download import CHUNK, Downloader, FetchError, NoNetwork, create, digest, replace

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MANIFEST = DATA / "manifest.csv"
RECORDED = DATA / "lists" / "recorded.csv"

# ---------------------------------------------------------------- archives


LONGEST_LINE = 1 << 20  # bytes; spmmbench refuses a longer one too


def size_line(lines):
    """The first line that is no comment. Raises FetchError at one that would fill the memory."""
    while line := lines.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise FetchError(f"damaged archive: a line of more than {LONGEST_LINE} bytes")
        if not line.startswith(b"%"):
            return line
    return b""


def check_archive(entry, path):
    """Reads a .tar.gz to its end, checksum included. Raises FetchError."""
    sizes = None
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                if member.name == f"{entry.name}/{entry.name}.mtx" and member.isfile():
                    line = size_line(archive.extractfile(member))
                    sizes = [int(word) for word in line.split()[:2]]
        with gzip.open(path) as packed:  # tarfile stops before the checksum at the end
            while packed.read(CHUNK):
                pass
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise FetchError(f"damaged archive: {error}") from None
    if sizes is None:
        raise FetchError(f"the archive has no {entry.name}/{entry.name}.mtx")
    if entry.rows and sizes != [entry.rows, entry.cols]:
        raise FetchError(f"the matrix is {sizes}, the index says {[entry.rows, entry.cols]}")


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
        self.temporary = path / "checksums.json.tmp"
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
        if archive.parent in (self.lock_path, self.temporary):
            raise FetchError(f"{archive.parent} is no folder but the list of checksums")
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
        with create(self.temporary) as file:
            file.write((json.dumps(self.lock, indent=1, sort_keys=True) + "\n").encode())
        replace(self.temporary, self.lock_path)


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
        print(f"fetch_suitesparse.py: {error}", file=sys.stderr)
        return 1
    except (FetchError, OSError, ValueError) as error:
        print(f"fetch_suitesparse.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch_suitesparse.py: interrupted; run again to resume", file=sys.stderr)
        return 130
    if failed:
        print(f"fetch_suitesparse.py: {failed} of {len(entries)} failed", file=sys.stderr)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
