"""The Python blocks of docs/python.md run one after another: as they stand where there is a GPU, else on the CPU."""

import contextlib
import io
import re
import unittest

from python_case import SOURCE, main, need

np, _, torch = need("numpy", "scipy", "torch")

from torch_case import DEVICES  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None

BLOCKS = re.findall(r"```python\n(.*?)```", (SOURCE / "docs/python.md").read_text(), re.DOTALL)
HOPPER = DEVICES[-1] == "cuda" and torch.cuda.get_device_capability() == (9, 0)
OF_HOPPER = ("AttentionBlocks(", "BlockSwiglu(")
# What stands otherwise on the CPU: where arrays lie, a kernel, the parameter of `auto`, and sizes.
ON_THE_CPU = {'device="cuda"': 'device="cpu"', ".cuda()": "", '"rsh"': '"cpu_csr"', '["picked"]': '.get("picked")',
              "100_000": "10_000"}  # fmt: skip


def random(*shape, device="cuda"):
    return torch.randn(shape, device=device, dtype=torch.float16)


class Docs(unittest.TestCase):
    def add_names_of_the_reader(self, names, block, device):
        """What a block uses and no block makes."""
        if "adjacency" in block:
            names.setdefault("adjacency", names["A"])
            names.setdefault("x", random(names["A"].shape[1], 64, device=device))
        if "AttentionBlocks(" in block:
            names["kept"] = torch.ones(4, 4, dtype=torch.bool, device="cuda").tril()
            names.update(q=random(512, 8, 128), k=random(512, 2, 128), v=random(512, 2, 128))
        if "BlockSwiglu(" in block:
            names.update(gate=random(256, 128), up=random(256, 128), x=random(100, 128))

    def code_of(self, block, device):
        for shown, here in ON_THE_CPU.items() if device == "cpu" else ():
            block = block.replace(shown, here)
        if pandas is None:
            block = re.sub(r"rows\.frame\(\).*", "", block)
        return block.replace("A_torch, n=128", "A_torch, n=128, max_seconds=0.05")

    def test_its_blocks_run(self):
        self.assertGreater(len(BLOCKS), 5)
        device, names = DEVICES[-1], {}
        for block in BLOCKS:
            if any(name in block for name in OF_HOPPER) and not HOPPER:
                continue
            with self.subTest(block=block), contextlib.redirect_stdout(io.StringIO()):
                self.add_names_of_the_reader(names, block, device)
                exec(self.code_of(block, device), names)
        self.assertEqual([row["status"] for row in names["rows"]], ["ok", "ok"])


if __name__ == "__main__":
    main()
