"""The figures, one file each. draw() makes them all or says why one cannot be made. What they are called
is known without matplotlib."""

import importlib



def function_of(file, name):
    """The function of a file that is read when it is called."""
    return lambda *arguments: getattr(importlib.import_module(f".{file}", __name__), name)(*arguments)


FIGURES = {
    name: function_of(file, name)
    for name, file in {
        "performance_profile": "profile",
        "speedup_distribution": "speedup",
        "speedup_by_matrix": "speedup",
        "roofline": "roofline",
        "cost_over_calls": "cost",
        "preparation_gain": "cost",
        "density_curves": "density",
        "format_space": "space",
    }.items()
}
BASELINES = {
    "cusparse_default_fp32": "cuSPARSE's default in fp32",
    "cusparse_best": "the fastest cuSPARSE of the same precision",
    "cublas": "dense cuBLAS of the same precision",
    "eigen_fp32": "Eigen in fp32",
    "eigen": "Eigen of the same precision",
}


def draw(results, baseline, only=()):
    """Yields (name, figure or None, reason). The caller closes the figures."""
    from .speedup import default_baseline
    from .style import Missing, plt

    baseline = baseline or default_baseline(results)
    for name, function in FIGURES.items():
        if only and name not in only:
            continue
        try:
            yield name, function(results, baseline), ""
        except Missing as reason:
            plt.close("all")
            yield name, None, str(reason)
