#!/usr/bin/env python3
"""Times one product on several GPUs as PyTorch has it: torch.sparse, which calls cuSPARSE, and torch.distributed.

  torchrun --nproc-per-node 2 scripts/scaling_torch.py graph.mtx -n 128      a line for each matrix and algorithm

The algorithms are those of CAGNET (Tripathy, Yelick, Buluc: Reducing Communication in Graph Neural Network
Training, 2020). 1D: A, B and C by rows, all of B gathered. 1.5D, on P GPUs in P / c groups of c, c the greatest
whose square divides P: the c GPUs of a group hold the same rows, each multiplies by its share of the blocks of B, which
their owners broadcast, and the group adds up. With less than four GPUs that is 1D.

Values of A and B are drawn in [-1, 1), A and B in fp16 on GPUs (fp32 on the CPU), C as torch gives it. Every C is
compared with a product in fp32 before it is timed. A time is the median over samples of the slowest rank's. --csv
keeps the lines with the columns of `spmmbench run --csv`.
"""

import argparse
import csv
import os
import pathlib
import statistics
import time

from command_line import Parser, require

WARM_UPS, SAMPLES, LAUNCHES = 3, 10, 16  # launches of a sample, back to back
ROW_IN_NONZEROS = 4  # a row weighs as much as so many nonzeros, as in src/multi/partition.hpp


def parse_arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrices", nargs="+", type=pathlib.Path, help="Matrix Market files")
    parser.add_argument("-n", type=int, default=128, help="columns of B; default: 128")
    parser.add_argument("--csv", type=pathlib.Path, help="a file for the times")
    args = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("no rank: start it with torchrun --nproc-per-node GPUS")
    return args


def cuts(a, parts):
    """Rows of A where each of the parts begins and ends: equal sums of nonzeros and rows."""
    weights = a.indptr + ROW_IN_NONZEROS * np.arange(a.shape[0] + 1)
    inner = [int(np.searchsorted(weights, weights[-1] * part / parts)) for part in range(1, parts)]
    return [0, *inner, a.shape[0]]


class Job:
    """This rank's place in groups of `replicas` that have the same rows of A, B and C."""

    def __init__(self, a, b, replicas, device, dtype):
        self.parts = world() // replicas
        self.part, self.replica = divmod(dist.get_rank(), replicas)
        ends = cuts(a, self.parts)
        self.rows = slice(ends[self.part], ends[self.part + 1])
        # All ranks make all groups, in one order.
        same_rows = [dist.new_group([p * replicas + r for r in range(replicas)]) for p in range(self.parts)]
        same_replica = [dist.new_group([p * replicas + r for p in range(self.parts)]) for r in range(replicas)]
        self.group, self.column = same_rows[self.part], same_replica[self.replica]
        self.replicas, self.own = replicas, b[self.rows].to(device, dtype).contiguous()
        if replicas == 1:
            self.block = max(end - begin for begin, end in zip(ends, ends[1:]))
            places = np.concatenate([p * self.block + np.arange(ends[p + 1] - ends[p]) for p in range(self.parts)])
            wide = a[self.rows].tocoo()
            shape = (wide.shape[0], self.parts * self.block)
            self.a = sparse(scipy.sparse.csr_matrix((wide.data, (wide.row, places[wide.col])), shape), device, dtype)
            self.sent = torch.zeros(self.block, b.shape[1], device=device, dtype=dtype)
            self.all = torch.empty(shape[1], b.shape[1], device=device, dtype=dtype)
            self.sent[: len(self.own)] = self.own
        else:
            self.stages = range(self.replica, self.parts, replicas)
            self.a = {k: sparse(a[self.rows, ends[k] : ends[k + 1]], device, dtype) for k in self.stages}
            self.blocks = {k: torch.empty(ends[k + 1] - ends[k], b.shape[1], device=device, dtype=dtype) for k in self.stages}
            self.blocks[self.part] = self.own

    def product(self):
        if self.replicas == 1:
            dist.all_gather_into_tensor(self.all, self.sent)
            return self.a @ self.all
        total = torch.zeros(self.rows.stop - self.rows.start, self.own.shape[1], device=self.own.device, dtype=self.own.dtype)
        for k in self.stages:
            dist.broadcast(self.blocks[k], k * self.replicas + self.replica, group=self.column)
            total += self.a[k] @ self.blocks[k]
        dist.all_reduce(total, group=self.group)
        return total


def world():
    return dist.get_world_size()


def sparse(a, device, dtype):
    a = a.tocsr()
    parts = [torch.from_numpy(part.astype(kind)) for part, kind in ((a.indptr, np.int32), (a.indices, np.int32), (a.data, np.float32))]
    return torch.sparse_csr_tensor(*parts[:2], parts[2].to(dtype), a.shape, device=device)


def sample_us(work, device):
    if device.type == "cuda":
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(LAUNCHES):
            work()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) * 1e3 / LAUNCHES
    began = time.perf_counter()
    for _ in range(LAUNCHES):
        work()
    return (time.perf_counter() - began) * 1e6 / LAUNCHES


def median_us(work, device):
    """Of the slowest rank's samples, each behind a barrier."""
    times = []
    for _ in range(WARM_UPS + SAMPLES):
        dist.barrier()
        slowest = torch.tensor([sample_us(work, device)], device=device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        times.append(slowest.item())
    return statistics.median(times[WARM_UPS:])


def measure(path, n, device):
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    a = scipy.sparse.csr_matrix(scipy.io.mmread(path))
    generator = np.random.default_rng(1)
    a.data = generator.uniform(-1, 1, a.nnz).astype(np.float32)
    b = torch.from_numpy(generator.uniform(-1, 1, (a.shape[1], n)).astype(np.float32))
    if a.shape[0] != a.shape[1]:
        raise SystemExit(f"{path}: not square")
    replicas = int(world() ** 0.5)
    while world() % (replicas * replicas) != 0:
        replicas -= 1
    for name, count in dict.fromkeys((("1D", 1), ("1.5D", replicas))):
        if name == "1.5D" and count == 1:
            continue
        job = Job(a, b, count, device, dtype)
        expected = torch.from_numpy(a[job.rows] @ b.numpy())
        scale = torch.from_numpy(abs(a[job.rows]) @ abs(b.numpy())).clamp(min=1e-3)
        error = torch.tensor([((job.product().float().cpu() - expected).abs() / scale).max().item()], device=device)
        dist.all_reduce(error, dist.ReduceOp.MAX)
        yield name, median_us(job.product, device), error.item()


def main():
    args = parse_arguments()
    require("numpy", "scipy", "torch")
    global np, scipy, torch, dist
    import numpy as np
    import scipy.io
    import scipy.sparse
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rows = []
    for path in args.matrices:
        for name, us, error in measure(path, args.n, device):
            rows.append((path.stem, args.n, "fp16" if on_gpu else "fp32", "torch.sparse", name, world(), us))
            if dist.get_rank() == 0:
                print(f"{path.stem} N={args.n} {name} on {world()}: {us:.1f} us, error {error:.1e}", flush=True)
    if args.csv and dist.get_rank() == 0:
        with args.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([("matrix", "n", "precision", "kernel", "split", "gpus", "hot_median_us"), *rows])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
