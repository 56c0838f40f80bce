#!/usr/bin/env python3
"""What the README shows is what the program does: its commands and options exist, and its table is the one printed."""

import re
import shlex
import subprocess

from cli_case import ENVIRONMENT, PROGRAM, SOURCE, CliCase, main

README = (SOURCE / "README.md").read_text()
RUNNING = (SOURCE / "docs/running.md").read_text()


def help_of(*command):
    result = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True,
                            env=ENVIRONMENT)
    return result.stdout


def subcommands():
    section = help_of().split("Subcommands:")[1]
    return re.findall(r"^  (\w+)", section, re.MULTILINE)


class ReadmeTest(CliCase):
    def test_every_command_is_in_the_readme(self):
        for name in subcommands():
            self.assertIn(f"`spmmbench {name}", README)

    def test_every_command_of_the_readme_exists(self):
        for name in set(re.findall(r"`spmmbench (\w+)", README)):
            self.assertIn(name, subcommands())

    def test_every_option_of_the_readme_exists(self):
        known = set()
        for name in subcommands():
            known.update(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", help_of(name)))
        text = re.sub(r"`scripts/[^`]*`", "", README)  # scripts have options of their own
        for option in set(re.findall(r"(?<![\w/-])(--[a-z][\w-]*)", text)):
            self.assertIn(option, known)

    def test_the_table_of_the_readme_is_what_its_command_prints(self):
        blocks = re.findall(r"```\w*\n(.*?)```", README, re.DOTALL)
        at = next(i for i, block in enumerate(blocks) if block.startswith("spmmbench show"))
        printed = self.spmmbench(*shlex.split(blocks[at])[1:], cwd=SOURCE).stdout
        self.assertEqual(printed.split("\n\n", 1)[1].strip(), blocks[at + 1].strip())

    def test_the_exit_codes_that_docs_name_are_those_of_the_program(self):
        header = (SOURCE / "include/spmmbench/error.hpp").read_text()
        codes = re.findall(r"^  \w+ = (\d+),", header, re.MULTILINE)
        self.assertEqual(re.findall(r"^\| (\d+) \|", RUNNING, re.MULTILINE), codes)


if __name__ == "__main__":
    main()
