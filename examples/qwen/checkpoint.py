"""A local checkpoint of Hugging Face: safetensors shards and their index. Names and shapes are checked
before anything is read; needs no PyTorch until then."""

import contextlib
import json
import pathlib

INDEX = "model.safetensors.index.json"


def _safe_open():
    try:
        from safetensors import safe_open
    except ImportError:
        raise SystemExit("--checkpoint needs the package safetensors: pip install safetensors") from None
    return safe_open


def _shards(folder):
    """{name of a tensor: file}."""
    path = pathlib.Path(folder) / INDEX
    try:
        told = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        return {name: path.parent / shard for name, shard in told.items()}
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SystemExit(f"{path}: no index of shards") from None


@contextlib.contextmanager
def _opened(path, framework, device="cpu"):
    safe_open = _safe_open()
    try:
        with safe_open(path, framework=framework, device=str(device)) as file:
            yield file
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror or error}") from None
    except Exception as error:
        if type(error).__name__ != "SafetensorError":  # which has no public place
            raise
        raise SystemExit(f"{path}: {error}") from None


def _by_shard(folder, names):
    shards = _shards(folder)
    missing = [name for name in names if name not in shards]
    if missing:
        more = f" and {len(missing) - 1} more tensors" if len(missing) > 1 else ""
        raise SystemExit(f"{folder}: has no {missing[0]}{more}")
    out = {}
    for name in names:
        out.setdefault(shards[name], []).append(name)
    return out


def check(folder, shapes):
    """Raises SystemExit in one line where a tensor of {name: shape} is absent or has another shape."""
    for path, names in _by_shard(folder, shapes).items():
        with _opened(path, "np") as file:
            held = set(file.keys())
            for name in names:
                if name not in held:
                    raise SystemExit(f"{path}: has no {name}, which the index promises")
                shape = tuple(file.get_slice(name).get_shape())
                if shape != shapes[name]:
                    raise SystemExit(f"{path}: {name} is {shape}; {shapes[name]} is wanted")


def load(folder, shapes, device, dtype):
    """{name: tensor}."""
    out = {}
    for path, names in _by_shard(folder, shapes).items():
        with _opened(path, "pt", device) as file:
            for name in names:
                out[name] = file.get_tensor(name).to(dtype)
    return out
