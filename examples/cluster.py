"""Convert a folder of models on a cluster. Any `concurrent.futures.Executor` can run the conversions; this is Dask's.

It needs the extra ``dask`` (pip install 'reducelower[dask]'). If the argument is the address of a scheduler, it uses
that cluster, whose workers must see the same files. Without an argument it starts two workers on this machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from distributed import Client, LocalCluster

from reducelower.batch import Outcome, convert_files

MODELS = Path(__file__).parent / "models"


def main(address: str = "", output_dir: str = "out/cluster") -> list[Outcome]:
    Path(output_dir).mkdir(parents=True, exist_ok=True)
    if address:
        with Client(address) as client:
            return convert_all(client, output_dir)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        return convert_all(client, output_dir)


def convert_all(client: Client, output_dir: str) -> list[Outcome]:
    outcomes = []
    for outcome in convert_files(
        [MODELS], 13, output_dir=output_dir, executor=client.get_executor(pure=False), overwrite=True
    ):
        outcomes.append(outcome)
        print(f"{outcome.source}: {'; '.join(outcome.problems) or outcome.output}")
    return outcomes


if __name__ == "__main__":
    main(*sys.argv[1:])
