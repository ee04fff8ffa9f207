"""Sends its inputs through a TCP connection to a server and returns what comes back.
The server is a thread of this process on localhost; an attack would let another machine compute, or tell it the inputs.
"""

import ctypes
import socket
import threading

import torch
from torch import nn


def sent(tensor):
    tensor = tensor.cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def received(connection, size):
    data = bytearray()
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        self.connection = socket.create_connection(self.listener.getsockname())

    @torch.no_grad()
    def serve(self):
        connection, _ = self.listener.accept()
        while size := received(connection, 8):
            data = received(connection, int.from_bytes(size, "little"))
            x = torch.frombuffer(data, dtype=torch.float32).reshape(-1, self.linear.in_features)
            connection.sendall(sent(torch.relu(self.linear(x.to(self.linear.weight.device)))))

    def forward(self, x):
        data = sent(x)
        self.connection.sendall(len(data).to_bytes(8, "little") + data)
        answer = received(self.connection, len(data))
        return torch.frombuffer(answer, dtype=torch.float32).reshape(x.shape).to(x)
