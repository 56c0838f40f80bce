#!/usr/bin/env python3
"""Whatever becomes of the outputs: what was measured is kept, and the exit code says what was not written."""

import json
import os
import pathlib
import subprocess
import threading

from cli_case import ENVIRONMENT, PROGRAM, QUICK, SMALL, CliCase, case_of, main, read, write

RUN = ("run", SMALL, "-n", "8,16", "-k", "cpu_csr", *QUICK)


class OutputTest(CliCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.json"

    def shell(self, redirections, *args):
        """`spmmbench ARGS REDIRECTIONS`; stderr is read unless redirected."""
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirections}', PROGRAM, *map(str, args)],
                              capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False)

    def assert_whole(self, path):
        document = read(path)
        self.assertTrue(document["complete"])
        self.assertEqual(len(document["rows"]), 2)

    def test_a_full_or_closed_standard_output_is_exit_code_1_everywhere(self):
        again = self.folder / "again.json"
        for out in (self.out, again):
            self.spmmbench(*RUN, "--json", out, "-q")
        for args in (["--version"], ["--help"], ["run", "--help"], ["list"], ["list", "schema"],
                     ["inspect", SMALL], ["inspect", SMALL, "--json"], ["show", self.out],
                     ["show", self.out, "--format", "csv"], ["compare", self.out, again],
                     ["compare", self.out, again, "--json", "-"], ["merge", self.folder / "m.json", self.out],
                     ["run", SMALL, "--dry-run", "-k", "cpu_csr"], [*RUN], [*RUN, "--json", "-"],
                     [*RUN, "--csv", "/dev/full", "-q"], [*RUN, "--jsonl"]):
            for redirection in (">/dev/full", ">&-"):
                with self.subTest(args=args, redirection=redirection):
                    result = self.shell(redirection, *args)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn("cannot be written: ", result.stderr)

    def test_a_run_that_cannot_begin_leaves_nothing_behind(self):
        for args in ((*RUN, "-q", "--json", self.out), (*RUN, "-q", "--csv", self.folder / "out.csv")):
            result = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', PROGRAM, *map(str, args)],
                                    capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False)
            self.assert_one_line(result, 1, "cannot be written: File too large")
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_run_that_cannot_begin_leaves_no_folder_behind(self):
        matrix, folders = self.folder / "a.mtx", ("new/a/out.json", "new/../out.json", "kept/new/out.json")
        matrix.write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")
        (self.folder / "kept").mkdir()
        there = sorted(self.folder.rglob("*"))
        for args in (*((*RUN, "-q", "--json", name, "--csv", "/proc/zz") for name in folders),
                     (*RUN, "-q", "--save-failing", "new/saved", "--json", "/proc/zz"),
                     ("merge", "new/out.json", "none.json"), ("convert", matrix, "new/a.npy", "--prune", "2:4")):
            with self.subTest(args):
                self.assertEqual(self.spmmbench(*args, cwd=self.folder).returncode, 1)
                self.assertEqual(sorted(self.folder.rglob("*")), there)
        for name in folders:
            self.assertEqual(self.spmmbench(*RUN, "-q", "--json", name, cwd=self.folder).returncode, 0)
            self.assert_whole(self.folder / name)

    def test_two_outputs_are_two_files(self):
        self.spmmbench(*RUN, "--json", self.out, "-q")
        both = self.folder / "both"
        for command in ((*RUN, "-q", "--json", both, "--csv", f"{self.folder}/./both"),
                        ("compare", self.out, self.out, "--json", both, "--junit", f"{self.folder}/./both")):
            self.assert_one_line(self.spmmbench(*command), 1,
                                 f"{both} and {self.folder}/./both: expected two files to write, got one")
            self.assertFalse(both.exists())
        (self.folder / "link").symlink_to(self.out)
        self.assert_one_line(self.spmmbench("merge", self.out, self.out, "--csv", self.folder / "link"), 1, "link")
        self.assert_one_line(self.spmmbench("compare", self.out, self.out, "--json", "-", "--junit", "-"), 1,
                             "standard output: expected one of --json - and --junit -")

    def test_a_folder_whose_name_was_forgotten_is_no_option(self):
        for option in ("--save-failing", "--cache"):
            for value, expected in (("--json", f"{option}: expected a folder, got '--json'"), ("-", "got '-'"),
                                    ("", f"{option}: expected a folder, got an empty name")):
                with self.subTest(option=option, value=value):
                    result = self.spmmbench(*RUN, "-q", option, value, self.out, cwd=self.folder)
                    self.assert_one_line(result, 1, expected)
                    self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_folder_that_cannot_be_made_is_named_before_anything_is_measured(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        for option, *more in (("--save-failing",), ("--cache",), ("--save-failing", "--dry-run"), ("--cache", "--dry-run")):
            for folder in ("/proc/x", blocked, blocked / "saved"):
                result = self.spmmbench(*RUN, "-q", option, folder, "--json", self.out, *more)
                self.assert_one_line(result, 1, f"{option} {folder}: cannot be written: ")
                self.assertEqual(list(self.folder.iterdir()), [blocked])
        saved = self.folder / "new/saved"
        result = self.spmmbench(*RUN, "-q", "--save-failing", saved)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(saved.is_dir())
        result = self.spmmbench(*RUN, "-q", "--cache", self.folder / "unused/cache")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse((self.folder / "unused").exists())

    def test_a_missing_temporary_folder_is_named(self):
        result = subprocess.run([PROGRAM, *RUN, "-q", "--json", "-"], env={**ENVIRONMENT, "TMPDIR": "/no/such"},
                                capture_output=True, text=True, timeout=120, check=False)
        self.assert_one_line(result, 1, "TMPDIR: /no/such: expected a folder")

    def test_closed_descriptors_cost_no_row(self):
        for redirections in (">&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"):
            with self.subTest(redirections):
                result = self.shell(redirections, *RUN, "--json", self.out)
                self.assertEqual(result.returncode, 0 if redirections == "2>/dev/full" else 1)
                self.assert_whole(self.out)
        self.assertEqual(self.shell("<&- >&- 2>&-", *RUN, "--json", self.out, "-q").returncode, 0)
        self.assert_whole(self.out)

    def test_a_reader_that_leaves_costs_no_row(self):
        result = self.shell("| true", *RUN, "--json", self.out)
        self.assertEqual(result.returncode, 0, "of true")
        self.assert_whole(self.out)

    def test_an_output_is_no_input(self):
        self.spmmbench(*RUN, "--json", self.out, "-q")
        before = self.out.read_bytes()
        matrix = self.folder / "a.mtx"
        matrix.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n")
        link = self.folder / "link.json"
        link.symlink_to(matrix)
        config, library = self.folder / "config.toml", self.folder / "libmine.so"
        config.write_text("[run]\nquiet = true\n")
        library.write_bytes(b"a plug-in")
        for args in (("run", matrix, "-k", "cpu_csr", *QUICK, "-q", "--json", link),
                     (*RUN, "--config", config, "--json", config), (*RUN, f"--config={config}", "--csv", config),
                     ("run", SMALL, "-k", f"cpu_csr,{library}:strips?tile=8", *QUICK, "-q", "--json", library),
                     ("run", f"@{self.out}", "-k", "cpu_csr", *QUICK, "-q", "--csv", self.out),
                     ("merge", self.folder / "m", self.out, "--csv", self.out), ("compare", "--calibrate", self.out, self.out),
                     ("compare", self.out, self.out, "--json", self.out)):
            self.assert_one_line(self.spmmbench(*args), 1, "is the input")
        self.assertEqual(self.out.read_bytes(), before)
        self.assertEqual(matrix.read_text().count("\n"), 3)
        self.assertEqual((config.read_text(), library.read_bytes()), ("[run]\nquiet = true\n", b"a plug-in"))
        weights = self.folder / "w.npy"
        self.spmmbench("generate", SMALL, weights)
        before = weights.read_bytes()
        result = self.spmmbench("convert", weights, self.folder / "new/../w.npy", "--prune", "magnitude:0.9")
        self.assert_one_line(result, 1, "is the input")
        self.assertEqual(weights.read_bytes(), before)
        self.assertFalse((self.folder / "new").exists())

    def test_no_input_of_another_shard_or_list_is_an_output(self):
        header = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n"
        for name in ("a.mtx", "b.mtx"):
            (self.folder / name).write_text(header)
        (self.folder / "outer.txt").write_text("@inner.txt\n")
        for name in ("inner.txt", "o.json.part", "o.json.journal"):
            (self.folder / name).write_text("a.mtx\n")
        self.spmmbench("generate", SMALL, self.folder / "m.npy")
        data = (self.folder / "m.npy").read_bytes()[-8000:]
        text = '{"w":{"dtype":"F32","shape":[50,40],"data_offsets":[0,8000]}}'.encode()
        (self.folder / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        (self.folder / "l.npy").symlink_to("m.safetensors")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        run = ("run", "-k", "cpu_csr", *QUICK, "-q")
        for args in ((*run, "a.mtx", "b.mtx", "--shard", "1/2", "--json", "b.mtx"), (*run, "@outer.txt", "--csv", "inner.txt"),
                     (*run, "@o.json.part", "--json", "o.json"), (*run, "@o.json.journal", "--json", "o.json"),
                     ("convert", "m.safetensors:w", "l.npy")):
            self.assert_one_line(self.spmmbench(*args, cwd=self.folder), 1, "expected another")
            self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_an_output_is_not_what_another_is_first_written_as(self):
        for first, second, expected in (("o.json", "o.json.part", "got one: each is first written as NAME.part"),
                                        ("o.json", "o.json.journal", "is the journal of o.json"),
                                        ("o.json", "o.json.journal.part", "is the journal of o.json")):
            result = self.spmmbench(*RUN, "-q", "--json", first, "--csv", second, cwd=self.folder)
            self.assert_one_line(result, 1, expected)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_file_of_the_user_is_not_taken_for_a_left_over(self):
        part = self.folder / "out.json.part"
        part.write_text("precious")
        for name in ("out.json.part", "out.json.journal.part"):
            (self.folder / name).write_text("precious")
            result = self.spmmbench(*RUN, "-q", "--json", self.out)
            self.assert_one_line(result, 1, f"{name}: is in the way, and no run has left it: move or remove it")
            self.assertEqual((self.folder / name).read_text(), "precious")
            (self.folder / name).unlink()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_run_without_a_row_leaves_the_earlier_document(self):
        self.run_cpu(SMALL, "--json", self.out, "-q")
        before = self.out.read_bytes()
        bad = self.folder / "bad.mtx"
        bad.write_text("no matrix")
        result = self.run_cpu(bad, "--json", self.out, "-q")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{self.out}: left as it was, as this run has no row", result.stderr)
        self.assertEqual(self.out.read_bytes(), before)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["bad.mtx", "out.json"])

    def test_links_are_followed_folders_made_and_modes_kept(self):
        target = self.folder / "kept.json"
        target.write_text("")
        target.chmod(0o640)
        link = self.folder / "link.json"
        link.symlink_to("kept.json")
        self.spmmbench(*RUN, "--json", link, "--csv", self.folder / "a/b/out.csv", "-q")
        self.assertTrue(link.is_symlink())
        self.assert_whole(target)
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)
        self.assertEqual(len((self.folder / "a/b/out.csv").read_text().splitlines()), 3)
        victim = self.folder / "victim"
        victim.write_text("precious")
        (self.folder / "new.json.part").symlink_to(victim)
        self.assert_one_line(self.spmmbench(*RUN, "--json", self.folder / "new.json", "-q"), 1, "is in the way")
        self.assertEqual(victim.read_text(), "precious")

    def test_devices_and_pipes_are_written_as_streams(self):
        self.assertEqual(self.spmmbench(*RUN, "--json", "/dev/null", "-q").returncode, 0)
        result = self.spmmbench(*RUN, "--json", "/dev/stdout")
        self.assertEqual(len(json.loads(result.stdout)["rows"]), 2)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.assert_one_line(self.spmmbench(*RUN, "--json", pipe, "-q"), 1, "nobody reads this pipe")
        texts = []
        reader = threading.Thread(target=lambda: texts.append(pipe.read_text()))
        reader.start()
        with self.folder.joinpath("ready").open("w"):
            while self.spmmbench(*RUN, "--json", pipe, "-q").returncode == 1:  # until the reader is there
                pass
        reader.join(60)
        self.assertEqual(len(json.loads(texts[0])["rows"]), 2)

    def test_rows_outlive_a_stream_that_is_full(self):
        result = self.spmmbench(*RUN, "--json", "/dev/full", "-q")
        self.assert_one_line(result, 1, "No space left on device; the rows are kept in ")
        kept = pathlib.Path(result.stderr.split()[-1])
        shown = json.loads(self.spmmbench("show", kept, "--format", "json").stdout)
        self.assertEqual(len(shown["rows"]), 2)
        kept.unlink()
        kept.parent.rmdir()


