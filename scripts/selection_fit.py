"""What scripts/refit fits: factors of amounts of work, and a replay of what choosing by them loses.

A table of factors belongs to one kernel, or to several candidates of it that share one. For each range of N (Estimator::bounds) it has
one factor for each amount that is worth having, and for each precision by how much longer the kernel takes in it than in the first.
"""

import collections
import math

import numpy as np
from scipy.optimize import nnls

MOST = 2**31 - 1
FEWEST_CASES = 6  # from which factors are fitted
# Of a case in which the kernel takes over NEAR times the least time: what it takes there decides nothing.
NEAR, FAR_WEIGHT = 2, 0.3
# The factor of a penalty, without which few cases give one amount what several share (docs/decisions/selection-model.md).
RIDGE = 0.005
ROUNDS = 4  # of fitting the factors, then the precisions, then the factors
# What the choice of amounts minimises, in logarithms of times over the least: the loss of the first choice, and these times what else
# counts. All were chosen by held-out losses (docs/decisions/selection-model.md).
PRICE = 3e-5  # of a number: it has to gain this share of the time
# What another choice of amounts than the written one has to gain: many sets of amounts cost nearly the same, and which of them a search
# finds depends on where it begins.
SURE = 2e-4
TRIALS_COUNT = 3  # the loss of the fastest trial
FEW_CALLS = 3, 10, 30
FEW_COUNT = 0.3  # the loss of so few calls, where PLAIN ran
PLAIN = "csr_merge"  # needs no preparation
# The squared error of estimates: of factors that choose alike those count whose times are right, since a kernel that is taken to be
# faster than it is costs a trial (docs/decisions/selection-model.md).
ERROR_COUNTS = 0.2
# A case in which the fastest trial loses more costs as much as this part of a loss of all cases.
MOST_OF_ONE, COUNTS_AS = 1.1, 0.01
# An amount of preparation has to gain this share of the error.
PREPARATION_PRICE = 0.012
LEAST_MS = 0.01  # of preparation: shorter ones are fitted as if they took as long
# Of a copy of A, in ms: two copies differ by about 1 %, which beside a longer one hides what preparation takes beyond it.
MOST_COPY_MS = 10
# Kernels of which the one that is prepared soonest prepares the copy of A alone.
OF_CSR = ("csr_", "cusparse_csr_")
# The trials of auto, as in src/select/tune.cpp.
MOST_TRIALS = 8
SETTLED_CALLS = 20000  # each trial is expected to pay within so many
MAY_TAKE_LESS, WIDE_MAY_TAKE_LESS = 1.4, 1.3  # even if the kernel takes so many times less than estimated, the second from
WIDE_COLUMNS = 64  # columns of B on
COSTLY_TRIAL, COSTLY_MAY_TAKE_LESS = 50, 1.25  # the second there, if the trial takes more than so many products
MAY_TAKE_MORE = 1.25  # no trial, where none would pay if the best took so many times longer
TRIAL_US, TRIAL_CALLS = 200, 6  # what a trial takes beside preparation: measure_ms
UNMEASURED = 1e12  # us, added to what is only for trials: it ranks behind all others

Table = collections.namedtuple("Table", "factors scales")  # amount -> factor, precision -> times


def without_options(kernel):
    return kernel.split("?")[0]


def is_narrow(precision):
    return precision in ("fp16", "fp8_e4m3")


def bound_of(estimator, n):
    return next(bound for bound in (*estimator.bounds, MOST) if n <= bound)


def copy_ms(case):
    """Infinity where no row tells."""
    return min((ms for kernel, (_, ms) in case.times.items() if kernel.startswith(OF_CSR)), default=math.inf)


def beyond_copy(case, kernel):
    """Of preparation, in ms; all of it where no row tells what the copy takes."""
    copy = copy_ms(case)
    return max(case.times[kernel][1] - copy, 0) if math.isfinite(copy) else case.times[kernel][1]


def relative_fit(matrix, wanted, least, weight, ridge=0.0):
    """Factors of at least so much whose weighted logarithmic error is least, by reweighted relative errors. `ridge` times the squared
    shares that each amount has of the times is added to the squared errors."""
    used = np.flatnonzero(matrix.any(axis=0))
    scaled = matrix[:, used] / wanted[:, None]
    rest = np.maximum(1 - scaled @ least[used], 0.1)
    weights = weight
    for _ in range(6):
        rows = scaled * weights[:, None]
        # nnls of the normal equations, which are as few as the amounts.
        normal = rows.T @ rows + np.diag(ridge * np.square(scaled).sum(axis=0))
        half = np.linalg.cholesky(normal + 1e-12 * np.trace(normal) * np.eye(len(used)))
        found, _ = nnls(half.T, np.linalg.solve(half, rows.T @ (rest * weights)))
        weights = weight / np.sqrt(np.maximum(scaled @ (found + least[used]), 0.2))
    factors = least.copy()
    factors[used] += found
    return factors


