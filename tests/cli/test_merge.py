#!/usr/bin/env python3
"""`spmmbench merge` joins the documents of shards."""

import copy
import signal
import subprocess

from cli_case import ENVIRONMENT, PROGRAM, QUICK, SMALL, CliCase, case_of, main, read, write

INPUTS = [f"{SMALL}&seed={seed}" for seed in (1, 2, 3)]


class MergeTest(CliCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "all.json"

    def shard(self, name, *args):
        path = self.folder / name
        self.run_cpu(*args, "-n", "4,8", "--json", path, "--quiet")
        return path

    def merge(self, *args):
        result = self.spmmbench("merge", self.out, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return read(self.out), result

    def edited(self, path, name, change):
        document = copy.deepcopy(read(path))
        change(document)
        write(self.folder / name, document)
        return self.folder / name

    def test_shards_give_the_rows_of_the_whole(self):
        shards = [self.shard(f"{i}.json", *INPUTS, "--shard", f"{i}/3") for i in (1, 2, 3)]
        whole = read(self.shard("whole.json", *INPUTS))
        csv = self.folder / "all.csv"
        document, result = self.merge(*shards, "--csv", csv)
        self.assertEqual(sorted(map(case_of, document["rows"])), sorted(map(case_of, whole["rows"])))
        self.assertTrue(document["complete"])
        self.assertEqual(document["context"]["argv"][1], "merge")
        self.assertEqual(len(csv.read_text().splitlines()), 7)
        self.assertIn("6 cases of 3 documents, 0 rows", result.stdout)
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.journal")), [])
        first = read(shards[0])["rows"][0]
        self.assertIn(first, document["rows"], "samples and all")

    def test_a_file_whose_rows_would_be_lost_is_not_replaced(self):
        first, second = (self.shard(f"{i}.json", INPUTS[i]) for i in (1, 2))
        before = first.read_bytes()
        result = self.spmmbench("merge", first, second)  # OUT was forgotten
        self.assert_one_line(result, 1, f"{first}: has 2 cases that no IN has: expected it among IN")
        self.assertEqual(first.read_bytes(), before)
        other = self.folder / "notes.txt"
        other.write_text("mine")
        self.assert_one_line(self.spmmbench("merge", other, first, second), 1, "notes.txt: is there and is no result")
        self.assertEqual(other.read_text(), "mine")
        self.assertEqual([path.name for path in self.folder.glob("*.journal")], [])
        result = self.spmmbench("merge", first, second, "--overwrite")
        self.assertEqual((result.returncode, len(read(first)["rows"])), (0, 2), result.stderr)
        self.merge(first)
        document, _ = self.merge(first, second)  # a joined document is made anew from more
        self.assertEqual(len(document["rows"]), 2)

    def test_a_shard_that_never_ran_is_named(self):
        shards = [self.shard(f"{i}.json", *INPUTS, "--shard", f"{i}/3") for i in (1, 2, 3)]
        part = self.folder / "part.json"
        result = self.spmmbench("merge", part, *shards[:2])
        self.assert_one_line(result, 4, f"{part}: shards are missing or not complete: 3/3")
        self.assertFalse(read(part)["complete"])
        self.assertEqual(read(part)["context"]["shards"], ["1/3", "2/3"])
        document, _ = self.merge(part, shards[2])
        self.assertTrue(document["complete"])
        self.assertEqual(document["context"]["shards"], [])
        self.assertEqual(len(document["rows"]), 6)
        half = self.edited(shards[1], "half.json", lambda d: d.update(complete=False))
        result = self.spmmbench("merge", part, shards[0], half, shards[2])
        self.assertEqual(result.returncode, 4)
        self.assertIn("half.json is incomplete", result.stderr)
        self.assertIn("not complete: 2/3", result.stderr)

    def test_of_a_repeated_case_the_last_that_was_measured_counts(self):
        def median(factor):
            return lambda d: [row["hot"].update(median_us=factor) for row in d["rows"]]

        def fail(document):
            for row in document["rows"]:
                row.update(status="failed", reason="planted", hot=None, cold=None)

        first = self.shard("first.json", INPUTS[0])
        later = self.edited(first, "later.json", median(1234.5))
        broken = self.edited(first, "broken.json", fail)
        for order in ((first, later, broken), (broken, first, later), (first, broken, later)):
            document, result = self.merge(*order)
            self.assertEqual([row["hot"]["median_us"] for row in document["rows"]], [1234.5] * 2)
            self.assertIn("2 cases of 3 documents, 4 rows", result.stdout)
        document, _ = self.merge(broken)
        self.assertEqual({row["status"] for row in document["rows"]}, {"failed"})

    def with_status(self, path, name, status):
        return self.edited(path, name, lambda d: [row.update(status=status, reason="planted", hot=None, cold=None)
                                                  for row in d["rows"]])

    def test_a_skipped_row_replaces_none_that_says_more(self):
        first = self.shard("first.json", INPUTS[0])
        skipped, failed, wrong = (self.with_status(first, f"{status}.json", status)
                                  for status in ("skipped", "failed", "wrong"))
        for order, counts in (((first, skipped), "ok"), ((failed, skipped), "failed"), ((skipped, failed), "failed"),
                              ((first, wrong), "wrong"), ((wrong, skipped, failed), "wrong"), ((skipped,), "skipped")):
            document, result = self.merge(*order)
            self.assertEqual({row["status"] for row in document["rows"]}, {counts}, order)
            self.assertEqual(result.stderr, "")
        document, result = self.merge(wrong, first)
        self.assertEqual({row["status"] for row in document["rows"]}, {"ok"})
        self.assertIn("given up for later ones that are right: 2 wrong rows", result.stderr)

    def test_speed_ups_are_against_the_rows_that_count(self):
        first = self.folder / "first.json"
        self.spmmbench("run", SMALL, "-n", 8, "-k", "cpu_csr,eigen_csr", "--precision", "fp32", *QUICK, "-q", "--json", first)

        def change(document, **fields):
            document["rows"] = [row for row in document["rows"] if row["kernel"] == "eigen_csr"]
            document["rows"][0].update(fields)

        def slower(document):
            change(document)
            document["rows"][0]["hot"]["median_us"] = 4 * eigen_us

        eigen_us = next(row for row in read(first)["rows"] if row["kernel"] == "eigen_csr")["hot"]["median_us"]
        before = next(row for row in read(first)["rows"] if row["kernel"] == "cpu_csr")["speedup"]["eigen"]
        wrong = self.edited(first, "wrong.json", lambda d: change(d, status="wrong", reason="planted"))
        for later, factor in ((self.edited(first, "slower.json", slower), 4), (wrong, None)):
            csv = self.folder / "all.csv"
            document, _ = self.merge(first, later, "--csv", csv)
            row = next(row for row in document["rows"] if row["kernel"] == "cpu_csr")
            if factor is None:
                self.assertIsNone(row["speedup"]["eigen"])
                self.assertIsNone(row["break_even_against"])
            else:
                self.assertAlmostEqual(row["speedup"]["eigen"], factor * before)

    def test_documents_are_read_from_pipes(self):
        first, second = self.shard("a.json", INPUTS[0]), self.shard("b.json", INPUTS[1])
        result = subprocess.run(["bash", "-c", 'exec "$0" merge "$1" <(cat "$2") <(cat "$3")', PROGRAM, self.out,
                                 first, second], capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(read(self.out)["rows"]), 4)

    def test_what_fails_or_is_interrupted_leaves_nothing(self):
        first = self.shard("a.json", INPUTS[0])
        bad = self.folder / "bad.json"
        bad.write_text(first.read_text()[:-200])
        self.assertEqual(self.spmmbench("merge", self.out, first, bad).returncode, 1)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.json", "bad.json"])
        document = read(first)
        big = self.folder / "big.json"
        document["rows"] = [{**document["rows"][0], "n": n + 1} for n in range(20000)]
        write(big, document)
        for sent in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([PROGRAM, "merge", self.out, big], env=ENVIRONMENT, stdout=subprocess.PIPE)
            while not (self.folder / "all.json.part").exists():
                self.assertIsNone(process.poll())
            process.send_signal(sent)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.json", "bad.json", "big.json"])

    def test_rows_of_one_matrix_are_of_one_build_on_one_machine(self):
        first = self.shard("a.json", INPUTS[0], "--precision", "fp32")

        def elsewhere(field, value="elsewhere"):
            def change(document):
                *groups, name = field.split(".")
                place = document["context"][groups[0]] if groups else document["context"]
                place[name] = value
                for row in document["rows"]:
                    row["kernel"] = "eigen_csr"
            return change

        versions = ("uuid", "driver_version", "runtime_version", "cusparse_version", "cublas_version")
        first = self.edited(first, "a.json", lambda d: d["context"]["device"].update(dict.fromkeys(versions, "own")))
        for field in ("hostname", "git_revision", "tool_version", "build_flags", *(f"device.{name}" for name in versions)):
            other = self.edited(first, "b.json", elsewhere(field))
            result = self.spmmbench("merge", self.out, first, other)
            self.assert_one_line(result, 5, f"whose speed-ups would be between them: {field} differs: '")
            self.assertFalse(self.out.exists())
        other = self.edited(first, "b.json", elsewhere("device.l2_bytes", 123))
        self.assert_one_line(self.spmmbench("merge", self.out, first, other), 5, "device.l2_bytes differs: ")
        self.merge(first, self.edited(first, "b.json", elsewhere("device.cublas_version", "")))  # not known
        other = self.edited(first, "b.json", elsewhere("hostname"))
        _, result = self.merge(first, other, "--force")
        self.assertIn("whose speed-ups would be between them", result.stderr)
        self.out.unlink()
        document, _ = self.merge(first, self.edited(self.shard("c.json", INPUTS[1]), "c.json",
                                                    elsewhere("device.driver_version")))
        self.assertEqual(document["context"]["device"]["driver_version"], "own, elsewhere")

    def test_standard_output_takes_one_output(self):
        first = self.shard("a.json", INPUTS[0])
        for out, csv in (("-", "-"), ("-", "/dev/stdout"), ("/dev/stdout", "-"), ("/dev/fd/1", "/proc/self/fd/1")):
            result = self.spmmbench("merge", out, first, "--csv", csv)
            self.assert_one_line(result, 1, "standard output: expected one of OUT and --csv")
            self.assertEqual(result.stdout, "")
        result = self.spmmbench("merge", self.out, first, "--csv", "-")
        self.assertEqual(len(result.stdout.splitlines()), 3)
        self.assertIn("2 cases", result.stderr)

    def test_the_output_may_be_an_input(self):
        self.out = self.shard("all.json", INPUTS[0])
        document, _ = self.merge(self.out, self.shard("b.json", INPUTS[1]))
        self.assertEqual(len(document["rows"]), 4)

    def test_an_incomplete_shard_makes_an_incomplete_whole_that_resume_finishes(self):
        part = self.edited(self.shard("a.json", INPUTS[0]), "part.json",
                           lambda d: (d.update(complete=False), d["rows"].pop()))
        document, result = self.merge(part)
        self.assertFalse(document["complete"])
        self.assertIn("part.json is incomplete", result.stderr)
        self.assertEqual(list(self.folder.glob("*.journal")), [])
        self.assertEqual(self.merge(part)[0]["rows"], document["rows"], "it can be merged again")
        self.run_cpu(INPUTS[0], "-n", "4,8", "--json", self.out, "--resume")
        self.assertEqual(len(read(self.out)["rows"]), 2)
        self.assertTrue(read(self.out)["complete"])

    def test_hosts_and_revisions_are_all_named(self):
        first = self.shard("a.json", INPUTS[0])
        other = self.edited(first, "b.json", lambda d: d["context"].update(hostname="elsewhere"))
        host = read(first)["context"]["hostname"]
        document, _ = self.merge(first, other, first)
        self.assertEqual(document["context"]["hostname"], f"{host}, elsewhere")

    def test_tags_are_joined(self):
        tags = ({"night": "1", "driver": "580"}, {"night": "11", "driver": "580"}, {"note": "warm"}, {"night": "1"})
        first = self.shard("a.json", INPUTS[0])
        shards = [self.edited(first, f"{i}.json", lambda d, own=own: d["context"].update(tags=own))
                  for i, own in enumerate(tags)]
        document, _ = self.merge(*shards)
        self.assertEqual(document["context"]["tags"], {"night": "1, 11", "driver": "580", "note": "warm"})

    def test_other_calls_are_named_and_builds_of_a_plug_in_refused(self):
        one = self.shard("one.json", INPUTS[0], "--calls", 5)
        other = self.shard("other.json", INPUTS[1], "--calls", 6)
        document, result = self.merge(one, other)
        self.assertEqual(document["context"]["calls"], 5)
        self.assertIn("counts preparation for 6 calls", result.stderr)

        def plugin(document):
            document["context"]["protocol"]["plugin mine"] = "a" * 64

        def rebuilt(document):
            document["context"]["protocol"]["plugin mine"] = "b" * 64
            for row in document["rows"]:
                row["n"] = 16

        first = self.edited(one, "first.json", plugin)
        self.assertIn("plugin mine", self.merge(other, first)[0]["context"]["protocol"])
        second = self.edited(one, "second.json", rebuilt)
        result = self.spmmbench("merge", self.out, first, second)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertIn("plugin mine differs", result.stderr)

    def test_other_devices_are_refused_unless_forced(self):
        first = self.shard("a.json", INPUTS[0])
        other = self.edited(first, "b.json", lambda d: d["context"]["device"].update(name="another"))
        self.assert_one_line(self.spmmbench("merge", self.out, first, other), 5, "device.name differs")
        self.assertFalse(self.out.exists())
        self.merge(first, other, "--force")

    def test_bad_input_is_one_line_and_leaves_no_output(self):
        first = self.shard("a.json", INPUTS[0])
        self.assert_one_line(self.spmmbench("merge", self.out, first, "absent.json"), 1, "cannot be")
        bad = self.folder / "bad.json"
        for text, expected in (("{}", "expected a result document"),
                               ("[", "bad.json: no JSON: line 1, column 2: unexpected end of input; expected"),
                               ("", "bad.json: no JSON: line 1, column 1: unexpected end of input"),
                               ('{"schema_version": 9, "rows": []}', "schema version 9, expected 1"),
                               (first.read_text()[:1500], "bad.json")):
            bad.write_text(text)
            self.assert_one_line(self.spmmbench("merge", self.out, first, bad), 1, expected)
        for field, text in (("kernel", "?a"), ("kernel", "a?b=c&b=d"), ("reorder", "?a")):
            document = read(first)
            document["rows"][0][field] = text
            write(bad, document)
            self.assert_one_line(self.spmmbench("merge", self.out, first, bad), 1, f"{bad}: ")
        self.assertFalse(self.out.exists())
        self.assert_one_line(self.spmmbench("merge", first / "y", first), 1, "cannot be written: Not a dir")


if __name__ == "__main__":
    main()
