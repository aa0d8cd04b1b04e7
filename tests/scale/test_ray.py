"""A job on a Ray cluster gives the rows of one process, whatever is lost on the way."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Predictor
from delegraph.errors import ArgumentError
from delegraph.scale.ray import checkpoint_config, predict
from delegraph.tools.setup import Setup
from support.moody_delegate import moody_setup

if importlib.util.find_spec("ray") is None or importlib.util.find_spec("pandas") is None:
    pytest.skip("Ray is tested by make test-scale-ray", allow_module_level=True)

os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
import ray.data
from ray.cluster_utils import Cluster

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
PATIENCE = 120.0
"""Seconds after which something that is waited for is not going to happen."""

PLACE = {"place": 1.0}
"""What an actor of these tests takes; nodes that may have one offer it."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head, and two nodes with a place for an actor each, and a processor for reading."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    for _ in range(2):
        cluster.add_node(num_cpus=2, resources=PLACE)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def moody(tmp_path: Path) -> Setup:
    return moody_setup(tmp_path)


def wait_until(ready: Callable[[], Any]) -> Any:
    """Return what is there in the end."""
    end = time.monotonic() + PATIENCE
    while not (found := ready()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def spread(columns: dict[str, NDArray[Any]], blocks: int) -> Any:
    """Columns as a dataset of blocks, which a lost node's are made of again."""
    count = len(columns["id"])
    rows = [{name: values[i] for name, values in columns.items()} for i in range(count)]
    return ray.data.from_items(rows, override_num_blocks=blocks)


def numbers(rows: int, **special: int) -> dict[str, NDArray[Any]]:
    """Rows ``[id, 1]`` of ids from 100 on; special ones have a value that moody minds."""
    ids = np.arange(100, 100 + rows)
    x = np.stack([ids, np.ones(rows)], axis=1).astype(np.float32)
    for value, row in special.items():
        x[row, 0] = float(value.removeprefix("x"))
    return {"id": ids, "x": x}


def answers(dataset: Any, column: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ids and values of rows, by their ids."""
    rows = sorted(dataset.take_all(), key=lambda row: row["id"])
    return np.array([row["id"] for row in rows]), np.array([row[column] for row in rows])


def two_actors() -> Any:
    return ray.data.ActorPoolStrategy(size=2)


@pytest.mark.parametrize("batch_size", [None, 7])
def test_results_are_those_of_one_process(cluster: Cluster, batch_size: int | None) -> None:
    pictures = np.random.default_rng(0).integers(-128, 128, (200, 8, 8, 1)).astype(np.int8)
    columns = {"id": np.arange(200), "image": pictures}
    predictor = Predictor(DIGITS, on_error="column")
    expected = predictor(columns)["digit"]
    found = predict(
        spread(columns, 8),
        predictor,
        batch_size=batch_size,
        compute=two_actors(),
        resources=PLACE,
        fingerprint=predictor.fingerprint(),
    )
    assert set(found.columns()) == {"id", "image", "digit", "error"}
    ids, digits = answers(found, "digit")
    np.testing.assert_array_equal(ids, columns["id"])
    np.testing.assert_array_equal(digits, expected)
    assert digits.dtype == np.int8


def test_rows_that_kill_their_process_are_marked(cluster: Cluster, moody: Setup) -> None:
    columns = numbers(40, x66=7, x88=31)
    predictor = Predictor(moody, on_error="column", isolation="process")
    found = predict(spread(columns, 4), predictor, compute=two_actors(), resources=PLACE)
    rows = {row["id"]: row for row in found.take_all()}
    assert sorted(rows) == columns["id"].tolist()
    assert "SIGSEGV" in rows[107]["error"]
    assert "88 is too much" in rows[131]["error"]
    good = [rows[i]["y"][0] for i in sorted(rows) if not rows[i]["error"]]
    assert good == [-i for i in columns["id"] if i not in (107, 131)]


def test_dropped_rows_are_left_out(cluster: Cluster, moody: Setup) -> None:
    columns = numbers(20, x88=3)
    predictor = Predictor(moody, on_error="drop")
    found = predict(spread(columns, 2), predictor, compute=two_actors(), resources=PLACE)
    assert found.count() == 19


def test_a_killed_actor_loses_and_repeats_no_row(cluster: Cluster, moody: Setup) -> None:
    columns = numbers(60, x44=25)
    found = predict(spread(columns, 6), Predictor(moody), compute=two_actors(), resources=PLACE)
    ids, y = answers(found, "y")
    assert Path(moody.model).with_name("seen").exists()  # it was killed
    np.testing.assert_array_equal(ids, columns["id"])
    np.testing.assert_array_equal(y, -columns["x"])


def test_a_removed_node_loses_and_repeats_no_row(cluster: Cluster, moody: Setup) -> None:
    folder = Path(moody.model).parent
    gate = folder / "gate"
    gate.touch()
    leaving = cluster.add_node(num_cpus=1, resources={"leaving": 1.0})
    cluster.wait_for_nodes()
    columns = numbers(60, x33=25)
    found = predict(
        spread(columns, 6), Predictor(moody), compute=one_actor(), resources={"leaving": 1.0}
    )
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(answers, found, "y")
        wait_until(lambda: list(folder.glob("waiting-*")))
        cluster.remove_node(leaving, allow_graceful=False)
        gate.unlink()
        cluster.add_node(num_cpus=1, resources={"leaving": 1.0})
        ids, y = job.result()
    assert len(list(folder.glob("waiting-*"))) == 2  # an actor there, and one in its place
    np.testing.assert_array_equal(ids, columns["id"])
    np.testing.assert_array_equal(y, -columns["x"])


def one_actor() -> Any:
    return ray.data.ActorPoolStrategy(size=1)


JOB = """
import sys
import ray
import ray.data
from delegraph import Predictor
from delegraph.scale.ray import checkpoint_config, predict
from delegraph.tools.setup import Setup

folder, address = sys.argv[1:]
ray.init(address=address)
predictor = Predictor(
    Setup(folder + "/model.tflite", delegate_files=(folder + "/moody.py",), threads=1),
    on_error="column",
)
context = ray.data.DataContext.get_current()
context.checkpoint_config = checkpoint_config(predictor, "id", folder + "/checkpoint")
context.target_min_block_size, context.target_max_block_size = 1, 200  # else data is one block
data = ray.data.read_parquet(folder + "/data", override_num_blocks=6)
two = ray.data.ActorPoolStrategy(size=2)
predict(data, predictor, compute=two, resources={"place": 1.0}).write_parquet(folder + "/out")
"""


def written_ids(folder: Path) -> list[int]:
    from pyarrow import parquet

    tables = [parquet.read_table(path) for path in files_of(folder)]
    return sorted(i for table in tables for i in table["id"].to_pylist())


def files_of(folder: Path) -> dict[str, int]:
    """Files of answers, each with when it was written."""
    return {str(path): path.stat().st_mtime_ns for path in (folder / "out").glob("*.parquet")}


def test_a_killed_job_goes_on_where_it_was(cluster: Cluster, moody: Setup) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder = Path(moody.model).parent
    (folder / "data").mkdir()
    columns = numbers(60, x33=55)
    for part in range(6):
        rows = slice(part * 10, part * 10 + 10)
        table = pa.table({"id": columns["id"][rows], "x": columns["x"][rows].tolist()})
        parquet.write_table(table, folder / "data" / f"{part}.parquet")
    gate = folder / "gate"
    gate.touch()
    checkpoints = folder / "checkpoint"
    command = [sys.executable, "-c", JOB, str(folder), cluster.address]
    with (folder / "log").open("w") as log:
        job = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: job.poll() is not None or len(files_of(folder)) >= 2)
            assert job.poll() is None, (folder / "log").read_text()
        finally:
            job.kill()
            job.wait()
    before = files_of(folder)
    assert [path.name for path in checkpoints.iterdir()] == [predictor_of(moody).fingerprint()]
    gate.unlink()
    subprocess.run(command, check=True, capture_output=True)
    assert written_ids(folder) == columns["id"].tolist()
    assert before.items() <= files_of(folder).items()  # what was done is not done again
    assert not list(checkpoints.iterdir())  # as it is done


def predictor_of(setup: Setup) -> Predictor:
    return Predictor(setup, on_error="column")


def test_the_checkpoint_is_of_a_fingerprint(moody: Setup, tmp_path: Path) -> None:
    predictor = predictor_of(moody)
    config = checkpoint_config(predictor, "id", f"{tmp_path}/done/", write_num_threads=1)
    assert config.checkpoint_path == f"{tmp_path}/done/{predictor.fingerprint()}"
    assert (config.id_column, config.write_num_threads) == ("id", 1)
    other = Predictor(moody, on_error="column", batching="rows")
    assert checkpoint_config(other, "id", "/done").checkpoint_path != config.checkpoint_path
    with pytest.raises(ArgumentError, match="on_error='drop' keeps no record of bad rows"):
        checkpoint_config(Predictor(moody, on_error="drop"), "id", "/done")
