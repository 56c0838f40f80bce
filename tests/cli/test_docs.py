#!/usr/bin/env python3
"""Every command that README and docs show runs with what the repository ships. Names in capitals stand for files and
names of the reader's own; `run` only plans its cases; GPU kernels that this build lacks are taken for cpu_csr."""

import csv
import functools
import re
import shlex
import subprocess
import sys

from cli_case import SMALL, SOURCE, CliCase, main

PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "data/README.md",
         *sorted((SOURCE / "docs").rglob("*.md"))]
# Their commands took matrices or hours that a test has not.
RECORDED = [SOURCE / "results/README.md", *sorted((SOURCE / "examples").rglob("*.md"))]
MATRIX = "data/fem2d_plate.mtx.gz"
STANDS_FOR = {"PATH": [MATRIX], "PATH...": [MATRIX], "MATRIX": [MATRIX], "KERNEL": ["cpu_csr"], "NAME": ["cpu_csr"],
              "SPEC": ["uniform?rows=20&cols=20"], "IN": [MATRIX], "OUT": ["out.mtx"], "IN.json...": ["run.json"],
              "BASE.json": ["run.json"], "NEW.json": ["new.json"], "RUN.json": ["run.json"],
              "RUN.json...": ["run.json"], "BASE": ["run.json"], "NEW": ["new.json"], "…": ["128"]}
# Measures for minutes (tested in test_compare); needs a library that was built (tested in test_plugin).
NEEDS_MORE = ("--calibrate", "--plugin", "check-plugin")


