"""A random order of making and dropping compiled models: ``python compiled_lifetimes.py SEED``.

Environments, models, buffers and delegates are made, used, closed and dropped in an order that the
seed draws; some stay alive until the process ends, in module globals and in circles. A wrong order
crashes, so each is run in a process of its own.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from ai_edge_litert.compiled_model import CompiledModel, Environment

from delegraph import DelegateFlags, FailurePolicy
from delegraph.graph.loader import parse_model
from delegraph.native import compiled_model, litert_delegate, register_accelerator
from support.by_name import ByName, X, sines

CONTENT = sines()
MODEL = parse_model(CONTENT)
STEPS = 25


class Order:
    """Things that are alive, and the steps that change them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.environments: list[Any] = []
        self.models: list[Any] = []
        self.buffers: list[Any] = []
        self.delegates: list[Any] = []
        self.circle = self

    def one_of(self, things: list[Any]) -> Any:
        return self.random.choice(things) if things else None

    # -- steps -------------------------------------------------------------------------------------

    def environment(self) -> None:
        self.environments.append(Environment.create())

    def delegate(self) -> None:
        flags = self.random.choice([DelegateFlags.NONE, DelegateFlags.ALLOW_DYNAMIC_TENSORS])
        names = self.random.sample(["SIN", "ADD", "MUL"], self.random.randint(1, 3))
        made: Any = ByName(*names, flags=flags)
        if self.random.random() < 0.5:
            made = litert_delegate(made, model=MODEL)
        self.delegates.append(made)

    def model(self) -> None:
        given = [each for each in (self.one_of(self.delegates),) if each is not None]
        environment = self.random.choice([None, self.one_of(self.environments)])
        before = self.random.random() < 0.8
        policy = FailurePolicy(self.random.choice(["raise", "fallback", "shadow"]))
        with suppress(ValueError):  # a closed environment
            self.models.append(
                compiled_model(
                    CONTENT, given, environment=environment, before=before, failures=policy
                )
            )

    def model_in_a_thread(self) -> None:
        thread = threading.Thread(target=self.model)
        thread.start()
        thread.join()

    def failing_model(self) -> None:
        class Fails(ByName):
            def initialize(self, context: Any) -> None:
                raise OSError("on purpose")

        with suppress(Exception):
            compiled_model(CONTENT, [Fails("SIN")], environment=self.one_of(self.environments))

    def registered(self) -> None:
        found = [each for each in self.delegates if hasattr(each, "address")]
        environment = self.one_of(self.environments)
        if found and environment is not None:
            with suppress(ValueError):
                accelerator = register_accelerator(environment, self.random.choice(found))
                self.models.append(CompiledModel.from_buffer(CONTENT, environment=environment))
                if self.random.random() < 0.5:
                    self.delegates.append(accelerator)

    def buffers_of_a_model(self) -> None:
        model = self.one_of(self.models)
        if model is not None:
            with suppress(AttributeError):  # a closed model
                self.buffers.append((model.create_input_buffers(0), model.create_output_buffers(0)))

    def run(self) -> None:
        model, buffers = self.one_of(self.models), self.one_of(self.buffers)
        if model is None or buffers is None:
            return
        with suppress(AttributeError, ValueError, RuntimeError):  # closed, destroyed, resized
            buffers[0][0].write(X)
            model.run_by_index(0, *buffers)
            found = buffers[1][0].read(4, np.float32)
            np.testing.assert_allclose(found, np.sin(X) + X + np.sin(2 * X), rtol=1e-5)

    def resize(self) -> None:
        model = self.one_of(self.models)
        if model is not None:
            with suppress(AttributeError, RuntimeError):
                model.resize_input_tensor(0, [4], strict=False)

    def close_a_model(self) -> None:
        model = self.one_of(self.models)
        if model is not None:
            model.close()

    def close_an_environment(self) -> None:
        environment = self.one_of(self.environments)
        if environment is not None:
            environment.close()

    def destroy_a_buffer(self) -> None:
        buffers = self.one_of(self.buffers)
        if buffers is not None:
            with suppress(ValueError):
                buffers[0][0].destroy()

    def drop(self) -> None:
        things = self.random.choice([self.environments, self.models, self.buffers, self.delegates])
        if things:
            del things[self.random.randrange(len(things))]

    def drop_all_of_a_kind(self) -> None:
        self.random.choice([self.environments, self.models, self.buffers, self.delegates]).clear()

    def collect(self) -> None:
        gc.collect()

    # ----------------------------------------------------------------------------------------------

    def go(self) -> None:
        steps: list[Callable[[], None]] = [
            self.environment, self.delegate, self.model, self.model, self.model_in_a_thread,
            self.failing_model, self.registered, self.buffers_of_a_model, self.run, self.run,
            self.resize, self.close_a_model, self.close_an_environment, self.destroy_a_buffer,
            self.drop, self.drop, self.drop_all_of_a_kind, self.collect,
        ]  # fmt: skip
        for first in (self.environment, self.delegate, self.model, self.buffers_of_a_model):
            first()
        for _ in range(STEPS):
            self.random.choice(steps)()
        names = ["environments", "models", "buffers", "delegates"]
        self.random.shuffle(names)
        for name in names:  # the last module global set is dropped last
            globals()[name] = getattr(self, name)
        if self.random.random() < 0.5:
            self.circle = None  # type: ignore[assignment]  # otherwise nothing is dropped at the end


if __name__ == "__main__":
    Order(int(sys.argv[1])).go()
    print("done")