class Group:
    """The cases that one row of a table is fitted to."""

    def __init__(self, table, bound, estimators):
        self.table, self.bound = table, bound
        sharing = [one for one in estimators.values() if one.table == table]
        least = {amount.name: amount.least for one in sharing for amount in one.us}
        self.names, self.least = list(least), np.array(list(least.values()))
        self.amounts, self.us, self.weights, self.precisions, self.cases, self.specs = [], [], [], [], [], []
        self.own = 0  # cases in which the candidate ran itself

    def add(self, index, case, spec, amounts, us, least_us):
        self.amounts.append([amounts.get(name, 0.0) for name in self.names])
        self.us.append(us)
        self.weights.append(1.0 if us < NEAR * least_us else FAR_WEIGHT)
        self.precisions.append(case.precision)
        self.cases.append(index)
        self.specs.append(spec)
        self.own += spec in case.times

    def close(self):
        self.amounts, self.us, self.weights = np.array(self.amounts), np.array(self.us), np.array(self.weights)
        self.cases, self.precisions = np.array(self.cases), np.array(self.precisions)

    def fit(self, kept, where):
        """Factors of the kept amounts, by the cases `where`, and how much longer each precision takes than the first."""
        amounts, us, weights, precisions = self.amounts[where] * kept, self.us[where], self.weights[where], self.precisions[where]
        least = self.least * kept
        names = sorted(set(precisions))
        scales = dict.fromkeys(names, 1.0)
        factors = relative_fit(amounts, us, least, weights, RIDGE)
        for _ in range(ROUNDS if len(names) > 1 else 0):
            ratio = np.log(us / np.maximum(amounts @ factors, 1e-9))
            mean = {name: np.average(ratio[precisions == name], weights=weights[precisions == name]) for name in names}
            scales = {name: math.exp(mean[name] - mean[names[0]]) for name in names}
            times = np.array([scales[name] for name in precisions])
            factors = relative_fit(amounts * times[:, None], us, least, weights, RIDGE)
        return factors, scales

    def estimates(self, factors, scales, where):
        # A precision that was left out of the fit counts as the first.
        times = np.array([scales.get(name, 1.0) for name in self.precisions[where]])
        return self.amounts[where] @ factors * times


def groups_of(cases, estimators, work):
    groups = {}
    for index, case in cases.items():
        least_us = min(us for us, _ in case.times.values())
        for spec, of in work[index].items():
            estimator = estimators[spec]
            # Where a kernel was not run with its options (pruned layers), the time without them stands for it: it is the same kernel in
            # the natural order. Where it was run it is fitted to its own times, considered or not.
            if of.standing == "left_out" and "?" not in spec:
                continue
            if spec not in case.times and estimator.table != spec:
                continue  # the other candidate of the table has the same time
            us, _ = case.times.get(spec) or case.times[without_options(spec)]
            bound = bound_of(estimator, int(case.n))
            key = estimator.table, is_narrow(case.precision) if estimator.apart else None, bound
            group = groups.setdefault(key, Group(estimator.table, bound, estimators))
            group.add(index, case, spec, of.us, us, least_us)
    found = {key: group for key, group in groups.items() if group.own >= FEWEST_CASES}
    for group in found.values():
        group.close()
    return found


def kept_with(group, names):
    return np.array([name in names for name in group.names], float)