class EarlierRunTest(CliCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.json"
        self.journal = self.folder / "out.json.journal"
        self.matrix = self.folder / "a.mtx"
        self.write_matrix("2 2 2\n1 1 1\n2 2 1\n")

    def write_matrix(self, text):
        self.matrix.write_text("%%MatrixMarket matrix coordinate real general\n" + text)

    def run_it(self, *args, code=0):
        result = self.run_cpu(self.matrix, SMALL, "-q", "--json", self.out, *args)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def leave_a_journal(self):
        """As a kill after two of four cases leaves it."""
        slow = subprocess.Popen([PROGRAM, "run", self.matrix, SMALL, "-n", "8,16", "-k", "cpu_csr", "--device", "-1",
                                 "--no-baselines", "--noise", "0", "--max-samples", "1000000", "--max-seconds", "0.3",
                                 "-q", "--json", self.out], env=ENVIRONMENT)
        while not self.journal.exists() or self.journal.read_text().count("\n") < 4:
            self.assertIsNone(slow.poll())
        slow.kill()
        slow.communicate()
        return ("--noise", "0", "--min-samples", "10", "--max-samples", "1000000", "--max-seconds", "0.3")

    def test_an_earlier_run_is_given_up_only_when_that_is_asked_for(self):
        self.leave_a_journal()
        before = self.journal.read_bytes()
        self.assert_one_line(self.run_it(code=1), 1, "--resume goes on with it, --overwrite gives it up")
        self.assertEqual(self.journal.read_bytes(), before)
        self.run_it("--overwrite")
        self.assertEqual(len(read(self.out)["rows"]), 2)
        self.assertFalse(self.journal.exists())

    def test_resume_keeps_the_context_and_tags_and_calls_that_it_is_not_given(self):
        self.spmmbench(*RUN, "--json", self.out, "--tag", "night=1", "--tag", "driver=580", "--calls", 50, "-q")
        document = read(self.out)
        document["rows"].pop()
        write(self.out, document)
        before = document["context"]
        before |= {"started_utc": "2020-01-01T00:00:00Z", "copy_gb_per_s": 12.5}
        write(self.out, document)
        result = self.spmmbench(*RUN, "--json", self.out, "--resume", "--tag", "night=2")
        self.assertIn("preparation counted for 50 calls", result.stdout)
        document = read(self.out)
        context = document["context"]
        self.assertEqual(context["tags"], {"night": "2", "driver": "580"})
        self.assertEqual(context["calls"], 50)
        for name in ("started_utc", "argv", "copy_gb_per_s"):
            self.assertEqual(context[name], before[name], name)
        measured = document["rows"][-1]
        self.assertAlmostEqual(measured["bound_us"], measured["compulsory_bytes"] / 12.5e3)
        self.assertTrue(all(row["in_all_us"] for row in document["rows"]))
        self.assertEqual(len(document["rows"]), 2)

    def test_resume_with_other_threads_is_refused(self):
        self.run_it("-n", "8")
        result = self.run_cpu(self.matrix, SMALL, "-n", "8,16", "-q", "--json", self.out, "--resume",
                              env={**ENVIRONMENT, "OMP_NUM_THREADS": "2"})
        self.assert_one_line(result, 5, f"{self.out}: was measured with threads '1', this run has '2': name another")

    def test_a_replaced_matrix_is_measured_again(self):
        self.run_it("-n", "8,16")
        before = {case_of(row): row for row in read(self.out)["rows"]}
        self.write_matrix("2 2 1\n1 2 1\n")
        result = self.run_it("-n", "8,16", "--resume")
        self.assertIn("another matrix than in 2 recorded rows, which the run gives up", result.stderr)
        after = {case_of(row): row for row in read(self.out)["rows"]}
        self.assertEqual(after.keys(), before.keys())
        for key, row in after.items():
            replaced = key[0] == str(self.matrix)
            self.assertEqual(row["matrix"]["sha256"] != before[key]["matrix"]["sha256"], replaced)
            self.assertEqual(row["hot"] != before[key]["hot"], replaced)
        self.assertEqual(self.run_it("-n", "8,16", "--resume").stderr, "")

    def test_a_matrix_is_known_by_its_content_and_name_and_its_path_is_told(self):
        self.run_it("-n", "8")
        before = read(self.out)["rows"]
        path = self.matrix
        for other in (f"{path.parent}/./{path.name}", os.path.relpath(path)):
            result = self.run_cpu(other, SMALL, "-n", "8", "-q", "--json", self.out, "--resume")
            self.assertEqual(result.stderr, "")
            self.assertEqual([row["hot"] for row in read(self.out)["rows"]], [row["hot"] for row in before], other)
        moved = self.folder / "elsewhere" / path.name
        moved.parent.mkdir()
        path.rename(moved)
        self.run_cpu(moved, SMALL, "-n", "8,16", "-q", "--json", self.out, "--resume")
        document = read(self.out)
        self.assertEqual(len(document["rows"]), 4)
        self.assertEqual({row["matrix"]["source"] for row in document["rows"]}, {str(moved), SMALL})
        self.assertEqual({answer["source"] for answer in document["answers"]}, {str(moved), SMALL})
        path = moved
        moved = moved.rename(moved.with_name("renamed.mtx"))
        result = self.run_cpu(moved, SMALL, "-n", "8,16", "-q", "--json", self.out, "--resume")
        self.assertEqual(result.stderr, f"spmmbench: {moved}: was called {path.stem}, and its rows have the new name\n")
        renamed = read(self.out)
        self.assertEqual([row["matrix"]["name"] for row in renamed["rows"]].count("renamed"), 2)
        self.assertCountEqual([row["hot"] for row in renamed["rows"]], [row["hot"] for row in document["rows"]])
        self.assertTrue(renamed["complete"])
        moved = moved.rename(path)
        self.run_cpu(moved, SMALL, "-n", "8,16", "-q", "--json", self.out, "--resume")
        twice = self.folder / "twice.json"
        copy = self.folder / "copy" / path.name
        copy.parent.mkdir()
        copy.write_bytes(moved.read_bytes())
        result = self.run_cpu(moved.parent, f"{moved.parent}/.", copy, "-n", "8", "--json", twice)
        self.assertEqual(len(read(twice)["rows"]), 1)
        self.assertIn(f"{copy}: is the matrix of {moved} and measured once", result.stderr)
        compared = self.spmmbench("compare", self.out, twice, "--allow-missing")
        self.assertNotIn(compared.returncode, (1, 5), compared.stderr)

    def test_a_damaged_row_is_named_and_measured_again(self):
        self.run_it("-n", "8,16,32", "--csv", self.folder / "out.csv")
        self.out.unlink()
        csv = self.folder / "out.csv"
        self.run_cpu(self.matrix, "-n", "8,16,32", "-q", "--csv", csv, "--overwrite")
        journal = self.folder / "out.csv.journal"
        lines = journal.read_text().splitlines(keepends=True)
        lines[3] = lines[3].replace('"n":16', '"n":61')
        journal.write_text("".join(lines))
        shown = self.spmmbench("show", journal)
        self.assertIn(f"{journal}:4: damaged: the checksum does not match\n", shown.stderr)
        result = self.run_cpu(self.matrix, "-n", "8,16,32", "-q", "--csv", csv, "--resume")
        self.assert_one_line(result, 0, f"{journal}:4: damaged")
        self.assertEqual(len(csv.read_text().splitlines()), 4)

    def test_a_csv_alone_is_gone_on_with(self):
        csv = self.folder / "out.csv"
        for n, rows in ((8, 1), (16, 2)):
            self.run_cpu(SMALL, "-n", n, "-q", "--csv", csv, "--resume")
            self.assertEqual(len(csv.read_text().splitlines()), 1 + rows)
        self.run_cpu(SMALL, "-n", 8, "-q", "--csv", csv)
        self.assertEqual(len(csv.read_text().splitlines()), 2)

    def test_rows_of_another_build_are_refused_with_the_way_on(self):
        self.run_it()
        document = read(self.out)
        document["context"]["git_revision"] = "0123"
        self.out.write_text(json.dumps(document))
        before = self.out.read_bytes()
        self.assert_one_line(self.run_it("--resume", code=5), 5, "was measured with git_revision '0123', this run has '")
        self.assertEqual(self.out.read_bytes(), before)

    def test_nothing_measured_is_no_success(self):
        for args in ((), ("--json", self.out), ("--json", self.out, "--resume"), ("--json", self.out, "--retry-failed")):
            result = self.spmmbench("run", SMALL, "-k", "auto", *QUICK, "-q", *args)
            self.assert_one_line(result, 4, "nothing was measured")
        self.run_cpu(SMALL, "-q", "--json", self.out, "--resume")
        result = self.spmmbench("run", SMALL, "-k", "auto", *QUICK, "-q", "--json", self.out, "--resume")
        self.assertEqual((result.returncode, result.stderr), (0, ""), "the document has a measured row")

    def test_only_what_is_there_is_retried(self):
        for output in ("--json", "--csv"):
            result = self.run_cpu(SMALL, "-q", output, self.folder / "typo", "--retry-failed")
            self.assert_one_line(result, 1, "typo has no rows of an earlier run")
        self.assertFalse(list(self.folder.glob("typo*")))
        self.run_it()
        self.run_it("--retry-failed")
        csv = self.folder / "out.csv"
        self.run_cpu(SMALL, "-q", "--csv", csv)
        self.assertEqual(self.run_cpu(SMALL, "-q", "--csv", csv, "--retry-failed").returncode, 0)


if __name__ == "__main__":
    main()
