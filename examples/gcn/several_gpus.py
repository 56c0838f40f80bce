#!/usr/bin/env python3
"""Trains the network of gcn.py on one GPU and, divided by vertices, on all GPUs of a job, and says how long an
epoch takes with each and how far their losses part, beside how far trainings on one GPU part by rounding alone.

  torchrun --nproc-per-node 2 several_gpus.py --precision fp16 --width 256 'gen:rmat?scale=18&edge_factor=64'

Graphs are those of gcn.py. Each rank has as many vertices as the others: their features, labels and rows of the
adjacency matrix (spmmbench.torch.DistributedMatrix), and all weights. A product gathers the features of all
vertices; gradients of weights are added up over the ranks. Kernels are settled before. Both trainings are launched
by Python, without CUDA graphs.

Rounding alone: the training on one GPU once more, and --nudges trainings on it, each of which begins with every weight an
ulp of the precision higher or lower, at random. The divided training rounds elsewhere in every product: the columns of A that
meet a rank's own vertices and the others are multiplied apart, and the sums of the gradients have another order. Losses are
equal within noise where they part by no more than the farthest of these trainings. Some losses stand side by side: on one GPU,
on it once more, and on all.
"""

import argparse
import os
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy", "scipy", "torch", "spmmbench")

import backends  # noqa: E402
import gcn  # noqa: E402
import graphs  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

# Its functions keep the process group that there is when it is loaded, and an optimiser loads it. The threads of a
# group that is kept outlive the interpreter, which they need to free a tensor: that would abort the process.
import torch.distributed.nn  # noqa: E402, F401

from spmmbench.torch import DistributedMatrix  # noqa: E402

WARM_UP_EPOCHS = 3
SHOWN_LOSSES = 6  # of a training, the first and the last among them


class DividedTraining(gcn.Training):
    """A rank's part of a training: it has the vertices `own`."""

    def __init__(self, matrix, task, width, precision, seed):
        self._of_all = len(task.labels)
        super().__init__(matrix, task, width, precision, seed)
        self._features = self._features[matrix.rows_of_x]
        self._labels = self._labels[matrix.rows]

    def epoch(self):
        self._optimiser.zero_grad(set_to_none=True)
        output = self._model(self._product, self._features).float()
        loss = torch.nn.functional.cross_entropy(output, self._labels, reduction="sum") / self._of_all
        (loss * self._scale).backward()
        gradients = [parameter.grad for parameter in self._model.parameters()]
        added = torch.cat([loss.detach().reshape(1), *(gradient.reshape(-1) for gradient in gradients)])
        dist.all_reduce(added)
        self.loss.copy_(added[0])
        parts = added[1:].split([gradient.numel() for gradient in gradients])
        torch._foreach_copy_(gradients, [x.view_as(y) for x, y in zip(parts, gradients)])
        torch._foreach_mul_(gradients, 1 / self._scale)
        self._optimiser.step()


def nudged(training, precision, seed):
    """The training with other initial weights: each an ulp higher or lower."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in training.weights():
            signs = torch.randint(2, weight.shape, generator=random) * 2 - 1
            weight.mul_(1 + gcn.ULP[precision] * signs.to(weight.device))
    return training


def apart(losses, others):
    """The greatest relative distance of two losses of one step."""
    return max(abs(a - b) / a for a, b in zip(losses, others))


def train(training, epochs, device):
    """The median of an epoch in ms, and the losses."""
    clock = gcn.Clock(device)
    times, losses = [], []
    for _ in range(WARM_UP_EPOCHS + epochs):
        times.append(clock.ms(training.epoch))
        losses.append(training.loss.item())
    return statistics.median(times[WARM_UP_EPOCHS:]), losses


def side_by_side(columns):
    """A line for some of the epochs, with the loss of each training."""
    last = len(columns[0]) - 1
    for epoch in sorted({round(last * i / (SHOWN_LOSSES - 1)) for i in range(SHOWN_LOSSES)}):
        yield f"  epoch {epoch + 1}: " + "  ".join(f"{losses[epoch]:.5f}" for losses in columns)


def parse():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--precision", choices=gcn.LOSS_SCALE, default="fp16")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--nudges", type=int, default=4, help="trainings that show what rounding does; default: 4")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spmmbench", default="spmmbench", help="the program, for gen: graphs")
    parser.add_argument("--downloads", default="suitesparse", help="folder of SuiteSparse's files")
    args = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("no rank: start it with torchrun --nproc-per-node GPUS")
    return args


def main():
    args = parse()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
    first = dist.get_rank() == 0
    for source in args.graphs:
        name, adjacency = graphs.load(source, args.spmmbench, args.downloads)
        matrix = graphs.normalised(adjacency)
        task = gcn.Task(matrix, args.width, args.seed, device)
        settings = (task, args.width, args.precision, args.seed)
        widths = (args.width, gcn.CLASSES)
        if first:
            whole = backends.Spmmbench(
                backends.on_device(matrix, device, args.precision), args.precision, args.kernel
            )
            whole.matrix.settle(*widths)
            one_ms, one = train(gcn.Training(whole, *settings), args.epochs, device)
            repeated = train(gcn.Training(whole, *settings), args.epochs, device)[1]
            again = noise = apart(one, repeated)
            for seed in range(args.nudges):
                other = nudged(gcn.Training(whole, *settings), args.precision, seed)
                noise = max(noise, apart(one, train(other, args.epochs, device)[1]))
            del whole
        dist.barrier()
        divided = DistributedMatrix(matrix, kernel=args.kernel, precision=args.precision, device=device.type)
        for width in widths:
            divided.settle(width)
        all_ms, together = train(DividedTraining(divided, *settings), args.epochs, device)
        if first:
            far = apart(one, together)
            told = "equal within noise" if far <= noise else "more than noise"
            print(
                f"{name} width {args.width} {args.precision}: {one_ms:.3f} ms an epoch on one, {all_ms:.3f} on "
                f"{dist.get_world_size()}, {one_ms / all_ms:.2f} times as fast; loss {one[0]:.4f} to {one[-1]:.4f}, "
                f"apart by {far:.1e} at the most, on one once more by {again:.1e}, by rounding alone {noise:.1e}: {told}",
                flush=True,
            )
            print("\n".join(side_by_side((one, repeated, together))), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run(main)
