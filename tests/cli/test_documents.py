#!/usr/bin/env python3
"""The manual page and the completion are made from the options that the program has."""

import re
import shutil
import subprocess
import unittest

from cli_case import CliCase, main


class Documents(CliCase):
    def help_of(self, *command):
        return self.spmmbench(*command, "--help").stdout

    def test_the_manual_page_has_every_command_and_option(self):
        page = self.spmmbench("document", "man").stdout
        commands = re.findall(r"^  (\w+)", self.help_of().split("Subcommands:")[1], re.MULTILINE)
        sections = dict(re.findall(r"^\.SS (\w+)\n(.*?)(?=^\.SS |\Z)", page, re.MULTILINE | re.DOTALL))
        self.assertEqual(list(sections), commands)
        for name in commands:
            text = sections[name].replace("\\-", "-")
            for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.help_of(name), re.MULTILINE):
                self.assertIn(option, text)

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_the_manual_page_is_sound_roff(self):
        page = self.spmmbench("document", "man").stdout
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-z"], input=page, capture_output=True, text=True,
                                check=True)
        self.assertEqual(result.stderr, "")

    def test_bash_completes_commands_and_options(self):
        file = self.folder / "completion"
        file.write_text(self.spmmbench("document", "bash").stdout)

        def complete(*words):
            script = f"""source {file}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}
                         _spmmbench; echo "${{COMPREPLY[@]}}" """
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

        self.assertEqual(complete("spmmbench", "insp"), ["inspect"])
        self.assertEqual(complete("spmmbench", "run", "data", "--prec"), ["--precision"])
        self.assertEqual(complete("spmmbench", "list", "--plug"), ["--plugin"])


if __name__ == "__main__":
    main()
