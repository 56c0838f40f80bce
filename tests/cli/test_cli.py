#!/usr/bin/env python3
"""`spmmbench list` and `run` on the CPU: output and exit codes."""

import array
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time

from cli_case import ENVIRONMENT, PROGRAM, QUICK, SMALL, SOURCE, CliCase, main, read

DATA = SOURCE / "data"
COMMANDS = ("run", "show", "list", "inspect", "convert", "generate", "compare", "merge")


class ListTest(CliCase):
    def test_text_and_json_name_the_same_things(self):
        text = self.spmmbench("list").stdout
        sections = self.spmmbench("list", "--json")
        sections = json.loads(sections.stdout)
        self.assertEqual(
            list(sections), ["kernels", "formats", "reorderings", "generators", "devices"]
        )
        for title, entries in sections.items():
            self.assertRegex(text, rf"(?m)^{title}$")
            for entry in entries:
                self.assertRegex(text, rf"(?m)^  {re.escape(entry['name'])} ")
                self.assertTrue(entry["summary"])
        self.assertIn("cpu_csr", [kernel["name"] for kernel in sections["kernels"]])

    def test_list_shows_one_section_alone(self):
        text = self.spmmbench("list", "reorderings").stdout
        self.assertTrue(text.startswith("reorderings\n  degree "), text)
        self.assertNotIn("kernels", text.splitlines())

    def test_every_command_has_help_and_the_version_names_its_revision(self):
        self.assertRegex(self.spmmbench("--version").stdout, r"^\d+\.\d+\.\d+ \(.+\)\n$")
        overview = self.spmmbench("--help").stdout
        for command in COMMANDS:
            self.assertIn(command, overview)
            result = self.spmmbench(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Usage:", result.stdout)


    def test_every_help_has_examples_that_run_and_exit_codes(self):
        (self.folder / "data").mkdir()  # those that examples name: another test measures all
        for name in ("fem2d_plate.mtx.gz", "fem3d_elasticity.mtx.gz"):
            os.symlink(DATA / name, self.folder / "data" / name)
        os.symlink(SOURCE / "results", self.folder / "results")
        for command in COMMANDS:
            text = self.spmmbench(command, "--help").stdout
            examples = re.findall(r"^  (spmmbench .+)$", text.split("Examples:")[1], re.MULTILINE)
            self.assertTrue(examples, command)
            self.assertRegex(text.split("Exit codes:")[1], r"(?m)^  0 .+\n  1 .+")
            for example in examples:
                words = ["8" if word == "64:512:x2" else word for word in shlex.split(example)[1:]]
                if words[0] == "run":
                    words += [*QUICK, *([] if "-n" in words else ["-n", "8"])]
                with self.subTest(example=example):
                    result = self.spmmbench(*words, cwd=self.folder)
                    # One run of a side is seldom enough to tell.
                    self.assertIn(result.returncode, (0, 6) if command == "compare" else (0,), result.stderr)


class RunTest(CliCase):
    def test_the_bundled_matrices_are_measured_and_correct(self):
        out, csv = self.folder / "out.json", self.folder / "out.csv"
        result = self.run_cpu(DATA, "-n", "8,16", "--json", out, "--csv", csv)
        self.assertEqual(result.returncode, 0, result.stderr)
        matrices = sorted(path.name[: -len(".mtx.gz")] for path in DATA.glob("*.mtx.gz"))
        document = read(out)
        self.assertEqual(sorted({row["matrix"]["name"] for row in document["rows"]}), matrices)
        self.assertEqual(len(document["rows"]), 2 * len(matrices))
        for row in document["rows"]:
            self.assertEqual((row["status"], row["precision"]), ("ok", "fp16"))
            self.assertLessEqual(row["verify"]["error_over_bound"], 1)
            self.assertEqual(row["hot"]["n"], len(row["hot"]["samples_us"]))
        self.assertEqual(len(csv.read_text().splitlines()), 1 + len(document["rows"]))
        for name in matrices:
            self.assertRegex(result.stdout, rf"(?m)^{name}: \d+ x \d+, \d+ nonzeros, N = 8$")
        self.assertRegex(result.stdout, r"(?m)^\* cpu_csr +fp16 ")
        self.assertIn(f"geometric means over {len(matrices)} matrices", result.stdout)
        self.assertIn(f"[{len(document['rows'])}/{len(document['rows'])}]", result.stderr)

    def test_status_goes_to_stderr_and_quiet_is_quiet(self):
        result = self.run_cpu(SMALL, "--quiet")
        self.assertEqual((result.stdout, result.stderr), ("", ""))

    def test_a_quiet_run_says_in_one_line_what_failed(self):
        faults = os.environ.get("SPMMBENCH_FAULTS")
        if not faults:
            self.skipTest("SPMMBENCH_FAULTS is not set")
        for kernels, code, said in (("planted_throw", 4, "1 of 1 case failed or wrong, the first: "),
                                    ("cpu_csr,planted_throw,planted_wrong", 2, "2 of 3 cases failed or wrong, the first: ")):
            for isolation in ((), ("--isolate",)):
                result = subprocess.run([faults, "run", SMALL, "-k", kernels, "-n", "8", *QUICK, "-q", *isolation],
                                        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120)
                self.assertEqual(result.stdout, "")
                self.assert_one_line(result, code, f"spmmbench: {said}{SMALL} n=8 fp16 planted_throw: failed: ")

    def test_the_command_of_a_row_measures_it_again(self):
        out, again = self.folder / "out.json", self.folder / "again.json"
        self.run_cpu(SMALL, "-n", "3,5", "--precision", "tf32", "--reorder", "degree", "--seed", "7",
                     "--b-layout", "col", "--c-type", "bf16", "--json", out)
        row = read(out)["rows"][-1]
        command = row["command"].replace("spmmbench", str(PROGRAM), 1)
        subprocess.run(f"{command} --json {again} -q", shell=True, check=True, env=ENVIRONMENT)
        repeated = read(again)["rows"]
        self.assertEqual(len(repeated), 1)
        for field in ("verify", "command", "c_type", "layout", "reorder"):
            self.assertEqual(repeated[0][field], row[field])

    def test_a_list_names_inputs(self):
        (self.folder / "list").write_text(f"# two\n{SMALL}\n\n{DATA / 'fem2d_plate.mtx.gz'}\n")
        out = self.folder / "out.json"
        self.run_cpu(f"@{self.folder / 'list'}", "--json", out)
        self.assertEqual(len(read(out)["rows"]), 2)


    def test_a_list_does_not_swallow_the_path_that_follows(self):
        self.assertEqual(self.spmmbench("run", "-k", "cpu_csr", "-x", "rsh", SMALL, *QUICK).returncode, 0)
        values = self.folder / "a.bin"
        values.write_bytes(array.array("f", [1.0] * 12).tobytes())
        result = self.run_cpu("--dims", 3, 4, values)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 x 4", result.stdout)

    def test_json_and_csv_on_standard_output(self):
        result = self.run_cpu(SMALL, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(json.loads(result.stdout)["rows"]), 1)
        result = self.run_cpu(SMALL, "--csv", "-")
        self.assertEqual(len(result.stdout.splitlines()), 2)
        for args in (("--csv", "-"), ("--jsonl",), ("--resume",)):
            result = self.run_cpu(SMALL, "--json", "-", *args, "-q")
            self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        base, new = self.folder / "base.json", self.folder / "new.json"
        for out in (base, new):
            self.run_cpu(SMALL, "--json", out, "-q")
        self.assertIn("cases", json.loads(self.spmmbench("compare", base, new, "--json", "-").stdout))

    def test_row_orderings_are_named_by_globs_too(self):
        result = self.run_cpu(SMALL, "-n", "8", "--reorder", "none,degr*", "--dry-run")
        self.assertIn(f"{SMALL} n=8 fp16 cpu_csr [degree]\n2 cases", result.stdout)
        result = self.run_cpu(SMALL, "--reorder", "zz*")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--reorder zz*: no row ordering matches", result.stderr)

    def test_a_dry_run_names_the_cases_and_writes_nothing(self):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, "-n", "8,16", "--reorder", "none,degree", "--json", out, "--dry-run")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[-1], "4 cases of 1 input on the CPU")
        self.assertIn(f"{SMALL} n=16 fp16 cpu_csr [degree]", lines)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.run_cpu(SMALL, "-n", "8", "--json", out)
        result = self.run_cpu(SMALL, "-n", "8,16", "--json", out, "--dry-run", "--resume")
        missing = f"{SMALL} n=16 fp16 cpu_csr\n1 case of 1 input on the CPU\n"
        self.assertEqual(result.stdout, missing)
        csv = self.folder / "out.csv"
        self.run_cpu(SMALL, "-n", "8", "--csv", csv)
        result = self.run_cpu(SMALL, "-n", "8,16", "--csv", csv, "--dry-run", "--resume")
        self.assertEqual(result.stdout, missing)
        for name in ("empty.json", "empty.json.journal"):
            (self.folder / name).touch()
            result = self.run_cpu(SMALL, "-n", "16", "--json", self.folder / "empty.json", "--dry-run", "--resume")
            self.assertEqual(result.stdout, missing, result.stderr)

    def test_a_dry_run_names_what_the_run_measures_where_b_is_given(self):
        b, out = self.folder / "b.npy", self.folder / "out.json"
        self.spmmbench("generate", "uniform?rows=40&cols=12", b)
        raw = self.folder / "b.40x6.bin"
        self.spmmbench("generate", "uniform?rows=40&cols=6", raw)
        esmm = "gen:esmm?size=16&n=24"
        for args, n in (((SMALL, "--b", b), 12), ((SMALL, "--b", raw), 6), ((esmm, "-n", 24), 24), ((esmm,), 24)):
            with self.subTest(args=args):
                planned = self.run_cpu(*args, "--dry-run")
                self.assertEqual(planned.stdout, f"{args[0]} n={n} fp16 cpu_csr\n1 case of 1 input on the CPU\n")
                self.run_cpu(*args, "-q", "--json", out)
                self.assertEqual([row["n"] for row in read(out)["rows"]], [n])
        self.assert_one_line(self.run_cpu(SMALL, "--b", "no_such.npy", "--dry-run"), 1, "no_such.npy: cannot open")

    def test_kernels_in_turns_give_a_row_each_with_the_samples_of_all_turns(self):
        out = self.folder / "out.json"
        result = self.spmmbench("run", SMALL, "-n", 8, "-k", "cpu_csr,eigen_csr", "--device", -1, "--min-samples", 4, "--max-samples", 5,
                                "--max-seconds", 20, "--no-baselines", "--interleave", "-q", "--json", out)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        document = read(out)
        self.assertEqual(document["context"]["protocol"]["interleaved"], "yes")
        rows = [row for row in document["rows"] if row["precision"] == "fp16"]
        self.assertEqual({row["kernel"] for row in rows}, {"cpu_csr", "eigen_csr"})
        for row in rows:
            self.assertGreaterEqual(row["hot"]["n"], 4 * int(document["context"]["protocol"]["min_samples"]))

    def test_what_is_named_twice_is_measured_once(self):
        out = self.folder / "out.json"
        repeated = (SMALL, SMALL, "-n", "8,8,4:8:x2", "--precision", "fp16,fp32,fp16", "--reorder", "none,degree,degree,none")
        planned = self.run_cpu(*repeated, "--dry-run").stdout.splitlines()
        self.assertEqual(planned[-1], "8 cases of 1 input on the CPU")
        self.assertEqual(len(set(planned)), 9)
        self.run_cpu(*repeated, "-q", "--json", out)
        self.assertEqual(len(read(out)["rows"]), 8)
        empty = self.run_cpu(SMALL, "--dry-run", "--shard", "2/2")
        self.assertIn("--shard 2/2: has none of the inputs", empty.stderr)
        half = self.run_cpu(*repeated, "--dry-run", "--shard", "2/2")
        self.assertEqual(half.stdout, "0 cases of 0 inputs on the CPU\n")

    def test_a_dry_run_refuses_what_the_run_refuses(self):
        good = self.folder / "good.mtx"
        good.write_text("%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1.5\n")
        files = {"kind.txt": "1", "broken.mtx": "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 2 1\n",
                 "headerless.bin": "1234", "empty.npz": ""}
        for name, text in files.items():
            bad = self.folder / name
            bad.write_text(text)
            refused = [self.run_cpu(good, bad, "-n", 4, "-q", *more) for more in ((), ("--dry-run",))]
            self.assertEqual([result.returncode for result in refused], [1, 1], name)
            self.assertEqual(refused[0].stderr, refused[1].stderr)
            self.assertIn(f"{good} n=4 fp16 cpu_csr\n1 case of 2 inputs", refused[1].stdout)
        b = self.folder / "b.npy"
        self.spmmbench("generate", "uniform?rows=3&cols=4", b)
        for args in (("--b", b), ("--prune", "magnitude:0.5"), ("--json", self.folder / "good.mtx" / "out.json"),
                     ("--save-failing", good)):
            refused = [self.run_cpu(good, *args, *more) for more in ((), ("--dry-run",))]
            self.assertEqual([result.returncode for result in refused], [1, 1], args)
            self.assertEqual(refused[0].stderr.splitlines()[-1], refused[1].stderr.splitlines()[-1])

    def test_a_dry_run_refuses_a_tensor_that_is_no_matrix(self):
        header = json.dumps({"w": {"dtype": "I8", "shape": [2, 2], "data_offsets": [0, 4]}}).encode()
        weights = self.folder / "w.safetensors"
        weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        for more in ((), ("--dry-run",)):
            result = self.run_cpu(f"{weights}:w", "-n", "8", *more)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("w.safetensors:w: expected F32, F16, BF16, F64, F8_E4M3 or F8_E5M2, got 'I8'", result.stderr)

    def test_a_dry_run_shows_no_control_characters(self):
        matrix = os.fsencode(self.folder) + b"/\x1b[31m\xff.mtx"
        pathlib.Path(os.fsdecode(matrix)).write_text("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n")
        result = self.run_cpu(os.fsdecode(matrix), "-n", "8", "--dry-run")
        self.assertEqual(result.stdout.splitlines()[0], f"{self.folder}/\\x1b[31m\\xff.mtx n=8 fp16 cpu_csr")

    def test_repeated_launches_are_compared(self):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, "--json", out, "--repeat-check")
        self.assertIs(read(out)["rows"][0]["bit_identical"], True)
        self.assertRegex(result.stdout, r"repeats")
        self.run_cpu(SMALL, "--json", out)
        self.assertIsNone(read(out)["rows"][0]["bit_identical"])

    def test_a_row_order_that_the_cache_had_counts_as_if_it_was_computed(self):
        out, cache = self.folder / "out.json", self.folder / "cache"
        rows = []
        for _ in range(2):
            self.run_cpu(SMALL, "-k", "cpu_csr", "--no-baselines", "--reorder", "rcm", "--json", out, "--cache", cache,
                         "--overwrite")
            rows += read(out)["rows"]
        computed, kept = rows
        self.assertEqual((computed["kept_stages"], kept["kept_stages"]), ([], ["reorder"]))
        self.assertEqual(computed["stages_ms"]["reorder"], kept["stages_ms"]["reorder"])

    def test_the_time_of_several_calls_is_measured(self):
        # tests/host/measure/calls_curve_test.cpp compares it with the sum, on a clock of its own.
        out = self.folder / "out.json"
        start = time.monotonic()
        self.run_cpu("gen:uniform?rows=20000&cols=20000", "-k", "cpu_csr", "--no-baselines", "-n", "64", "--json", out,
                     "--calls-curve", "1,30", "--isolate")
        whole_us = 1e6 * (time.monotonic() - start)
        (row,) = read(out)["rows"]
        self.assertEqual(list(row["calls_us"]), ["1", "30"])
        for calls, us in row["calls_us"].items():
            self.assertGreater(us, int(calls) * row["metrics"]["least_us"])
        # Of three times or more, two are at least as long as their median.
        self.assertLess(2 * sum(row["calls_us"].values()), whole_us)
        self.assertEqual(row["a_memory"], "host")
        for wrong in (("--calls-curve", "1"), ("--calls-curve", "1,x"), ("--a-memory", "gpu")):
            result = self.run_cpu(SMALL, *wrong)
            self.assert_one_line(result, 1, wrong[-2])

    def test_a_kernel_of_the_cpu_has_a_on_the_host_whatever_was_asked_for(self):
        out = self.folder / "out.json"
        self.run_cpu(SMALL, "-k", "cpu_csr", "--no-baselines", "-n", "8", "--json", out, "--a-memory", "cuda")
        self.assertEqual([row["a_memory"] for row in read(out)["rows"]], ["host"])

    def test_nothing_is_uploaded_if_a_lies_on_the_gpu(self):
        # esmm and rabbit read A on the host, the others do not.
        kernels = "csr_row_split,cusparse_csr_default,async_wcsr,jagged_slices?order=search,auto,esmm,rsh?order=rabbit"
        for memory in ("host", "cuda"):
            out = self.folder / f"{memory}.json"
            self.spmmbench("run", SMALL, "-k", kernels, "--no-baselines", "-n", "8,40", "--precision", "fp32,fp16", "--reorder",
                           "none,degree", "--max-seconds", 0.01, "--json", out, "--a-memory", memory)
            rows = [row for row in read(out)["rows"] if row["status"] != "skipped"]
            if not rows:
                self.skipTest("no GPU")
            for row in rows:
                with self.subTest(kernel=row["kernel"], memory=memory):
                    self.assertEqual((row["status"], row["a_memory"], row["exact"]["passed"]), ("ok", memory, True))
                    if memory == "cuda" and row["kernel"] in ("csr_row_split", "cusparse_csr_default"):
                        self.assertNotIn("upload", row["stages_ms"])

    def test_what_a_wrong_case_computed_is_saved_and_can_be_run_again(self):
        faults = os.environ.get("SPMMBENCH_FAULTS")
        if not faults:
            self.skipTest("SPMMBENCH_FAULTS is not set")
        out, saved = self.folder / "out.json", self.folder / "saved"
        for isolation in ((), ("--isolate",)):
            shutil.rmtree(saved, ignore_errors=True)
            subprocess.run([faults, "run", SMALL, "-k", "planted_wrong,cpu_csr", "-n", "8", "--reorder",
                            "degree", *QUICK, "-q", "--save-failing", saved, "--json", out, *isolation],
                           env=ENVIRONMENT, check=False, timeout=120)
            wrong = next(row for row in read(out)["rows"] if row["status"] == "wrong")
            folders = list(saved.iterdir())
            self.assertEqual(len(folders), 1)
            self.assertIn(str(folders[0]), wrong["reason"])
            again = self.folder / "again.json"
            result = self.run_cpu(folders[0] / "a.mtx", "--b", folders[0] / "b.npy", "--json", again)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(read(again)["rows"][0]["n"], 8)
            for name in ("got", "want"):
                self.assertTrue((folders[0] / f"{name}.npy").read_bytes().startswith(b"\x93NUMPY"))

    def test_a_wrong_case_that_cannot_be_saved_is_wrong(self):
        faults = os.environ.get("SPMMBENCH_FAULTS")
        if not faults:
            self.skipTest("SPMMBENCH_FAULTS is not set")
        out, saved = self.folder / "out.json", self.folder / "saved"
        command = [faults, "run", SMALL, "-k", "planted_wrong", "-n", "8", *QUICK, "-q", "--json", out,
                   "--save-failing", saved]
        subprocess.run(command, env=ENVIRONMENT, check=False, timeout=120)
        (case,) = saved.iterdir()
        shutil.rmtree(case)
        case.write_text("in the way of the folder of the case")
        for args in ((), ("--retry-failed",)):
            result = subprocess.run([*command, *args], env=ENVIRONMENT, check=False, timeout=120)
            self.assertEqual(result.returncode, 2)
            row = read(out)["rows"][0]
            self.assertEqual(row["status"], "wrong")
            self.assertIn("; could not be saved: ", row["reason"])

    def test_the_size_of_the_cache_can_be_given(self):
        out = self.folder / "out.json"
        self.run_cpu(SMALL, "--json", out, env={**ENVIRONMENT, "SPMMBENCH_CACHE_MIB": "3"})
        self.assertEqual(read(out)["context"]["device"]["l2_bytes"], 3 << 20)
        for bad in ("", "0", "-1", "4x", "99999999999"):
            result = self.run_cpu(SMALL, "-q", env={**ENVIRONMENT, "SPMMBENCH_CACHE_MIB": bad})
            self.assert_one_line(result, 1, f"SPMMBENCH_CACHE_MIB={bad}: expected an integer from 1, in MiB")

    def test_warnings_say_what_to_do(self):
        result = self.run_cpu(SMALL, "--noise", "0.0000001", "-n", "8")
        self.assertRegex(result.stderr, r"warning: 1 of 1 row is noisier than 1e-05 % .*--max-seconds")
        self.assertEqual(self.run_cpu(SMALL, "--noise", "1e-7", "-q").stderr, "")

    def test_an_unquoted_ampersand_is_suspected(self):
        run = f"{PROGRAM} run -k cpu_csr {' '.join(QUICK)}"
        for matrix, suspected in (("gen:uniform?rows=50&cols=40", True),
                                  (f"{DATA / 'fem2d_plate.mtx.gz'} &", False)):
            result = subprocess.run(["sh", "-c", f"{run} {matrix}\nwait"], capture_output=True, text=True, check=False,
                                    env=ENVIRONMENT, timeout=120, stdin=subprocess.DEVNULL)
            self.assertEqual("quote the whole of it" in result.stderr, suspected, result.stderr)


if __name__ == "__main__":
    main()
