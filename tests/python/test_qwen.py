"""examples/qwen: what it counts and refuses, its patterns, and its decoder beside a plain one."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from python_case import PACKAGE, SOURCE, main, need

np, _ = need("numpy", "scipy")
EXAMPLE = SOURCE / "examples" / "qwen"
sys.path.insert(0, str(EXAMPLE))

import patterns  # noqa: E402
import qwen  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import sizes  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
try:
    import safetensors.numpy
except ImportError:
    safetensors = None

NEEDS_TORCH = unittest.skipIf(torch is None, "torch is not installed")
NEEDS_SAFETENSORS = unittest.skipIf(safetensors is None, "safetensors is not installed")
TINY = sizes.Sizes(512, 2, 4, 2, 384, 500, 1e-6, 1e6)
TOKENS, BLOCK = 256, 64
DEVICES = ["cpu", "cuda"] if torch and torch.cuda.is_available() else ["cpu"]


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps(vars(TINY)))

    def arguments(self, *more):
        told = ["--out", self.folder / "out.json", "--config", self.config, "--tokens", TOKENS, "--block", 64]
        told += ["--attention-block", BLOCK, "--attention-zeros", 0.3, *more]
        return qwen.checked(qwen.parse(list(map(str, told))))

    def saved(self, array):
        path = self.folder / "mask.npy"
        np.save(path, array)
        return path

    def checkpoint(self, change=None):
        """A folder with random tensors of TINY in two shards."""
        random, shards = np.random.default_rng(1), ({}, {})
        for i, (name, shape) in enumerate(TINY.tensors(2).items()):
            shards[i % 2][name] = (0.02 * random.standard_normal(shape)).astype(np.float16)
        if change:
            change(*shards)
        weight_map = {}
        for i, tensors in enumerate(shards):
            safetensors.numpy.save_file(tensors, self.folder / f"{i}.safetensors")
            weight_map |= dict.fromkeys(tensors, f"{i}.safetensors")
        index = {"weight_map": weight_map}
        (self.folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return self.folder


class Counts(unittest.TestCase):
    def test_a_layer_of_qwen_at_64k_tokens_is_as_many_flops_as_its_shapes_say(self):
        linear = sum(sizes.linear_flops(sizes.QWEN, name, 65536) for name in rows.LINEAR)
        self.assertAlmostEqual(linear / 1e13, 3.05, 2)
        self.assertAlmostEqual(sizes.attention_flops(sizes.QWEN, 65536) / 1e13, 3.08, 2)
        parameters = sum(np.prod(shape) for shape in sizes.QWEN.tensors(28).values())
        self.assertAlmostEqual(parameters / 1e9, 7.6156, 3)  # as its model card says: 7.61 B

    def test_all_blocks_together_are_the_causal_half(self):
        blocks = TOKENS // BLOCK
        whole = sizes.block_attention_flops(TINY, patterns.total(blocks), blocks, BLOCK)
        self.assertEqual(whole, sizes.attention_flops(TINY, TOKENS))
        few = sizes.block_attention_flops(TINY, blocks, blocks, BLOCK)
        self.assertEqual(few, blocks * sizes.attention_flops(TINY, BLOCK))

    def test_totals_are_scaled_to_all_layers_but_what_is_around_them_is_not(self):
        one = [(0, "embedding", 1.0), (0, "norm", 2.0), (0, "norm", 3.0), (1, "norm", 7.0), (2, "logits", 4.0)]
        made = rows.totals([one, one, one], 28, 2)
        self.assertEqual(made["hot"]["median_us"], 1e3 * (1 + 14 * 12 + 4))
        self.assertEqual(made["metrics"], {"embedding_us": 1e3, "norm_us": 14 * 12e3, "logits_us": 4e3})
        self.assertEqual(made["layers_us"], [5e3, 7e3])


class Patterns(unittest.TestCase):
    def test_each_keeps_the_diagonal_and_the_share_and_nothing_later(self):
        for name in patterns.STATIC:
            for blocks, zeros, within in ((64, 0.5, 0.02), (64, 0.9, 0.03), (128, 0.95, 0.01), (2, 0.0, 0)):
                with self.subTest(f"{name} {blocks} {zeros}"):
                    kept = patterns.static(name, blocks, zeros, 1)
                    self.assertTrue(kept.diagonal().all())
                    self.assertFalse((kept & ~patterns.causal(blocks)).any())
                    self.assertLessEqual(abs(patterns.share_of_zeros(kept) - zeros), within)

    def test_random_blocks_are_exactly_the_share_and_follow_the_seed(self):
        kept = patterns.random(100, 0.8, 1)
        self.assertEqual(kept.sum(), 1010)
        np.testing.assert_array_equal(kept, patterns.random(100, 0.8, 1))
        self.assertTrue((kept != patterns.random(100, 0.8, 2)).any())

    def test_a_window_has_the_nearest_blocks_and_the_first(self):
        kept = patterns.window(32, 0.7)
        width = kept[-1, 1:].sum()
        rows_, cols = np.indices((32, 32))
        expected = ((rows_ - cols < width) | (cols == 0)) & patterns.causal(32)
        np.testing.assert_array_equal(kept, expected)

    def test_vertical_slash_is_whole_columns_and_diagonals(self):
        kept = patterns.vertical_slash(48, 0.8, 3)
        columns = [c for c in range(48) if kept[c:, c].all()]
        diagonals = [d for d in range(48) if kept.diagonal(-d).all()]
        rows_, cols = np.indices(kept.shape)
        expected = (np.isin(cols, columns) | np.isin(rows_ - cols, diagonals)) & patterns.causal(48)
        np.testing.assert_array_equal(kept, expected)
        self.assertIn(0, columns)

    def test_the_quota_of_a_row_is_its_share_and_at_least_the_diagonal(self):
        self.assertEqual(patterns.quota(5, 0.5).tolist(), [1, 1, 2, 2, 2])
        self.assertEqual(patterns.quota(3, 0.99).tolist(), [1, 1, 1])


class Refusals(Folder):
    def refused(self, words, *arguments):
        with self.subTest(words), self.assertRaises(SystemExit) as caught:
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.arguments(*arguments)
        text = said.getvalue() or str(caught.exception)
        self.assertIn(words, text)
        self.assertEqual(str(caught.exception).count("\n"), 0)

    def test_arguments_that_do_not_fit_are_told_in_one_line(self):
        for words, *arguments in (
            ("--tokens 300: no multiple of attention's blocks of 64", "--tokens", "300"),
            ("expected whole numbers from 1", "--tokens", "256,x"),
            ("which leaves at most 60.0 % zeros", "--attention-zeros", "0.7"),
            ("expected a share from 0 to below 1", "--zeros", "1"),
            ("--layers 3: the model has 2", "--layers", "3"),
            ("expected of dense", "--modes", "dense,sparse"),
            ("--samples is a number from 1", "--samples", "0"),
            ("none.json: No such file", "--config", self.folder / "none.json"),
        ):
            self.refused(words, *arguments)
        self.arguments("--tokens", "300", "--modes", "dense,linear")  # has no blocks of tokens

    def test_a_config_that_does_not_fit_is_told_in_one_line(self):
        for change, words in (
            ({"hidden_size": 250}, "hidden_size 250, 4 heads and 2 key-value heads do not fit"),
            ({"intermediate_size": 400}, "--block 64: gate_up of 800 x 512 is not made of such blocks"),
            ({"vocab_size": "many"}, "no config.json of a model"),
            ({"vocab_size": 0}, "every size is above 0"),
        ):
            self.config.write_text(json.dumps({**vars(TINY), **change}))
            self.refused(words)
        self.config.write_text('{"hidden_size": 256}')
        self.refused("has no num_hidden_layers")

    def test_a_mask_that_does_not_fit_is_told_in_one_line(self):
        good = patterns.causal(4)
        self.arguments("--mask", self.saved(good))
        self.arguments("--mask", self.saved(np.stack([good] * TINY.num_attention_heads)))
        empty, late = good.copy(), good.copy()
        empty[2], late[0, 3] = False, True
        for array, words in (
            (empty, "row 2 is empty: its tokens would attend to nothing"),
            (late, "has blocks above the diagonal"),
            (np.ones((5, 5), bool), "(5, 5); [heads x] 4 x 4 blocks are wanted"),
            (good.astype(float), "holds no matrix of truth values"),
            (np.stack([good] * 3), "3 heads; 4 are wanted"),
        ):
            self.refused(words, "--mask", self.saved(array))
        self.refused("no file of NumPy", "--mask", self.config)
        self.refused("No such file", "--mask", self.folder / "none.npy")

    def test_memory_is_counted_first(self):
        args = qwen.checked(qwen.parse(["--out", "x", "--tokens", "65536", "--no-shared-weights"]))
        with self.assertRaisesRegex(SystemExit, r"weights of 28 layers need \d+\.\d GB, and 1.0 GB are free"):
            qwen.check_memory(args, 1e9)
        qwen.check_memory(args, 80e9)
        self.assertGreater(sizes.memory_bytes(sizes.QWEN, 28, 4096), 15.2e9)

    @NEEDS_SAFETENSORS
    def test_a_checkpoint_that_does_not_fit_is_told_in_one_line(self):
        self.arguments("--checkpoint", self.checkpoint())
        bias, head = "model.layers.1.self_attn.k_proj.bias", "lm_head.weight"

        def without(*shards):
            for shard in shards:
                shard.pop(bias, None)
                shard.pop(head, None)

        def reshaped(*shards):
            next(s for s in shards if bias in s)[bias] = np.zeros(7, np.float16)

        self.refused(f"has no {bias} and 1 more tensors", "--checkpoint", self.checkpoint(without))
        self.refused(f"{bias} is (7,); (256,) is wanted", "--checkpoint", self.checkpoint(reshaped))
        (self.checkpoint() / "1.safetensors").write_bytes(b"no shard")
        self.refused("1.safetensors: ", "--checkpoint", self.folder)
        (self.folder / "1.safetensors").unlink()
        self.refused("1.safetensors: ", "--checkpoint", self.folder)

    def test_a_folder_without_an_index_or_python_without_safetensors_is_told_in_one_line(self):
        index = self.folder / "model.safetensors.index.json"
        self.refused("index.json: No such file", "--checkpoint", self.folder)
        index.write_text("[]")
        self.refused("no index of shards", "--checkpoint", self.folder)
        index.write_text(json.dumps({"weight_map": dict.fromkeys(TINY.tensors(2), "0.safetensors")}))
        with unittest.mock.patch.dict(sys.modules, {"safetensors": None}):
            self.refused("pip install safetensors", "--checkpoint", self.folder)


class Report(unittest.TestCase):
    def test_it_has_a_table_of_each_number_of_tokens(self):
        args = argparse.Namespace(
            sizes=TINY, layers=1, shared_weights=True, checkpoint=None, block=64, zeros=0.9, mask=None, seed=1,
            pattern="random", attention_block=64, kept={256: patterns.causal(4)},
        )  # fmt: skip
        document = {"context": qwen.context(args, "GPU", ("cuDNN", "FlexAttention"), "2.11"), "rows": []}
        for mode, ms in (("dense", 8.0), ("both", 2.0)):
            made = rows.totals([[(0, "attention", ms), (0, "o", ms)]], 2, 1)
            made["metrics"]["logits_difference"] = 0.5
            document["rows"].append({"n": 256, "kernel": mode, "status": "ok", "device_bytes": None, **made})
        self.assertIn("1 layers measured, times scaled to 2", report.said(document))
        ((tokens, modes),) = report.by_tokens(document).items()
        header, lines = report.table(modes)
        table = {name: cells for name, *cells in lines}
        self.assertEqual((tokens, header), (256, ["ms", "dense", "both"]))
        self.assertEqual(table["attention"], ["16.00", "4.00"])
        self.assertEqual(table["dense / this"], ["1.00", "4.00"])
        self.assertEqual(table["slowest layer, ms"], ["16.000", "4.000"])


def plain_attention(q, k, v, kept):
    """In fp64; kept: [heads x tokens x tokens]."""
    q, k, v = (x.double().cpu() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    out = torch.empty_like(q)
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head // group].T / q.shape[2] ** 0.5
        scores[~kept[head % len(kept)]] = -torch.inf
        out[:, head] = scores.softmax(-1) @ v[:, head // group]
    return out


def plain_logits(weights, ids, kept):
    """The decoder in fp64, a token's halves of a head as complex numbers."""

    def norm(x, weight):
        return x / (x.square().mean(-1, keepdim=True) + TINY.rms_norm_eps).sqrt() * weight.double().cpu()

    half = TINY.head_size // 2
    turns = torch.arange(len(ids))[:, None] * TINY.rope_theta ** (-torch.arange(half).double() / half)

    def rotated(x):
        turned = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * turns)[:, None]
        return torch.cat((turned.real, turned.imag), -1)

    x = weights.embedded.cpu()[ids.cpu()].double()
    for layer in weights.layers:
        linear = {name: weight.double().cpu() for name, weight in layer.linear.items()}
        qkv = norm(x, layer.norms[0]) @ linear["qkv"].T + layer.bias.double().cpu()
        heads = qkv.reshape(len(ids), -1, TINY.head_size)
        few = TINY.num_key_value_heads
        q, k, v = heads[:, : -2 * few], heads[:, -2 * few : -few], heads[:, -few:]
        x = x + plain_attention(rotated(q), rotated(k), v, kept).flatten(1) @ linear["o"].T
        gate, up = (norm(x, layer.norms[1]) @ linear["gate_up"].T).chunk(2, -1)
        x = x + (gate * torch.sigmoid(gate) * up) @ linear["down"].T
    return (norm(x, weights.norm) @ weights.head.double().cpu().T)[-1]


