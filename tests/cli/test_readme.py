#!/usr/bin/env python3
"""The README and `--help` say the same: no command or option stands in one that the other does not know."""

import re
import subprocess

from cli_case import ENVIRONMENT, PROGRAM, SOURCE, CliCase, main

README = (SOURCE / "README.md").read_text()


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

    def test_the_exit_codes_of_the_readme_are_those_of_the_program(self):
        header = (SOURCE / "include/spmmbench/error.hpp").read_text()
        codes = re.findall(r"^  \w+ = (\d+),", header, re.MULTILINE)
        self.assertEqual(re.findall(r"^\| (\d+) \|", README, re.MULTILINE), codes)


if __name__ == "__main__":
    main()