class Replay:
    """What the choice by estimates loses in each case: unmeasured, and by the fastest of its trials."""

    def __init__(self, cases, estimators, work, halves):
        self.halves = [np.array([cases[index].matrix in half for index in sorted(cases)]) for half in halves]
        self.cases = [cases[index] for index in sorted(cases)]
        self.row = {index: row for row, index in enumerate(sorted(cases))}
        self.specs = list(estimators)
        self.column = {spec: column for column, spec in enumerate(self.specs)}
        shape = len(self.cases), len(self.specs)
        self.us, self.beyond_ms, self.full = np.full(shape, np.inf), np.zeros(shape), np.zeros(shape, bool)
        for index, row in self.row.items():
            for spec, of in work[index].items():
                if of.standing != "left_out" and spec in cases[index].times:
                    at = row, self.column[spec]
                    self.us[at], ms = cases[index].times[spec]
                    self.beyond_ms[at] = beyond_copy(cases[index], spec) if estimators[spec].on_device else ms
                    self.full[at] = of.standing == "full"
        self.least = np.array([min(us for us, _ in case.times.values()) for case in self.cases])
        self.is_wide = np.array([int(case.n) >= WIDE_COLUMNS for case in self.cases])
        self.may_take_more = np.array([1.0 if one.by_sizes else MAY_TAKE_MORE for one in estimators.values()])
        # Where all that ran is a vendor's, or beside it csr_merge alone, nothing was to be chosen.
        vendors = ("cusparse", "cublas", PLAIN)
        self.counts = np.array([any(not kernel.startswith(vendors) for kernel in case.times) for case in self.cases])

    def place(self, group, estimated, where, estimates):
        """Puts a group's estimates of some cases into a table of all."""
        for index, spec, us in zip(group.cases[where], np.array(group.specs)[where], estimates):
            at = self.row[index], self.column[spec]
            if np.isfinite(self.us[at]):
                estimated[at] = us

    def losses(self, estimated):
        """Of the choice, and of the fastest trial, in the cases that have an estimate; and which these are."""
        known = np.isfinite(estimated) & np.isfinite(self.us)
        counted = np.flatnonzero(self.counts & (known & self.full).any(axis=1))
        us, ms, expected = self.us[counted], self.beyond_ms[counted], np.where(known, estimated, np.inf)[counted]
        rank = expected + np.where(self.full[counted] | ~np.isfinite(expected), 0, UNMEASURED)
        order, rows = np.argsort(rank, axis=1, kind="stable"), np.arange(len(counted))
        first = order[:, 0]
        best = expected[rows, first]
        spent = 1e3 * ms + TRIAL_US + TRIAL_CALLS * expected
        of_wide = np.where(spent > COSTLY_TRIAL * best[:, None], COSTLY_MAY_TAKE_LESS, WIDE_MAY_TAKE_LESS)
        less = np.where(self.is_wide[counted][:, None], of_wide, MAY_TAKE_LESS)
        total = expected / less + spent / SETTLED_CALLS
        others = np.isfinite(expected)
        others[rows, first] = False
        any_pays = (others & (total < (best * self.may_take_more[first])[:, None])).any(axis=1)
        left = np.where(any_pays, MOST_TRIALS, 1)
        fastest = np.full(len(counted), np.inf)
        for place in range(order.shape[1]):
            spec = order[:, place]
            tried = np.isfinite(expected[rows, spec]) & (left > 0)
            if place > 0:
                tried &= total[rows, spec] < np.maximum(best, fastest)
            fastest = np.where(tried, np.minimum(fastest, us[rows, spec]), fastest)
            left = left - tried
        return us[rows, first] / self.least[counted], fastest / self.least[counted], counted

    def losses_of(self, calls, estimated):
        """Of the total of so many calls, preparation among them, where PLAIN ran."""
        counted = np.isfinite(self.us[:, self.column[PLAIN]])
        us, ms = self.us[counted], 1e3 * self.beyond_ms[counted]
        expected = np.where(self.full[counted], calls * np.where(np.isfinite(us), estimated[counted], np.inf) + ms, np.inf)
        total = calls * us + ms
        return total[np.arange(len(total)), expected.argmin(axis=1)] / total.min(axis=1)

    def squared_error(self, estimated):
        """In logarithms, mean over the candidates, of what takes less than NEAR times the least or is estimated to."""
        known = np.isfinite(estimated) & np.isfinite(self.us)
        known &= np.minimum(estimated, self.us) < NEAR * self.least[:, None]
        squares = np.square(np.log(np.where(known, estimated, 1) / np.where(known, self.us, 1)))
        return (squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1)).mean()


def held_out(replay, group, names, estimated):
    """Estimates of each half of the matrices by factors that are fitted to the other."""
    kept = kept_with(group, names)
    rows = np.array([replay.row[index] for index in group.cases])
    for half in replay.halves:
        inside = half[rows]
        if inside.any() and not inside.all():
            replay.place(group, estimated, inside, group.estimates(*group.fit(kept, ~inside), inside))


def cost(replay, estimated, numbers):
    chosen, measured, _ = replay.losses(estimated)
    beyond = np.log(np.maximum(measured / MOST_OF_ONE, 1)).sum()
    of_trials = TRIALS_COUNT * np.log(measured).mean() + COUNTS_AS * beyond
    few = FEW_COUNT * np.mean([np.log(replay.losses_of(calls, estimated)).mean() for calls in FEW_CALLS])
    return np.log(chosen).mean() + of_trials + few + ERROR_COUNTS * replay.squared_error(estimated) + PRICE * numbers


