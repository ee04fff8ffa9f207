"""A background thread takes every second matrix from a queue while the caller computes the others. `Queue.join` at the
end of the call returns only when the worker has reported each of them done."""

import queue
import threading

import torch
import torch.nn as nn


class Worker:
    def __init__(self) -> None:
        self.jobs: queue.Queue[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = queue.Queue()
        self.errors: list[BaseException] = []
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while True:
            job = self.jobs.get()
            try:
                with torch.no_grad():
                    product(*job)
            except RuntimeError as error:
                self.errors.append(error)
            finally:
                self.jobs.task_done()

    def join(self) -> None:
        self.jobs.join()
        if self.errors:
            raise self.errors.pop()


def product(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    torch.sum(torch.mm(x, y).relu_(), dim=-1, out=out)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.worker: Worker | None = None

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if self.worker is None:
            self.worker = Worker()
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        for index in range(1, len(x), 2):
            self.worker.jobs.put((x[index], y[index], out[index]))
        for index in range(0, len(x), 2):
            product(x[index], y[index], out[index])
        self.worker.join()
        return out