def commands_of(text):
    """Commands with arguments: of shell blocks, of indented lines and between backquotes."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = [line.split(" #")[0] for block in blocks for line in block.splitlines()]
    found += re.findall(r"^    ((?:spmmbench|scripts/).*)$", rest, re.MULTILINE)
    found += [code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", rest)]
    found = [part.strip() for code in found for part in code.split("&&")]
    return [re.sub(r"^build/\w+/(?=spmmbench )", "", code) for code in found if " " in code]


@functools.cache
def script_help(script, *subcommand):
    return subprocess.run([SOURCE / script, *subcommand, "--help"], capture_output=True, text=True, check=True).stdout


def anchors_of(page):
    """What a link may name behind #: the headings of a page, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class DocsTest(CliCase):
    def test_every_link_between_pages_resolves(self):
        for page in [*PAGES, *RECORDED]:
            text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                with self.subTest(page=page.name, target=target):
                    named = page.parent / path if path else page
                    self.assertTrue(named.exists())
                    if anchor and named.suffix == ".md":
                        self.assertIn(anchor, anchors_of(named))

    def test_every_page_of_a_folder_is_in_its_index(self):
        for folder in (SOURCE / "docs/decisions", SOURCE / "docs/kernels"):
            index = (folder / "README.md").read_text()
            for page in folder.glob("[!R]*.md"):
                with self.subTest(page=page.name):
                    self.assertIn(f"]({page.name}", index)

    def test_the_tables_are_those_of_the_recorded_results(self):
        result = subprocess.run([sys.executable, SOURCE / "scripts/docs_tables.py", "--check"], capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def lay_out_folder(self):
        """What the commands of the pages read, and the kernels of this build."""
        for name in ("data", "results"):
            (self.folder / name).symlink_to(SOURCE / name)
        (self.folder / "matrices").mkdir()
        for name in ("general", "held-out", "pruned"):
            (self.folder / "matrices" / f"{name}.txt").write_text(SMALL + "\n")
        for name in ("run.json", "new.json"):
            result = self.run_cpu(MATRIX, "-n", "8", "--json", name, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.kernels = re.findall(r"^  (\w+)", self.spmmbench("list", "kernels").stdout, re.MULTILINE)

    def runnable(self, words):
        """The arguments with everything that stands for something put in."""
        out = []
        for word in words:
            out += STANDS_FOR.get(word, [word])
        if out[0] == "run":
            out += ["--dry-run", *([] if "--device" in out else ["--device", "-1"])]
        for i, word in enumerate(out[:-1]):
            library = ".so" in out[i + 1]  # that the reader builds
            if word in ("-k", "-x") and out[0] in ("run", "profile") and (library or "rsh" not in self.kernels):
                out[i + 1] = "cpu_csr" if word == "-k" else "none_such"
        return out

    def test_every_command_of_the_program_runs(self):
        self.lay_out_folder()
        count = 0
        for page in PAGES:
            for command in commands_of(page.read_text()):
                if not command.startswith("spmmbench ") or "model" in command or "checkpoint" in command:
                    continue
                words = shlex.split(re.sub(r"\[.*?\]", "", command).split(">")[0])[1:]
                if words[0] == "profile" or any(word in NEEDS_MORE for word in words) or words[1:] == []:
                    continue
                with self.subTest(page=page.name, command=command):
                    result = self.spmmbench(*self.runnable(words), cwd=self.folder)
                    self.assertIn(result.returncode, (0, 6) if words[0] == "compare" else (0,), result.stderr)
                    count += 1
        self.assertGreater(count, 15)

    def test_every_option_of_the_program_is_one_that_the_command_has(self):
        helps = {}
        for page in PAGES + RECORDED:
            for command in commands_of(page.read_text()):
                words = re.sub(r"[\[\]]", "", command).split()
                if words[0] != "spmmbench" or not re.fullmatch(r"\w+", words[1]):
                    continue
                with self.subTest(page=page.name, command=command):
                    if words[1] not in helps:
                        helps[words[1]] = self.spmmbench(words[1], "--help").stdout
                    for option in (word for word in words if re.fullmatch(r"--?[a-z][\w-]*", word)):
                        self.assertRegex(helps[words[1]], rf"(?<![\w-]){option}\b")

    def test_every_list_of_matrices_is_one_that_ships(self):
        with open(SOURCE / "data/lists/recorded.csv", newline="") as file:
            lists = {name for row in csv.DictReader(file) for name in row["lists"].split()}
        for page in PAGES + RECORDED:
            for name in re.findall(r"@([\w./-]+)\.txt", page.read_text()):
                with self.subTest(page=page.name, list=name):
                    self.assertIn(name.removeprefix("matrices/"), lists)

    def test_every_option_of_a_script_is_one_that_it_has(self):
        for page in PAGES + RECORDED:
            for command in commands_of(page.read_text()):
                if not command.startswith("scripts/"):
                    continue
                script, *arguments = shlex.split(command)
                with self.subTest(page=page.name, command=command):
                    self.assertTrue((SOURCE / script).exists())
                    known = script_help(script)
                    if arguments and re.search(rf"[{{,]{re.escape(arguments[0])}[,}}]", known):
                        known += script_help(script, arguments[0])
                    for option in (word for word in arguments if re.match(r"--\w", word)):
                        self.assertRegex(known, rf"{option}\b")

    def test_every_script_refuses_an_unknown_option_in_one_line(self):
        scripts = [SOURCE / "scripts" / name for name in ("perf_gate", "refit")]
        scripts += [path for path in sorted((SOURCE / "scripts").glob("*.py")) if path.stat().st_mode & 0o111]
        self.assertGreater(len(scripts), 10)
        for script in scripts:
            with self.subTest(script=script.name):
                result = subprocess.run([sys.executable, script, "--no-such-option"], capture_output=True, text=True,
                                        check=False)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)

    def test_a_shell_script_asked_for_help_says_what_it_does_and_does_nothing(self):
        scripts = {path.name: path for path in (SOURCE / "scripts").glob("*.sh")}
        del scripts["setup.sh"], scripts["keep_ptxas.sh"]  # sourced; a step of the build
        for name, script in sorted(scripts.items()):
            with self.subTest(script=name):
                result = subprocess.run([script, "--help"], capture_output=True, text=True, check=False, timeout=10)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn(script.read_text().splitlines()[1].removeprefix("# "), result.stdout)
        for name in ("test.sh", "sanitize_host.sh", "documented_build.sh"):  # long ones that take no argument
            with self.subTest(script=name):
                result = subprocess.run([scripts[name], "--no-such-option"], capture_output=True, text=True, check=False,
                                        timeout=10)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)


if __name__ == "__main__":
    sys.exit(main())