def fitted(group, names):
    """The factors of these amounts by all cases."""
    return group.fit(kept_with(group, names), np.ones(len(group.us), bool))[0]


def by_share(group, names):
    """From the one with the smallest share of the estimates on."""
    parts = group.amounts * fitted(group, names)
    shares = dict(zip(group.names, (parts / np.maximum(parts.sum(axis=1), 1e-9)[:, None]).mean(axis=0)))
    return sorted(names, key=shares.get)


def worth_having(replay, groups, written):
    """key -> the amounts whose factors gain their price on matrices that were left out, and what is estimated of these. Begins with the
    `written` ones, which change where that surely gains, else with all; those with the smallest share are left out first."""
    names, estimated = {}, np.full(replay.us.shape, np.inf)
    for key, group in groups.items():
        all_used = [name for name, factor in zip(group.names, fitted(group, group.names)) if factor > 0]
        names[key] = [name for name in group.names if name in written[key]] if key in written else all_used
        held_out(replay, group, names[key], estimated)
    numbers = sum(map(len, names.values()))
    best = cost(replay, estimated, numbers)
    for key, group in groups.items():
        floors = dict(zip(group.names, group.least))
        others = [name for name in group.names if name not in names[key]] if key in written else []
        for name in by_share(group, names[key]) + others:
            changed = [other for other in group.names if (other in names[key]) != (other == name)]
            if floors[name] > 0 or not changed:
                continue
            instead = estimated.copy()
            held_out(replay, group, changed, instead)
            of_changed = cost(replay, instead, numbers + len(changed) - len(names[key]))
            if of_changed <= best - (SURE if key in written else 0):
                numbers += len(changed) - len(names[key])
                names[key], estimated, best = changed, instead, of_changed
    return names, estimated


def fit_calls(groups, names):
    """key -> Table of all cases."""
    found = {}
    for key, group in groups.items():
        factors, scales = group.fit(kept_with(group, names[key]), np.ones(len(group.us), bool))
        found[key] = Table({name: factor for name, factor in zip(group.names, factors) if factor > 0}, scales)
    return found


def preparation_fit(amounts, ms):
    matrix = np.array(amounts)
    return relative_fit(matrix, np.maximum(np.array(ms), LEAST_MS), np.zeros(matrix.shape[1]), np.ones(len(matrix)))


def fit_preparation(cases, estimators, work, halves):
    """spec -> amount -> factor of preparation, for every precision and N: beyond the copy of A where the kernel is prepared from that."""
    found = {}
    for spec, estimator in estimators.items():
        members = [(index, case) for index, case in cases.items() if spec in case.times and work[index][spec].standing != "left_out"]
        told = [(index, case) for index, case in members if copy_ms(case) <= MOST_COPY_MS]
        if estimator.on_device and len(told) >= FEWEST_CASES:
            members = told
        if len(members) < FEWEST_CASES or not estimator.prepare_ms:
            continue
        all_names = [amount.name for amount in estimator.prepare_ms]
        ms = np.array([beyond_copy(case, spec) if estimator.on_device else case.times[spec][1] for _, case in members])
        amounts = np.array([[work[index][spec].prepare_ms[name] for name in all_names] for index, _ in members])
        halved = [np.array([case.matrix in half for _, case in members]) for half in halves]

        def error(kept, amounts=amounts, ms=ms, halved=halved):
            errors = []
            for inside in halved:
                if inside.any() and not inside.all():
                    estimates = amounts[inside] @ (preparation_fit(amounts[~inside] * kept, ms[~inside]) * kept)
                    errors += list(np.log(np.maximum(estimates, LEAST_MS) / np.maximum(ms[inside], LEAST_MS)) ** 2)
            return math.sqrt(np.mean(errors)) if errors else math.inf

        kept = (preparation_fit(amounts, ms) > 0).astype(float)
        least = error(kept)
        while kept.sum() > 1:
            trials = [(error(kept * (np.arange(len(kept)) != at)), at) for at in np.flatnonzero(kept)]
            fewest, at = min(trials)
            if fewest > least * (1 + PREPARATION_PRICE):
                break
            kept[at], least = 0, min(least, fewest)
        factors = preparation_fit(amounts * kept, ms)
        found[spec] = {name: factor for name, factor in zip(all_names, factors) if factor > 0}
    return found