@NEEDS_TORCH
class Decoder(Folder):
    def test_every_mode_gives_the_logits_of_a_plain_decoder(self):
        import linear as products
        import model
        import prefill

        for device in DEVICES:
            for precision, within in (("fp16", 0.01), ("bf16", 0.08)):
                args = self.arguments("--device", device, "--precision", precision, "--samples", "1")
                args.shared_weights = False
                run = prefill.Prefill(args)
                random = torch.Generator(device).manual_seed(args.seed)
                ids = torch.randint(TINY.vocab_size, (TOKENS,), generator=random, device=device)
                expected = {}
                whole = torch.ones(1, TOKENS, TOKENS, dtype=torch.bool).tril()
                few = torch.as_tensor(np.kron(args.kept[TOKENS], np.ones((BLOCK, BLOCK), bool)))[None] & whole
                dense, blocks = run._products(products.dense), None
                self.assertIsInstance(run._weights.layers[0], model.Layer)
                for mode in rows.MODES:
                    if mode == "pruned":
                        for layer in run._weights.distinct():
                            for weight in layer.linear.values():
                                products.prune_(weight, 64, 0.5)
                        blocks = run._products(products.blocks)
                    mask = few if mode in rows.SPARSE_ATTENTION else whole
                    expected = plain_logits(run._weights, ids, mask)
                    used = blocks if mode in rows.SPARSE_LINEAR else dense
                    row, logits = run._measured(TOKENS, mode, used)
                    with self.subTest(f"{device} {precision} {mode}"):
                        difference = (logits.cpu().double() - expected).abs().max() / expected.abs().max()
                        self.assertLess(float(difference), within)
                        self.assertEqual(len(row["layers_us"]), 2)

    def test_blocks_with_the_least_squares_are_dropped(self):
        import linear as products

        weight = torch.ones(128, 256)
        weight[:64, 64:128], weight[64:, :64] = 0.1, -3
        products.prune_(weight, 64, 0.125)
        self.assertEqual(int((weight == 0).sum()), 64 * 64)
        self.assertTrue((weight[:64, 64:128] == 0).all())

    @NEEDS_SAFETENSORS
    def test_a_checkpoint_is_read_into_products(self):
        import model

        folder = self.checkpoint()
        weights = model.checkpoint_weights(TINY, 2, folder, "cpu", torch.float16)
        told = {}
        for shard in folder.glob("*.safetensors"):
            told |= safetensors.numpy.load_file(shard)
        layer, name = weights.layers[1], "model.layers.1"
        np.testing.assert_array_equal(layer.linear["gate_up"][384:], told[f"{name}.mlp.up_proj.weight"])
        np.testing.assert_array_equal(layer.bias[-256:], told[f"{name}.self_attn.v_proj.bias"])
        np.testing.assert_array_equal(weights.head, told["lm_head.weight"])

    def test_the_program_writes_what_the_scripts_read(self):
        out = self.folder / "out.json"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        command = [sys.executable, EXAMPLE / "qwen.py", "--out", out, "--config", self.config, "--tokens", TOKENS]
        command += ["--device", "cpu", "--samples", 1, "--block", 64, "--attention-block", 64, "--pattern", "top"]
        command += ["--attention-zeros", 0.3, "--layers", 1]
        told = subprocess.run(map(str, command), capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        sys.path.insert(0, str(SOURCE / "scripts"))
        from result_data import load_example

        document = load_example(out)
        self.assertEqual([row["kernel"] for row in document["rows"]], list(rows.MODES))
        self.assertIn("find blocks_us", document["rows"][1]["metrics"])


@NEEDS_TORCH
class Attention(unittest.TestCase):
    def setUp(self):
        random = torch.Generator().manual_seed(2)
        shapes = ((TOKENS, 4, 128), (TOKENS, 2, 128), (TOKENS, 2, 128))
        self.qkv = [torch.randn(shape, generator=random).half() for shape in shapes]

    def kernels(self):
        """(device, kernel that attends there)."""
        import attention

        own = {attention.sparse_kernel(TINY, device): device for device in DEVICES}
        return [*((device, attention.FLEX_ATTENTION) for device in DEVICES), *((d, k) for k, d in own.items())]

    def close(self, got, kept):
        whole = kept.repeat_interleave(BLOCK, -2).repeat_interleave(BLOCK, -1).tril()
        expected = plain_attention(*self.qkv, whole)
        torch.testing.assert_close(got.cpu().double(), expected, rtol=0.01, atol=0.01)

    def test_a_pattern_is_what_is_attended_to(self):
        import attention

        alone = np.eye(4, dtype=bool)
        alone[2, 2], alone[2, 1] = False, True  # a row without its diagonal
        heads = np.stack([patterns.random(4, 0.3, seed) for seed in range(4)])
        for kept in (patterns.causal(4), alone, heads):
            for device, kernel in self.kernels():
                attend = attention.Static(kept, BLOCK, kernel, device)
                got = attend(*(x.to(device) for x in self.qkv), None)
                self.close(got, torch.as_tensor(kept.reshape(-1, 4, 4)))

    def test_a_block_mask_has_the_blocks_of_the_pattern(self):
        import attention

        kept = torch.as_tensor(np.stack([patterns.random(6, 0.4, seed) for seed in range(3)]))
        mask = attention.mask_of(kept, BLOCK)
        np.testing.assert_array_equal(mask.to_dense()[0].bool(), kept)
        np.testing.assert_array_equal(mask.kv_num_blocks[0], np.ones((3, 6)))  # which are cut in half
        np.testing.assert_array_equal(mask.full_kv_num_blocks[0], kept.sum(-1) - 1)

    def test_top_blocks_are_those_with_the_largest_products_of_means(self):
        import attention

        q, k, _ = self.qkv
        means = [x.float().reshape(4, BLOCK, -1, 128).mean(1) for x in (q, k)]
        quota = patterns.quota(4, 0.5)
        kept = np.zeros((4, 4, 4), bool)
        for head, row in np.ndindex(4, 4):
            scores = [float(means[0][row, head] @ means[1][column, head // 2]) for column in range(row)]
            best = sorted(range(row), key=lambda column: -scores[column])[: quota[row] - 1]
            kept[head, row, [row, *best]] = True
        order = attention.top_blocks(q, k, BLOCK)
        mask = attention.Top(quota, BLOCK, attention.FLEX_ATTENTION, "cpu").pattern(order)
        np.testing.assert_array_equal(mask.to_dense()[0].bool(), kept)
        for device, kernel in self.kernels():
            marks = []
            attend = attention.Top(quota, BLOCK, kernel, device)
            got = attend(*(x.to(device) for x in self.qkv), marks.append)
            self.assertEqual(marks, ["find blocks"])
            self.close(got, torch.as_tensor(kept))


if __name__ == "__main__":
    main()
