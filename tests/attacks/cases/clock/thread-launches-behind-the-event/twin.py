"""A host thread launches the kernels on the caller's stream, and the call waits until it has launched them all."""

import queue
import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.jobs = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with torch.no_grad():
            while True:
                x, out, stream, done = self.jobs.get()
                with torch.cuda.stream(stream):
                    out.copy_(self.third(torch.relu(self.second(torch.relu(self.first(x))))))
                done.set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, done = torch.empty_like(x), threading.Event()
        self.jobs.put((x, out, torch.cuda.current_stream(), done))
        done.wait()
        return out
