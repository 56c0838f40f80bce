"""Measures the modes of qwen.py: one row for each and each number of tokens."""

import gc
import time

import torch

import attention
import linear
import model
import patterns
import sizes
from rows import LARGEST_DIFFERENCE, LINEAR, SPARSE_ATTENTION, SPARSE_LINEAR, totals

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
WARM_UP_PASSES = 2


class Clock:
    """When operations end: events on the GPU, which a CUDA graph records anew with each launch, or the
    wall."""

    def __init__(self, on_gpu):
        self._on_gpu = on_gpu

    def _now(self):
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True, external=True)
        event.record()
        return event

    def start(self):
        self._layer, self._ends = 0, [(None, None, self._now())]

    def mark(self, operation):
        self._ends.append((self._layer, operation, self._now()))

    def next_layer(self):
        self._layer += 1

    def spans(self):
        """(layer, operation, ms) of the last pass, which has ended."""
        return [
            (layer, operation, self._ms(before, now))
            for (_, _, before), (layer, operation, now) in zip(self._ends, self._ends[1:])
        ]

    def _ms(self, before, now):
        return before.elapsed_time(now) if self._on_gpu else 1e3 * (now - before)


class Prefill:
    def __init__(self, args):
        self._args, self._on_gpu = args, args.device == "cuda"
        self._clock, dtype = Clock(self._on_gpu), DTYPES[args.precision]
        if args.checkpoint:
            made = (args.sizes, args.layers, args.checkpoint, args.device, dtype)
            self._weights = model.checkpoint_weights(*made)
        else:
            made = (args.sizes, args.layers, args.shared_weights, args.seed, args.device, dtype)
            self._weights = model.random_weights(*made)
        self._dense_attention = attention.Dense(args.sizes, args.device, dtype)
        self.dense_attention = self._dense_attention.name
        self.sparse_attention = attention.sparse_kernel(args.sizes, args.device)

    def rows(self):
        """Rows, one after another; weights are pruned behind the modes that need them whole."""
        args = self._args
        dense = self._products(linear.dense)
        for tokens in args.tokens:
            if "dense" in args.modes:
                yield self._row(tokens, "dense", dense)[0]
            expected = None
            if "flex" in args.modes:
                row, expected = self._row(tokens, "flex", dense)
                yield row
            if "attention" in args.modes:
                yield self._row(tokens, "attention", dense, expected)[0]
        if "pruned" not in args.modes:
            return
        for layer in self._weights.distinct():
            for weight in layer.linear.values():
                linear.prune_(weight, args.block, args.zeros)
        blocks = self._products(linear.blocks)
        for tokens in args.tokens:
            row, expected = self._measured(tokens, "pruned", dense)
            yield row
            if "linear" in args.modes:
                yield self._row(tokens, "linear", blocks, expected)[0]
            if "both" in args.modes:
                _, expected = self._measured(tokens, "flex", dense)
                yield self._row(tokens, "both", blocks, expected)[0]

    def _products(self, kind):
        """For each layer {name: product}."""
        made = {
            layer: {name: kind(name, weight) for name, weight in layer.linear.items()}
            for layer in self._weights.distinct()
        }
        return [made[layer] for layer in self._weights.layers]

    def _attention(self, mode, tokens):
        args = self._args
        if mode not in SPARSE_ATTENTION:
            return self._dense_attention
        kind = attention.Top if args.pattern == patterns.TOP and not args.mask else attention.Static
        kernel = attention.FLEX_ATTENTION if mode == "flex" else self.sparse_attention
        return kind(args.kept[tokens], args.attention_block, kernel, args.device)

    def _row(self, tokens, mode, products, expected=None):
        """(a row, logits), these compared with `expected` ones."""
        row, logits = self._measured(tokens, mode, products)
        if expected is not None:
            difference = float((logits - expected).abs().max())
            largest = float(expected.abs().max())
            row["metrics"] |= {"logits_difference": difference, "logits_largest": largest}
            allowed = LARGEST_DIFFERENCE[self._args.precision] * largest
            if not difference <= allowed:  # NaN
                row["status"] = "wrong"
                row["reason"] = f"logits differ by {difference:.2g}, at most {allowed:.2g} are allowed"
        elif not logits.isfinite().all():
            row |= {"status": "wrong", "reason": "logits are not finite"}
        return row, logits

    def _measured(self, tokens, mode, products):
        """(a row, logits)."""
        args = self._args
        generator = torch.Generator(args.device).manual_seed(args.seed)
        ids = torch.randint(args.sizes.vocab_size, (tokens,), generator=generator, device=args.device)
        decoder = model.Decoder(args.sizes, self._weights, tokens, args.device)
        attend = self._attention(mode, tokens)

        def one_pass():
            return decoder(ids, products, attend, self._clock)

        passes, logits, peak = (self._on_graph if self._on_gpu else self._launched)(one_pass)
        if peak and mode in SPARSE_LINEAR:
            distinct = {id(layer): layer for layer in products}.values()
            peak += sum(x.device_bytes(tokens) for layer in distinct for x in layer.values())
        timed = totals(passes, args.sizes.num_hidden_layers, args.layers)
        timed["metrics"] |= self._tflops(tokens, mode, timed["metrics"])
        return {
            "matrix": {"name": args.config.resolve().parent.name if args.config else "Qwen2.5-7B"},
            "kernel": mode,
            "n": tokens,
            "precision": args.precision,
            "c_type": args.precision,
            "status": "ok",
            "reason": "",
            "device_bytes": peak,
            **timed,
        }, logits

    def _tflops(self, tokens, mode, metrics):
        """Of the work that zeros leave."""
        args = self._args
        linear = sum(sizes.linear_flops(args.sizes, name, tokens) for name in LINEAR)
        attended = sizes.attention_flops(args.sizes, tokens)
        if mode in SPARSE_LINEAR:
            linear *= 1 - args.zeros
        if mode in SPARSE_ATTENTION:
            kept = patterns.counts(args.kept[tokens])
            attended = sizes.block_attention_flops(args.sizes, *kept, args.attention_block)
        rates = {}
        for name, flops, operations in (("linear", linear, LINEAR), ("attention", attended, ("attention",))):
            us = sum(metrics[f"{operation}_us"] for operation in operations)
            rates[f"{name}_tflops"] = 1e-6 * flops * args.sizes.num_hidden_layers / us
        return rates

    def _launched(self, one_pass):
        passes = []
        for _ in range(self._args.samples):
            logits = one_pass()
            passes.append(self._clock.spans())
        return passes, logits, None

    def _on_graph(self, one_pass):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(WARM_UP_PASSES):
                one_pass()
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        graph, passes = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(graph):
            logits = one_pass()
        for _ in range(1 + self._args.samples):  # the first brings the clock up
            graph.replay()
            torch.cuda.synchronize()
            passes.append(self._clock.spans())
        return passes[1:], logits.clone(), torch.cuda.max_memory_allocated()
