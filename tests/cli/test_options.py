#!/usr/bin/env python3
"""A bad option costs one clear line and exit code 1, before anything is measured or written, whichever command is given
it: one option of each type here. tests/kernels/options_test.cpp tries every option of anything that `list` names."""

import json
import os
import sys

from cli_case import QUICK, SMALL, CliCase, main, read


def bad_values(option):
    """Of another type, and just outside of the bounds."""
    values = ["no such value"]
    if option["type"] == "integer":
        values += [option["least"] - 1, option["most"] + 1]
    if option["type"] == "real":
        values += [option["least"] - 1, option["most"] * 2 + 1]
    return values


class OptionsTest(CliCase):
    @classmethod
    def setUpClass(cls):
        cls.listed = None

    def entries(self, kind):
        if OptionsTest.listed is None:
            OptionsTest.listed = json.loads(self.spmmbench("list", "--json").stdout)
        by_type = {option["type"]: (entry["name"], option)
                   for entry in OptionsTest.listed[kind] for option in entry["options"]}
        return by_type.values()

    def assert_refused(self, name, option, value, *command):
        with self.subTest(command=" ".join(map(str, command))):
            result = self.spmmbench(*command)
            lines = [line for line in result.stderr.splitlines() if "running the CPU kernels" not in line]
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(len(lines), 1, result.stderr)
            self.assertIn(f"{name}: option {option['name']}={value}: expected {option['allowed']}", lines[0])
            self.assertEqual(result.stdout, "")

    def test_bad_options_of_kernels_are_refused(self):
        for name, option in self.entries("kernels"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "run", SMALL, "-k", spec, "--device", "-1")
            self.assert_refused(name, option, value, "profile", SMALL, "-k", spec)

    def test_bad_options_of_reorderings_are_refused(self):
        for name, option in self.entries("reorderings"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "run", SMALL, "--reorder", spec, "--device", "-1")
            self.assert_refused(name, option, value, "profile", SMALL, "-k", "*", "--reorder", spec)
            self.assert_refused(name, option, value, "inspect", SMALL, "--reorder", spec)

    def test_bad_options_of_formats_are_refused(self):
        for name, option in self.entries("formats"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "inspect", SMALL, "--formats", spec)

    def test_bad_options_of_generators_are_refused(self):
        out = self.folder / "out.mtx"
        for name, option in self.entries("generators"):
            for value in bad_values(option):
                spec = f"gen:{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "generate", spec, out)
            for command in (("run", SMALL, spec, "--device", "-1"), ("profile", spec, "-k", "*"), ("inspect", spec),
                            ("convert", spec, out)):
                self.assert_refused(name, option, value, *command)
        self.assertFalse(out.exists())

    def test_values_that_do_not_go_together_are_refused(self):
        result = self.spmmbench("run", SMALL, "gen:banded?rows=10&bandwidth=10", "--device", "-1")
        self.assert_one_line(result, 1, "banded: expected a bandwidth smaller than rows")
        result = self.spmmbench("run", SMALL, "--reorder", "tca?hashes=4&band=5", "--device", "-1")
        self.assert_one_line(result, 1, "reordering tca: expected band at most hashes")

    def test_options_of_other_benchmarks_are_told_what_stands_in_for_them(self):
        for words, expected in ((("-N", "64"), "-n sets the columns of B"), (("--warmup", "3"), "each case warms up by itself"),
                                (("--iterations=100",), "--min-samples and --max-samples limit")):
            self.assert_one_line(self.spmmbench("run", SMALL, *words), 1, expected)

    def test_options_come_from_a_toml_file(self):
        config, out = self.folder / "night.toml", self.folder / "out.json"
        config.write_text(f'[run]\nn = "8,16"\nkernel = ["cpu_csr"]\nprecision = "fp32"\ndevice = -1\n'
                          f'max-samples = 5\nmin-samples = 4\nno-baselines = true\njson = "{out}"\n')
        result = self.spmmbench("run", SMALL, "--config", config)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([(row["n"], row["precision"]) for row in read(out)["rows"]], [(8, "fp32"), (16, "fp32")])
        result = self.spmmbench("run", SMALL, "--config", config, "-n", "32", "-q")
        self.assertEqual([row["n"] for row in read(out)["rows"]], [32], "the command line comes first")
        for text, line, expected in (
            ("[run]\n\nkernels = 1\n", 3, "[run] kernels: no such option (did you mean '--kernel'?)"),
            ("[show]\nn = '8'\n[rum]\nn = 8\n", 3, "[rum]: no such command (did you mean 'run'?)"),
            ("n = 8\n", 1, "n: expected a section for a command before it, such as [run]"),
            ("[run]\nn = {from = 8}\n", 2, "n: expected a value, got a table"),
            ("[run]\nn =\n", 2, "Error while parsing key-value pair: expected value"),
            ("[run]\nn = # 8\n", 2, "Error while parsing key-value pair: expected value"),
            ("# mine\n[run\nn = 8\n", 2, "Error while parsing table header: expected ']'"),
            ('[run]\n\nn="4\n', 3, "Error while parsing string"), ("[run]\nn='4\n", 2, "Error while parsing literal string"),
            ('[run]\nkernel = ["a",\n"b"\n', 3, "Error while parsing array: encountered end-of-file"),
            ("[run]\nn = 8\nn = 16\n", 3, "Error while parsing key-value pair: cannot redefine existing integer 'n'"),
            ("[run]\nkernel = []\n", 2, "kernel: expected a value, got an empty list"),
            ("[run]\njson = ['a', 'b']\n", 2, "json: expected a value, got a list"),
            ("[run]\nn = [[8]]\n", 2, "n: expected a value, got a list, a table or a date"),
            ("[run]\n\ntag = 2026-11-28\n", 3, "tag: expected a value, got a list, a table or a date"),
        ):
            config.write_text(text)
            self.assert_one_line(self.spmmbench("run", SMALL, "--config", config), 1, f"{config}:{line}: {expected}")
        for text, line, expected in (  # values that only the command refuses
            ("[run]\n\nn = 'x'\n", 3, "-n 'x': expected positive integers"),
            ("[run]\ntimeout = nan\n", 2, "--timeout: expected a positive number"),
            ("[run]\nquiet = true\nshard = '3/2'\n", 3, "--shard 3/2: expected I/N"),
        ):
            config.write_text(text)
            self.assert_one_line(self.spmmbench("run", SMALL, "--config", config), 1, f"{config}:{line}: {expected}")
        config.write_text("[run]\nn = 8\n")
        result = self.spmmbench("run", SMALL, "--config", config, "-n", "x")
        self.assert_one_line(result, 1, "spmmbench: -n 'x': expected positive integers")  # of the command line
        config.write_text("[run]\npath = 8\n")
        result = self.spmmbench("run", SMALL, "--config", config)
        self.assert_one_line(result, 1, f"{config}:2: [run] path: no such option")
        self.assertNotIn("did you mean", result.stderr, "--batch has as many dashes, but other letters")
        missing = self.folder / "missing.toml"
        self.assert_one_line(self.spmmbench("run", SMALL, "--config", missing), 1, f"{missing}: no such file")
        config.write_text('[run]\nn = ""\n')
        self.assert_one_line(self.spmmbench("run", SMALL, "--config", config), 1, "--n: expected a value, got an empty one")
        config.write_text("\ufeff[run]\r\nn = '16'  # one\r\nkernel = [\r\n  'cpu_csr',\r\n  'eigen*'\r\n]\r\ndry-run = true\r\n")
        result = self.spmmbench("run", SMALL, "--config", config, "--device", "-1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(" n=16 fp16 cpu_csr", result.stdout)
        self.assert_one_line(self.spmmbench("run", SMALL, "--config", "no_such.toml"), 1, "no_such.toml")

    def test_a_text_in_a_file_has_quotes(self):
        config = self.folder / "a.toml"
        for text, line, expected in (
            ("[run]\njson\n", 2, "Error while parsing key-value pair: expected '='"),
            ("[run]\nquiet = true\nkernel = cpu_csr\n", 3, "Error while parsing"),
            ("[run]\njson = true\n", 2, 'json: expected a value, got true ("true" is a text)'),
            ("[run]\nkernel=false\n", 2, "kernel: expected a value, got false"),
        ):
            with self.subTest(text):
                config.write_text(text)
                result = self.spmmbench("run", SMALL, "--config", config, cwd=self.folder)
                self.assert_one_line(result, 1, f"{config}:{line}: {expected}")
        config.write_text("[run]\nquiet = true\nno-baselines = true\njson = 'true'\n")
        self.assertEqual(self.run_cpu(SMALL, "--config", config, cwd=self.folder).stdout, "")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.toml", "true"])

    def test_values_in_a_file_are_read_as_toml_reads_them(self):
        config, out = self.folder / "a.toml", self.folder / "caf\u00e9 \"1\".json"
        tags = ['a="q"#b', "b=\u00e9", "c=\\u00e9", "d=x\ty", "e=back\\slash", "f=[1,2]", "g=a,b", "h=1e5", "i= lead"]
        config.write_text(r"""
run.n = [ 0x20,  # 32
          # a list goes on after a comment
          6_4 ]
run.precision = ["fp32"]
run.json = "caf\u00e9 \"1\".json"
run.max-seconds = 1e-2
run.tag = ["a=\"q\"#b", "b=\u00e9", 'c=\u00e9', "d=x\ty", "e=back\\slash", "f=[1,2]", "g=a,b", "h=1e5", "i= lead"]
""", encoding="utf-8")
        result = self.run_cpu(SMALL, "-q", "--config", config, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = read(out)
        self.assertEqual(sorted({row["n"] for row in document["rows"]}), [32, 64])
        self.assertEqual(document["context"]["tags"], dict(tag.split("=", 1) for tag in tags))
        config.write_text(f"run = {{ n = [8], tag = {{ who = 'me', size = 3 }}, json = '{out}', overwrite = true }}\n")
        result = self.run_cpu(SMALL, "-q", "--config", config)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(read(out)["context"]["tags"], {"who": "me", "size": "3"})

    def test_a_flag_that_is_false_in_a_file_is_not_given(self):
        config, out = self.folder / "a.toml", self.folder / "out.json"
        for no in ("false", "'off'", '"no"', "0", '"false"'):
            config.write_text(f"[run]\nresume = {no}\nquiet = {no}\n[profile]\nrun = {no}\n")
            result = self.run_cpu(SMALL, "--config", config, "--overwrite", "--json", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("cpu_csr", result.stdout)
            result = self.spmmbench("profile", SMALL, "-k", "cpu_csr", "--config", config, "--json", out)
            self.assert_one_line(result, 1, "--json requires --run")
        config.write_text("[run]\nresume = true\n")
        result = self.run_cpu(SMALL, "--config", config, "--overwrite", "--json", out)
        self.assert_one_line(result, 1, "--resume excludes --overwrite")
        config.write_text("[run]\nresume = 'perhaps'\n")
        self.assertEqual(self.run_cpu(SMALL, "--config", config, "--json", out).returncode, 1)

    def test_every_command_takes_options_from_a_file(self):
        config, out = self.folder / "options.toml", self.folder / "out.json"
        self.run_cpu(SMALL, "-n", "8,16", "--json", out, "-q")
        config.write_text('[show]\nn = "16"\nformat = "csv"\n\n[profile]\nkernel = "cpu_csr"\ndevice = -1\n'
                          "\n[inspect]\njson = true\n")
        for arguments in (("show", out, "--config", config), ("--config", config, "show", out)):
            result = self.spmmbench(*arguments)
            self.assertEqual((result.returncode, result.stdout.count("\n")), (0, 2), result.stderr)
        result = self.spmmbench("profile", SMALL, "--config", config)
        self.assertIn("one launch, verified", result.stdout, result.stderr)
        self.assertEqual(len(json.loads(self.spmmbench("inspect", SMALL, "--config", config).stdout)), 1)
        for command in ("run", "show", "profile", "list", "inspect", "convert", "generate", "compare", "merge"):
            self.assertIn(f"TOML with the long names in a section [{command}]", self.spmmbench(command, "--help").stdout)
            with self.subTest(command):
                self.assert_one_line(self.spmmbench(command, "--config", "no_such.toml"), 1, "no_such.toml")

    def test_the_threshold_of_inspect_is_a_range_or_one_number(self):
        for text, steps in (("2:4", [2, 3, 4]), ("3", [3]), ("32:32", [32])):
            result = self.spmmbench("inspect", SMALL, "--threshold", text, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            (order,) = json.loads(result.stdout)[0]["reorderings"]
            self.assertEqual([step["tau_nnz"] for step in order["threshold"]], steps)
        for text in ("a:b", "9:1", "1:", ":1", "1:2:3", "-1:2", "x"):
            self.assert_one_line(self.spmmbench("inspect", SMALL, f"--threshold={text}"), 1,
                                 f"--threshold {text}: expected FROM:TO, such as 0:8")
        self.assert_one_line(self.spmmbench("inspect", SMALL, "--threshold", "0:33"), 1,
                             "--threshold 0:33: expected at most 32")

    def test_a_number_sign_in_quotes_begins_no_comment(self):
        config = self.folder / "a.toml"
        for value, file in (
            ('"a#1.json"', "a#1.json"), ("'a #2.json' # 'two'", "a #2.json"), ('"it\'s #4.json"', "it's #4.json"),
        ):
            with self.subTest(value):
                config.write_text(f"[run]\nkernel = [  # a list\n'cpu_csr',  # \"one\"\n]\njson = {value}\n")
                result = self.spmmbench("run", SMALL, "--config", config, "--device", "-1", *QUICK[2:], cwd=self.folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue((self.folder / file).exists(), os.listdir(self.folder))
        config.write_text("[run]\nkernel = ['cpu_csr', \"no#such\"]\n")
        result = self.spmmbench("run", SMALL, "--config", config, "--device", "-1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no kernel matches 'no#such'", result.stderr)

    def test_an_empty_value_is_not_one_that_is_not_given(self):
        out = self.folder / "out.json"
        for option in ("--shard", "--a", "--b", "--prune", "--n", "--kernel", "--reorder", "--tag", "--devices", "--precision"):
            result = self.spmmbench("run", SMALL, "--json", out, option, "")
            self.assert_one_line(result, 1, f"{option}: expected a value, got an empty one")
        for *args, expected in (("compare", out, out, "--calibration", "", "--calibration"), ("run", SMALL, "--config", "", "--config"),
                                ("run", "", "PATH"), ("inspect", SMALL, "--threshold", "", "--threshold"),
                                ("convert", SMALL, out, "--prune", "", "--prune"), ("list", "--plugin", "", "--plugin"),
                                ("show", out, "--sort", "", "--sort")):
            self.assert_one_line(self.spmmbench(*args), 1, f"{expected}: expected a value, got an empty one")
        self.assertFalse(out.exists())

    def test_an_empty_value_behind_an_equals_sign_does_not_take_the_next_word(self):
        matrix, other = self.folder / "a.mtx", self.folder / "b.mtx"
        for path in (matrix, other):
            path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n")
        before = matrix.read_bytes()
        for *args, option in (("run", "--json=", matrix, other, "--json"), ("run", "--csv=", matrix, other, "--csv"),
                              ("run", "--b=", matrix, other, "--b"), ("run", "--prune=", matrix, "--prune"),
                              ("run", "--config=", matrix, other, "--config"), ("--config=", "run", matrix, "--config"),
                              ("run", matrix, "--tag", "a=", "--tag=", other, "--tag"),
                              ("merge", "--csv=", matrix, other, other, "--csv")):
            with self.subTest(args):
                self.assert_one_line(self.spmmbench(*args), 1, f"{option}: expected a value, got an empty one")
                self.assertEqual(matrix.read_bytes(), before)
        self.assertEqual(self.run_cpu(matrix, "-q", "--tag", "--json=").returncode, 0)
        self.assert_one_line(self.spmmbench("run", "-q", "--", matrix, "--json="), 1, "--json=: no such file")

    def test_a_pruning_that_is_none_is_refused_before_anything_is_written(self):
        out, dense = self.folder / "new/out.json", self.folder / "a.npy"
        self.spmmbench("generate", SMALL, dense)
        for prune in ("2:5", "magnitude:1.5", "block:0x2:0.5", "x"):
            for command in (("run", dense, dense, "--json", out), ("run", dense, "--dry-run"),
                            ("profile", dense, "-k", "cpu_csr"), ("convert", dense, self.folder / "new/b.npy")):
                self.assert_one_line(self.spmmbench(*command, "--prune", prune), 1, f"--prune '{prune}': expected magnitude:S")
        self.assertFalse(out.parent.exists())

    def test_noise_may_be_zero_however_it_is_written(self):
        for zero in ("0", "0.0", "0e3", ".0"):
            self.assertEqual(self.run_cpu(SMALL, "-q", "--noise", zero).returncode, 0)
        for bad in ("-1", "x", "nan", "1x"):
            self.assert_one_line(self.run_cpu(SMALL, "-q", "--noise", bad), 1, "--noise: expected a number that is not negative")

    def test_what_would_be_ignored_is_refused(self):
        weights, named, b = (self.folder / name for name in ("w.npy", "v.2x3.bin", "b.npy"))
        self.spmmbench("generate", "uniform?rows=40&cols=12", b)
        self.spmmbench("generate", SMALL, weights)
        named.write_bytes(bytes(24))
        raw, raw_b = self.folder / "raw.bin", self.folder / "raw_b.bin"
        raw.write_bytes(bytes(4 * 3 * 40))
        raw_b.write_bytes(bytes(4 * 40 * 6))
        for *args, expected in (
            ("convert", named, self.folder / "o.mtx", "--dims", 3, 2, "v.2x3.bin: expected the 2 x 3 of its name, got --dims 3 2"),
            ("convert", weights, self.folder / "o.mtx", "--dims", 3, 2, "--dims: expected a headerless .bin, got"),
            ("run", SMALL, "--dims", 3, 2, "--dims: expected a headerless .bin among the inputs"),
            ("run", named, "--dims", 2, 3, 4, "--dims: expected ROWS COLS without --b, got a third size"),
            ("run", SMALL, "--b", b, "-n", 7, "-n 7: expected 12, the columns of "),
            ("run", "gen:qwen2.5-7b/attn_k?zeros=2:4&sparsity=0.3", "expected no sparsity with zeros=2:4"),
            ("run", "gen:qwen2.5-7b/attn_k?zeros=random&block=32", "expected no block with zeros=random"),
            ("run", SMALL, "-k", "async_bcsr?stages=99&stages=2", "stages is given twice"),
            ("run", "gen:uniform?rows=5&rows=6", "rows is given twice"),
            ("run", "gen:esmm?size=64", "-n", 5, "-n 5: expected 64, the columns of B that gen:esmm?size=64 makes"),
            ("run", SMALL, "--tag", "a=1", "--tag", "a=2", "--tag a=2: a is given twice"),
            ("run", SMALL, "@", "@: expected the name of a list behind it"),
            ("run", SMALL, "--device", -2, "--device -2: expected a CUDA device, or -1"),
            ("run", SMALL, "--sort", ":desc", "no column ''"),
            ("run", SMALL, "--min-samples", 5, "--max-samples", 3, "--min-samples 5: expected at most --max-samples, which is 3"),
            ("run", SMALL, "--min-samples", 10, "--max-samples", 5, "--min-samples 10: expected at most --max-samples, which is 5"),
            ("run", SMALL, "--bin-type", "fp16", "--bin-type: expected a headerless .bin among the inputs"),
            ("inspect", SMALL, "--bin-type", "bf16", "--bin-type: expected a headerless .bin among the inputs"),
            ("convert", SMALL, self.folder / "o.mtx", "--bin-type", "fp16", "--bin-type: expected a headerless .bin, got gen:"),
            ("run", raw, "--b", b, "--dims", 3, 40, 13, "--device", -1, "-q", "A is 3 x 40 and B is 40 x 12: expected --dims 3 40 13"),
            ("run", SMALL, "--b", raw_b, "--dims", 51, 40, 6, "--device", -1, "-q", "A is 50 x 40 and B is 40 x 6: expected --dims 51 40 6"),
        ):
            self.assert_one_line(self.spmmbench(*args), 1, expected)
        for option, samples in (("--max-samples", 3), ("--min-samples", 700)):  # the other has a default on the other side
            out = self.folder / "samples.json"
            result = self.spmmbench("run", SMALL, "-k", "cpu_csr", *QUICK[:2], "--max-seconds", 60, "-q", "--no-baselines", "--json", out, option, samples)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(read(out)["rows"][0]["hot"]["samples_us"]), samples)
        for args in ((SMALL, "--b", b, "-n", 12), ("gen:esmm?size=16", SMALL, "-n", 8), (SMALL, "--b", raw_b, "--dims", 50, 40, 6)):
            result = self.run_cpu(*args, "-q")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.spmmbench("convert", named, self.folder / "o.mtx", "--dims", 2, 3).returncode, 0)

    def test_a_generator_that_asks_too_much_is_named(self):
        for spec, expected in (("gen:rmat?scale=30&edge_factor=65536", "about 7.04e+13 entries asked for"),
                               ("gen:powerlaw?rows=5&mean=2000000000", "no power law")):
            self.assert_one_line(self.spmmbench("run", SMALL, spec, "--device", "-1"), 1, f"{spec}: ")
            self.assert_one_line(self.spmmbench("generate", spec, self.folder / "o.mtx"), 1, f"{spec}: {expected}")
        spec = "gen:blocks?rows=2000000000&cols=2000000000"  # counted when it is made
        self.assert_one_line(self.run_cpu(spec, "-q"), 1, f"{spec}: about 2e+17 entries asked for")

    def test_list_shows_type_range_and_default(self):
        text = self.spmmbench("list", "reorderings").stdout
        self.assertRegex(text, r"k= +neighbours kept per row \[4\]\n +an integer from 1 to 64\n")
        self.assertRegex(text, r"mst= .* \[1\]\n +0 or 1\n")


if __name__ == "__main__":
    sys.exit(main())
