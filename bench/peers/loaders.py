"""Peers of bench/loader.py, in their own environment: fixed-length rows of tokens -> shuffled batches.

python loaders.py streaming|litdata IDS STRIDE BATCH_ROWS WORKERS SECONDS FOLDER

IDS is a flat int32 file. It is written into FOLDER in the peer's own format first, which is not timed. Prints one JSON
line. Settings are each peer's quickest for rows of one length: fixed-shape arrays for streaming, TokensLoader for
litdata.
"""

import json
import os
import sys
import time
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from importlib.util import module_from_spec

import numpy as np
import torch
from torch.utils.data import DataLoader


def _stand_in_for_torchvision() -> None:
    """streaming imports torchvision for its images, whose wheel wants torch for CUDA; rows of tokens never touch it."""
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.datasets"):
        sys.modules[name] = module_from_spec(ModuleSpec(name, None))
    sys.modules["torchvision.transforms.functional"].to_tensor = None
    sys.modules["torchvision.datasets"].VisionDataset = object


def streaming(ids: np.ndarray, folder: str, batch_rows: int):
    """mosaicml-streaming: MDS shards of uncompressed fixed-shape arrays."""
    _stand_in_for_torchvision()
    from streaming import MDSWriter, StreamingDataset

    with MDSWriter(out=folder, columns={"ids": f"ndarray:int32:{ids.shape[1]}"}, compression=None) as out:
        for row in ids:
            out.write({"ids": np.asarray(row)})
    return StreamingDataset(local=folder, shuffle=True, batch_size=batch_rows), lambda batch: batch["ids"]


def row_of(place: tuple) -> torch.Tensor:
    """One row, for litdata's writer."""
    path, stride, row = place
    return torch.from_numpy(np.fromfile(path, "<i4", stride, offset=row * stride * 4))


def litdata(ids: np.ndarray, folder: str, batch_rows: int):
    """litdata: one stream of tokens in chunks, cut into blocks."""
    from litdata import StreamingDataset, TokensLoader, optimize

    places = [(ids.filename, ids.shape[1], row) for row in range(len(ids))]
    optimize(
        fn=row_of, inputs=places, output_dir=folder, chunk_size=ids.shape[1] * 4096, num_workers=1,
        item_loader=TokensLoader(block_size=ids.shape[1]),
    )  # fmt: skip
    return StreamingDataset(
        folder, shuffle=True, item_loader=TokensLoader(block_size=ids.shape[1])
    ), lambda batch: batch


def cpu_seconds() -> float:
    """Of this process and its ended children."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def main() -> None:
    name, path, stride, batch_rows, workers, seconds, folder = sys.argv[1:]
    ids = np.memmap(path, "<i4", "r").reshape(-1, int(stride))
    data, tensor_of = {"streaming": streaming, "litdata": litdata}[name](ids, folder, int(batch_rows))
    if name == "litdata":
        from litdata import StreamingDataLoader as Loader
    else:
        Loader = DataLoader
    loader = Loader(data, batch_size=int(batch_rows), num_workers=int(workers), drop_last=False)
    rows, passes, begin, cpu = 0, 0, time.perf_counter(), cpu_seconds()
    while time.perf_counter() - begin < float(seconds):
        for batch in loader:
            found = tensor_of(batch)
            assert found.shape[1] == int(stride)
            rows += len(found)
        passes += 1
    wall = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu
    label = {"streaming": "mosaicml-streaming", "litdata": "litdata"}[name]
    gb = rows * int(stride) * 4 / 1e9
    rates = {"gb_s": round(gb / wall, 4), "gb_cpu_s": round(gb / cpu, 4)}
    read = {"batch_rows": int(batch_rows), "workers": int(workers), "rows": rows, "passes": passes}
    print(json.dumps({"loader": f"{label} {version(label)}", **read, **rates}))


if __name__ == "__main__":
    main()
