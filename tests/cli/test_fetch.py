#!/usr/bin/env python3
"""scripts/fetch_suitesparse.py against a server on the loopback that misbehaves on request."""

import csv
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SCRIPT = SOURCE / "scripts" / "fetch_suitesparse.py"


def archive_of(name, filler, sizes="1 1"):
    """A .tar.gz as the collection packs it, of incompressible size."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        text = b"%%MatrixMarket matrix coordinate pattern general\n%s 1\n1 1\n%% %s" % (sizes.encode(), filler)
        info = tarfile.TarInfo(f"{name}/{name}.mtx")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return raw.getvalue()


def zip_of(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return raw.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """files: path -> bytes. cut: path -> bytes to send before hanging up, once."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.cut, self.wrong_tag, self.no_tag = {}, {}, set(), set()
        self.requests = []  # (path, Range header)
        looks_every = 0.01  # seconds, whether it is to end
        threading.Thread(target=self.serve_forever, args=(looks_every,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def tag_of(self, path):
        data = self.files[path] + (b"!" if path in self.wrong_tag else b"")
        return '"' + hashlib.md5(data).hexdigest() + '"'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, asked = self.server, self.headers.get("Range")
        server.requests.append((self.path, asked))
        if self.path not in server.files:
            self.send_error(404)
            return
        data, start = server.files[self.path], 0
        tag = server.tag_of(self.path)
        if asked and self.headers.get("If-Range", tag) == tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.path not in server.no_tag:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : server.cut.pop(self.path, len(data))])

    def log_message(self, *_):
        pass


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "m"
        self.cant = archive_of("cant", os.urandom(100_000))
        self.server.files = {
            "/MM/Williams/cant.tar.gz": self.cant,
            "/MM/HB/tiny.tar.gz": archive_of("tiny", b""),
        }

    def fetch(self, *args, base=None):
        command = [
            sys.executable,
            str(SCRIPT),
            "--out",
            str(self.out),
            "--timeout",
            "5",
            "--base-url",
            base or self.server.url,
            *args,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def path(self, name="Williams/cant.tar.gz"):
        return self.out / name

    def test_fetches_by_name_and_records_the_checksum(self):
        result = self.fetch("Williams/cant", "HB/tiny")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.path().read_bytes(), self.cant)
        lock = json.loads((self.out / "checksums.json").read_text())
        self.assertEqual(lock["Williams/cant"]["sha256"], hashlib.sha256(self.cant).hexdigest())
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)
        self.assertEqual(len(self.server.requests), 2)  # the second run asked for nothing
        self.assertEqual([p.name for p in self.out.rglob("*.part*")], [])

    def test_resumes_after_a_cut_connection(self):
        self.server.cut["/MM/Williams/cant.tar.gz"] = 60_000
        result = self.fetch("Williams/cant")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.path().read_bytes(), self.cant)
        self.assertEqual(self.server.requests[1][1], "bytes=60000-")

    def test_a_later_run_resumes(self):
        self.server.cut["/MM/Williams/cant.tar.gz"] = 60_000
        result = self.fetch("--retries", "0", "Williams/cant")
        self.assertEqual(result.returncode, 4)
        self.assertIn("connection cut at 60000 of", result.stderr)
        self.assertFalse(self.path().exists())
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)
        self.assertEqual(self.server.requests[1][1], "bytes=60000-")
        self.assertEqual(self.path().read_bytes(), self.cant)

    def test_a_file_that_changed_in_between_is_fetched_whole(self):
        self.server.cut["/MM/Williams/cant.tar.gz"] = 60_000
        self.fetch("--retries", "0", "Williams/cant")
        changed = archive_of("cant", os.urandom(90_000))
        self.server.files["/MM/Williams/cant.tar.gz"] = changed
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)
        self.assertEqual(self.path().read_bytes(), changed)

    def test_a_wrong_checksum_is_refused(self):
        self.server.wrong_tag.add("/MM/Williams/cant.tar.gz")
        result = self.fetch("Williams/cant", "HB/tiny")
        self.assertEqual(result.returncode, 4)
        self.assertIn("Williams/cant: failed: bad checksum", result.stderr)
        self.assertFalse(self.path().exists())
        self.assertTrue(self.path("HB/tiny.tar.gz").exists())

    def test_the_recorded_checksum_guards_files_without_a_published_one(self):
        self.server.no_tag.add("/MM/Williams/cant.tar.gz")
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)
        self.path().write_bytes(b"\x1f\x8b damaged")
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)  # replaced by the right one
        self.assertEqual(self.path().read_bytes(), self.cant)
        self.path().unlink()
        self.server.files["/MM/Williams/cant.tar.gz"] = archive_of("cant", b"other")
        result = self.fetch("Williams/cant")
        self.assertEqual(result.returncode, 4)
        self.assertIn("bad checksum: differs from", result.stderr)
        self.assertEqual(self.fetch("--update-lock", "Williams/cant").returncode, 0)

    def test_a_missing_file_is_one_line_and_the_rest_is_fetched(self):
        result = self.fetch("No/such", "HB/tiny")
        self.assertEqual(result.returncode, 4)
        self.assertIn("No/such: failed: HTTP 404", result.stderr)
        self.assertTrue(self.path("HB/tiny.tar.gz").exists())

    def test_a_page_instead_of_an_archive_is_refused(self):
        self.server.files["/MM/HB/tiny.tar.gz"] = b"<html>log in first</html>"
        result = self.fetch("HB/tiny")
        self.assertEqual(result.returncode, 4)
        self.assertIn("not an archive", result.stderr)

    def test_no_network_is_one_clear_line(self):
        for base in ("http://127.0.0.1:9", "http://no-such-host.invalid"):
            result = self.fetch("Williams/cant", "HB/tiny", base=base)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn("no network: cannot reach", result.stderr)

    def test_the_index_selects_by_rule_group_and_glob(self):
        index = self.out.parent / "ssstats.csv"
        index.write_text(
            "3\n31-Oct-2023\n"
            "Williams,cant,62451,62451,4007383,1,0,1,1,1,1,2D/3D Problem,4007383\n"
            "HB,tiny,1,1,1,1,0,0,0,1,1,structural problem,1\n"
            "Big,b,9000,6000,200000,1,0,0,0,0,0,linear programming problem,200000\n"
        )
        listed = self.fetch("--index", str(index), "--rule", "--list").stdout.split()
        self.assertEqual([w for w in listed if "/" in w], ["Big/b", "Williams/cant"])
        listed = self.fetch("--index", str(index), "--group", "W*", "ti*", "--list").stdout
        self.assertIn("HB/tiny", listed)
        self.assertIn("Williams/cant", listed)
        self.assertNotIn("Big/b", listed)
        self.server.files["/files/ssstats.csv"] = index.read_bytes().replace(b"62451", b"1")
        self.assertEqual(self.fetch("cant?").returncode, 1)
        self.assertEqual(self.fetch("can?").returncode, 0)
        self.assertTrue(self.path().exists())

    def test_nothing_is_written_outside_the_folder_whatever_the_index_says(self):
        index = self.out.parent / "ssstats.csv"
        evil = archive_of("x", b"")
        for group, name in (("..", "x"), ("../..", "x"), ("HB", "../../x"), ("/tmp", "x"), ("HB", ".."),
                            ("", "x"), ("HB", "a\\b"), ("HB", ".hidden"), ("HB", "x" * 1_000_000)):
            index.write_text(f'1\ndate\n"{group}","{name}",1,1,1\n')
            self.server.files |= {f"/MM/{group}/{name}.tar.gz": evil, f"/{name}.tar.gz": evil}
            before = sorted(self.out.parent.rglob("*"))
            result = self.fetch("--index", str(index), "--group", "*", "--min-nnz", "1")
            self.assertEqual(result.returncode, 1, (group, name))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertLess(len(result.stderr), 300)
            self.assertIn("index line 3", result.stderr)
            self.assertEqual(sorted(self.out.parent.rglob("*")), before)
        self.assertEqual(self.fetch("HB/../../x").returncode, 1)

    def test_symlinks_inside_the_folder_lead_nowhere(self):
        outside = self.out.parent / "outside"
        outside.mkdir()
        precious = outside / "precious"
        precious.write_text("kept")
        (self.out / "Williams").mkdir(parents=True)
        for name in ("cant.tar.gz.part", "cant.tar.gz.part.etag", "cant.tar.gz"):
            (self.out / "Williams" / name).symlink_to(precious)
        (self.out / "checksums.json.tmp").symlink_to(precious)
        (self.out / "HB").symlink_to(outside)
        result = self.fetch("HB/tiny", "Williams/cant")
        self.assertEqual(result.returncode, 4)
        self.assertIn("leads outside", result.stderr)
        (self.out / "Williams" / "cant.tar.gz").unlink(missing_ok=True)
        self.assertEqual(self.fetch("Williams/cant").returncode, 0)
        self.assertEqual(self.path().read_bytes(), self.cant)
        self.assertFalse(self.path().is_symlink())
        self.assertEqual(precious.read_text(), "kept")
        self.assertEqual([path.name for path in outside.iterdir()], ["precious"])

    def test_an_archive_that_is_damaged_or_holds_another_matrix_is_refused(self):
        index = self.out.parent / "ssstats.csv"
        index.write_text("1\ndate\nWilliams,cant,1,1,1\n")
        self.server.no_tag.add("/MM/Williams/cant.tar.gz")
        damaged = bytearray(self.cant)
        damaged[50_000] ^= 1
        for data, reason in (
            (bytes(damaged), "damaged archive"),
            (self.cant[:-4], "damaged archive"),
            (archive_of("other", b""), "has no cant/cant.mtx"),
        ):
            self.server.files["/MM/Williams/cant.tar.gz"] = data
            result = self.fetch("--index", str(index), "can?")
            self.assertEqual(result.returncode, 4, reason)
            self.assertIn(reason, result.stderr)
            self.assertFalse(self.path().exists())
        self.server.files["/MM/Williams/cant.tar.gz"] = self.cant
        index.write_text("1\ndate\nWilliams,cant,7,1,1\n")
        self.assertIn("the index says [7, 1]", self.fetch("--index", str(index), "can?").stderr)
        index.write_text("1\ndate\nWilliams,cant,1,1,1\n")
        self.assertEqual(self.fetch("--index", str(index), "can?").returncode, 0)

    def test_a_line_that_would_fill_the_memory_is_refused(self):
        tar = tarfile.TarInfo("cant/cant.mtx")
        tar.size = 200 << 20
        raw = io.BytesIO()
        with gzip.open(raw, "wb", compresslevel=1) as packed:
            packed.write(tar.tobuf())
            for _ in range(200):
                packed.write(b"%" * (1 << 20))
            packed.write(bytes(1024))
        self.server.files["/MM/Williams/cant.tar.gz"] = raw.getvalue()
        command = [sys.executable, "-c", "import resource, runpy, sys\n"
                   "resource.setrlimit(resource.RLIMIT_DATA, (150 << 20, 150 << 20))\n"
                   "sys.argv = sys.argv[1:]\nsys.path.insert(0, sys.argv[0].rpartition('/')[0])\n"
                   "runpy.run_path(sys.argv[0], run_name='__main__')"]
        command += [str(SCRIPT), "--out", str(self.out), "--base-url", self.server.url, "Williams/cant"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("a line of more than 1048576 bytes", result.stderr)

    def test_a_group_called_as_the_list_of_checksums_stops_nothing(self):
        for name in ("checksums.json", "checksums.json.tmp"):
            self.server.files[f"/MM/{name}/tiny.tar.gz"] = archive_of("tiny", b"")
            result = self.fetch(f"{name}/tiny", "HB/tiny")
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertIn(f"{name}/tiny: failed: {self.out / name} is no folder", result.stderr)
            self.assertTrue(self.path("HB/tiny.tar.gz").exists())

    def test_a_broken_index_is_one_line(self):
        self.server.files["/files/ssstats.csv"] = b"<html>"
        result = self.fetch("--rule")
        self.assertEqual(result.returncode, 1)
        self.assertIn("not ssstats.csv", result.stderr)

    def test_the_manifest_names_the_nine_graphs(self):
        listed = [line.split()[0] for line in self.fetch("--papers", "--list").stdout.splitlines()]
        self.assertEqual(len(listed), 9)
        self.assertIn("SNAP/web-BerkStan", listed)
        self.assertIn("graphkerneldatasets/OVCAR-8H", listed)

    def test_graphs_of_other_collections_become_matrix_market(self):
        manifest = self.out.parent / "manifest.csv"
        manifest.write_text(
            "paper,name,source,group,rows,cols,nnz,url,note\n"
            "P,DD,tu,tud,3,3,4,https://h/DD.zip,\n"
            "P,ddi,ogb,link,3,3,5,https://h/ddi.zip,\n"
        )
        edges = gzip.compress(b"0,2\n")
        self.server.files |= {
            "/DD.zip": zip_of({"DD/DD_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n"}),
            "/ddi.zip": zip_of({"ddi/raw/edge.csv.gz": edges}),
        }
        result = self.fetch("--manifest", str(manifest), "--papers")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = self.path("tud/DD.mtx").read_text().splitlines()
        self.assertEqual(lines[0], "%%MatrixMarket matrix coordinate pattern general")
        self.assertEqual(lines[2:], ["3 3 4", "1 2", "2 1", "2 3", "3 2"])
        lines = self.path("link/ddi.mtx").read_text().splitlines()
        self.assertEqual(lines[2:], ["3 3 4", "3 1", "1 1", "2 2", "3 3"])

    def test_a_recorded_list_becomes_a_list_that_the_program_reads(self):
        with open(SOURCE / "data/lists/recorded.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if "general" in row["lists"].split()]
        expected = []
        for row in rows:
            if row["collection"] == "suitesparse":
                name = row["where"].split("/")[1]
                archive = archive_of(name, b"", f"{row['rows']} {row['cols']}")
                self.server.files[f"/MM/{row['where']}.tar.gz"] = archive
                expected.append(str(self.path(row["where"] + ".tar.gz")))
        result = self.fetch("--recorded", "general", "--retries", "0")
        self.assertEqual(result.returncode, 4, result.stderr)  # the other collections are not served
        self.assertIn("not fetched: USA-road-d.NY, from https://github.com/", result.stderr)
        lines = self.path("general.txt").read_text().splitlines()
        self.assertEqual(lines, ["gen:stencil?points=7&nx=100", *expected])

    def test_recorded_lists_name_what_the_recorded_runs_measured(self):
        with open(SOURCE / "data/lists/recorded.csv", newline="", encoding="utf-8") as file:
            names = {row["name"] for row in csv.DictReader(file)}
        run = json.loads((SOURCE / "results/h200/irregular-fp16-n128.json").read_text())
        measured = {pathlib.Path(row["matrix"]["source"]).stem for row in run["rows"]}
        self.assertEqual({name for name in measured if name not in names}, set())

    def test_an_unknown_recorded_list_is_one_line_with_those_there_are(self):
        result = self.fetch("--recorded", "dense")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no recorded list dense; there are: general, held-out, pruned", result.stderr)

    def test_nothing_asked_for_is_a_usage_error(self):
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
