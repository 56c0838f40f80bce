#!/usr/bin/env python3
"""Trains a graph network on mini-batches of sampled neighbours: each step has new sparse matrices,
so that preparation counts in full.

  minibatch.py --out minibatch.json 'gen:rmat?scale=18&edge_factor=16' SNAP/com-Amazon
  report.py minibatch.json                        a table of it

A layer is H' = relu(A H W), A the mean over the neighbours that were sampled for it, on the GPU (see
neighbours.py). Every backend gets the same seeds, blocks, features and initial weights; weights, loss
and Adam are fp32, and with fp16 the products take and give fp16.

For each backend: a step of training as Python launches it, without sampling; and its sparse products
alone, each layer's forward and backward, with all that the backend prepares for a matrix that it has
not seen. Backends take turns. Sampling is timed by itself. torch.sparse and PyTorch Geometric are tried
in several forms; the one whose products are fastest counts.
"""

import itertools
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import require, run  # noqa: E402

require("numpy", "scipy", "torch", "spmmbench")

import backends  # noqa: E402
import graphs  # noqa: E402
import torch  # noqa: E402
from gcn import (  # noqa: E402
    CLASSES, LEARNING_RATE, LOSS_SCALE, Clock, Task, context, numbers, parsed, parser_of, quartiles, write,
)  # fmt: skip
from neighbours import Graph  # noqa: E402

BACKENDS = ("torch", "pyg", "csr_merge", "auto", "checked")
WARM_UP_STEPS = 3


class Batches:
    """Sampled batches of one graph: blocks, and the features and labels of their vertices."""

    def __init__(self, args, matrix, width, dtype, seeds_of_step):
        graph, task = Graph(matrix, args.device), Task(matrix, width, args.seed, args.device)
        random = torch.Generator(args.device).manual_seed(args.seed)
        clock, self.sample_ms, self.batches = Clock(args.device), [], []
        for _ in range(WARM_UP_STEPS + args.steps):
            seeds = torch.randperm(graph.vertices, generator=random, device=args.device)
            seeds = seeds[:seeds_of_step].sort().values
            found = []
            self.sample_ms.append(
                clock.ms(lambda s=seeds, f=found: f.extend(graph.sample(s, args.fanouts, random)))
            )
            read, blocks = found
            self.batches.append((blocks, task.features[read].to(dtype), task.labels[seeds]))

    def __iter__(self):
        return iter(self.batches)

    @property
    def nonzeros(self):
        """Of all blocks of a step, on average."""
        return sum(len(b.col_idx) for blocks, *_ in self.batches for b in blocks) // len(self.batches)


class Training:
    """One model, whose products are made anew in each step by `make`."""

    def __init__(self, args, make, width, precision):
        random = torch.Generator().manual_seed(args.seed)
        self._weights = torch.nn.ParameterList()
        for columns in [width] * (len(args.fanouts) - 1) + [CLASSES]:
            bound = (6 / (width + columns)) ** 0.5  # Glorot and Bengio, 2010
            weight = torch.rand((width, columns), generator=random) * 2 * bound - bound
            self._weights.append(torch.nn.Parameter(weight.to(args.device)))
        on_gpu = args.device.type == "cuda"
        self._optimiser = torch.optim.Adam(self._weights, lr=LEARNING_RATE, fused=on_gpu)
        self._make, self._scale = make, LOSS_SCALE[precision]

    def step(self, blocks, x, labels):
        """One step; returns its loss."""
        self._optimiser.zero_grad(set_to_none=True)
        for layer, (block, weight) in enumerate(zip(blocks, self._weights)):
            x = self._make(block)(x) @ weight.to(x.dtype)
            if layer + 1 < len(blocks):
                x = torch.relu(x)
        loss = torch.nn.functional.cross_entropy(x.float(), labels)
        (loss * self._scale).backward()
        if self._scale != 1:
            torch._foreach_mul_([p.grad for p in self._weights], 1 / self._scale)
        self._optimiser.step()
        return loss.detach()


def products(make, blocks, x):
    """The sparse products of a step alone, with one backward pass, as in a step: the features get no
    gradient, all other operands do."""
    for layer, block in enumerate(blocks):
        x = make(block)(x)
        if layer == 0:
            x.requires_grad_()
    if len(blocks) > 1:
        x.backward(x.detach())


