"""Arguments that mean nothing."""

import time

from area import ENVIRONMENT, QUICK, SMALL, Attack, require


class BadArguments(Attack):
    """Arguments that mean nothing: one line and exit code 1, at once."""

    ARGUMENTS = (
        "-n 0", "-n -1", "-n 1e3", "-n 1:", "-n 5:4", "-n 1:9223372036854775807:x2",
        "-n 1:9223372036854775807:1", "-n 9223372036854775808", "-n ,", "--noise nan", "--noise -1", "--noise inf",
        "--noise x", "--min-samples 0", "--min-samples 9 --max-samples 3", "--max-samples -1", "--max-seconds nan",
        "--max-seconds 0", "--shard 0/2", "--shard 3/2", "--shard 1/4294967296", "--shard 1/18446744073709551615",
        "--shard 2/18446744073709551615", "--shard 1", "--shard a/b", "--precision fp8", "--precision ,",
        "--c-type fp64", "--b-layout up", "--reorder sideways", "--reorder none,", "-k nothing", "-k cpu_csr?x=1",
        "-x *", "--device 7", "--devices 0,0", "--devices x", "--timeout 5", "--timeout nan --isolate",
        "--tag x", "--seed -1", "--seed x", "--dims 3", "--dims 0 4", "--bin-type fp3", "--prune 2:4",
        "--prune nonsense", "--b no_such.npy", "--config /no/such", "--config /dev/null", "--json", "--csv", "--resume",
        "--retry-failed --resume", "--resume --overwrite", "--json - --csv -", "--json - --resume --jsonl",
        "--columns nothing", "--sort nothing", "--color red", "--nonsense",
    )  # fmt: skip

    def cases(self):
        for text in self.ARGUMENTS:
            yield f"run {text}", lambda t=text: self.refused("run", SMALL, *quick_beside(t), *t.split(), "-q")
        for args in (["show"], ["show", "no_such"], ["show", "/dev/null"], ["show", "/dev/zero"], ["compare"],
                     ["compare", "a"], ["merge"], ["merge", "x"], ["list", "nothing"], ["inspect"], ["inspect", "no_such"],
                     ["inspect", SMALL, "--threshold", "9:1"], ["inspect", SMALL, "--formats", "nothing"],
                     ["convert", SMALL], ["convert", SMALL, "x.txt"], ["generate", "nothing", "x.mtx"], ["run"],
                     ["run", "@no_such"], ["run", "@/dev/zero"], ["nothing"], [], ["run", "gen:"],
                     ["run", "gen:uniform?rows=-1"], ["run", "gen:uniform?rows=1e99"], ["run", "gen:uniform?rows=x"],
                     ["run", "x" * 5000], ["run", "/" + "x/" * 3000], ["run", ""]):  # fmt: skip
            quiet = ["-q"] if args[:1] == ["run"] else []
            yield f"{' '.join(args)[:40]}", lambda a=[*args, *quiet]: self.refused(*a)
        yield "TMPDIR", lambda: self.require_refusal(
            self.run("run", SMALL, *QUICK, "-q", "--json", "-", env={**ENVIRONMENT, "TMPDIR": "/no/such"}))

    def refused(self, *args):
        start = time.monotonic()
        self.require_refusal(self.run(*args, cwd=self.folder))
        require(time.monotonic() - start < 20, "took long")


def quick_beside(text):
    """QUICK without the options that the text gives itself."""
    given = set(text.split())
    pairs = (("-k", "cpu_csr"), ("--device", "-1"), ("--no-baselines",), ("--min-samples", "4"), ("--max-samples", "5"))
    return [word for pair in pairs if pair[0] not in given for word in pair]
