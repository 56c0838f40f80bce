#!/usr/bin/env python3
"""The manual page and the completions are made from the options that the program has."""

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
        commands = re.findall(r"^  ([\w-]+)", self.help_of().split("Subcommands:")[1], re.MULTILINE)
        sections = dict(re.findall(r"^\.SS ([\w-]+)\n(.*?)(?=^\.SS |\Z)", page, re.MULTILINE | re.DOTALL))
        self.assertEqual(list(sections), commands)
        for name in commands:
            text = sections[name].replace("\\-", "-")
            for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.help_of(name), re.MULTILINE):
                self.assertIn(option, text)

    def test_the_manual_page_names_its_version(self):
        version = self.spmmbench("--version").stdout.split()[0]
        title = self.spmmbench("document", "man").stdout.splitlines()[0]
        self.assertEqual(title, f'.TH SPMMBENCH 1 "" "spmmbench {version}"')

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_the_manual_page_is_sound_roff(self):
        page = self.spmmbench("document", "man").stdout
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-z"], input=page, capture_output=True, text=True,
                                check=True)
        self.assertEqual(result.stderr, "")

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_a_list_is_broken_at_its_commas_alone(self):
        page = self.spmmbench("document", "man").stdout
        text = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou"], input=page, capture_output=True, text=True, check=True).stdout
        columns = re.search(r"some of (kernel,.*?,)\s*error, or", text, re.DOTALL).group(1)
        self.assertEqual(re.sub(r",\s+", ",", columns), "".join(columns.split()))
        self.assertNotIn("-\n", columns)

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
        self.assertEqual(complete("spmmbench", "run", "data", "-k", "cpu_c"), ["cpu_csr"])
        self.assertEqual(complete("spmmbench", "run", "data", "--kernel", "auto,cpu_c"), ["auto,cpu_csr"])
        self.assertEqual(complete("spmmbench", "run", "data", "--reorder", "degr"), ["degree"])

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish_completes_commands_options_and_kernels(self):
        file = self.folder / "completion"
        file.write_text(self.spmmbench("document", "fish").stdout)

        def complete(line):
            result = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C '{line}'"],
                                    capture_output=True, text=True, check=True)
            self.assertEqual(result.stderr, "")
            return [line.split("\t")[0] for line in result.stdout.splitlines()]

        self.assertEqual(complete("spmmbench insp"), ["inspect"])
        self.assertEqual(complete("spmmbench run data --prec"), ["--precision"])
        self.assertEqual(complete("spmmbench run data -k auto,cpu_c"), ["auto,cpu_csr"])

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_completes_commands_options_and_kernels(self):
        (self.folder / "_spmmbench").write_text(self.spmmbench("document", "zsh").stdout)
        # Completion needs a line editor, and that a terminal: zsh runs itself in one.
        script = r"""
            zmodload zsh/zpty
            zpty z zsh -f -i
            zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -d $1/dump; LISTMAX=0; RPS1=; PS1='ready''>'"
            zpty -r z seen '*ready>*'  # the prompt: before, keys would be echoed and not edited
            zpty -w -n z "$2"$'\t'
            zpty -w -n z $'\C-a: "\C-e"\n'
            zpty -r z seen '*"*"*'
            print -r -- "$seen"
        """
        def complete(line):
            return subprocess.run(["zsh", "-f", "-c", script, "zsh", self.folder, line], capture_output=True, text=True,
                                  check=True, timeout=60).stdout

        self.assertIn("spmmbench inspect", complete("spmmbench insp"))
        self.assertIn("--precision", complete("spmmbench run data --prec"))
        self.assertIn("auto,cpu_csr", complete("spmmbench run data -k auto,cpu_c"))


if __name__ == "__main__":
    main()