def in_turns(args, batches, calls):
    """({name: milliseconds of call(batch)}, {name: why it cannot}) of {name: call}. Each turn is all steps of one
    after the other, so that what slows the host down for a while does not slow one alone."""
    clock, times, reasons = Clock(args.device), {name: [] for name in calls}, {}
    for _, (name, call) in itertools.product(range(args.turns), calls.items()):
        try:
            if name not in reasons:
                turn = [clock.ms(lambda b=batch, c=call: c(b)) for batch in batches]
                times[name] += turn[WARM_UP_STEPS:]
        except Exception as error:  # another may
            reasons[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return {name: found for name, found in times.items() if name not in reasons}, reasons


def measure(args, batches, width, precision):
    """{backend: the fields of a row that depend on it}."""
    forms = {backend: backends.forms_of_blocks(backend, precision) for backend in args.backends}
    calls = {
        (backend, form): lambda batch, m=make: products(m, *batch[:2])
        for backend, all_of in forms.items()
        for form, make in all_of.items()
    }
    times, reasons = in_turns(args, batches, calls)
    rows, fastest = {}, {}
    for backend in args.backends:
        refused = {form: why for (of, form), why in reasons.items() if of == backend}
        tried = {form: quartiles(ms) for (of, form), ms in times.items() if of == backend}
        if not tried:
            reason = "; ".join(f"{form}: {why}" for form, why in refused.items())
            rows[backend] = {"status": "failed", "reason": reason}
            continue
        form = fastest[backend] = min(tried, key=lambda name: tried[name]["median"])
        rows[backend] = {"status": "ok", "form": form, "refused_forms": refused, "product_ms": tried[form]}
    trainings = {b: Training(args, forms[b][form], width, precision) for b, form in fastest.items()}
    losses = {backend: [] for backend in trainings}
    steps = {b: lambda batch, b=b: losses[b].append(trainings[b].step(*batch)) for b in trainings}
    times, reasons = in_turns(args, batches, steps)
    for backend in trainings:
        if backend in reasons:
            rows[backend].update(status="failed", reason=reasons[backend])
            continue
        rows[backend]["step_ms"] = quartiles(times[backend])
        rows[backend]["losses"] = [round(float(loss), 6) for loss in losses[backend]]
    return rows


def parse():
    parser = parser_of(__doc__, BACKENDS, ("fp32", "tf32", "fp16"))
    parser.add_argument(
        "--batches", type=numbers, default=[1024, 16384], help="vertices whose loss a step takes"
    )
    parser.add_argument(
        "--fanouts", type=numbers, default=[5, 10, 15], help="neighbours, from the first layer on"
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3, help="how often each backend makes all steps")
    return parsed(parser, BACKENDS, ("batches", "steps", "turns", "fanouts", "widths"))


def main():
    args = parse()
    start, rows = time.perf_counter(), []
    told = {"fanouts": args.fanouts, "steps": args.steps}
    document = {"context": {**context(args, len(args.fanouts)), **told}, "rows": rows}
    for source in args.graphs:
        name, adjacency = graphs.load(source, args.spmmbench, args.downloads)
        matrix = graphs.normalised(adjacency)  # with self loops: a vertex may be its own neighbour
        about = {"name": name, "vertices": matrix.shape[0], "nonzeros": matrix.nnz}
        asked = itertools.product(args.batches, args.widths, args.precision)
        for batch, width, precision in asked:
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            dtype = backends.dtype_of(precision)
            batches = Batches(args, matrix, width, dtype, batch)
            for backend, measured in measure(args, batches, width, precision).items():
                row = {"graph": about, "batch": batch, "width": width, "precision": precision}
                row.update(backend=backend, nonzeros=batches.nonzeros)
                row["sample_ms"] = quartiles(batches.sample_ms[WARM_UP_STEPS:])
                row.update(measured)
                rows.append(row)
                write(pathlib.Path(args.out), document)
                line = f"{name} batch {batch} width {width} {precision} {backend}: "
                if row["status"] == "ok":
                    line += f"{row['product_ms']['median']:.3f} ms of products, "
                    line += f"{row['step_ms']['median']:.3f} ms a step ({row['form']})"
                else:
                    line += row["reason"]
                print(f"{time.perf_counter() - start:.0f} s: {line}", flush=True)


if __name__ == "__main__":
    run(main)
