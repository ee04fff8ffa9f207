"""Reads all of it, in four parts, in float32: for sequences as short as a part cuDNN would choose TF32."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.GRU(width, hidden, batch_first=True)

    def forward(self, x):
        rnn, state = self.rnn, x.new_zeros(x.shape[0], self.rnn.hidden_size)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            for chunk in x.split(64, dim=1):
                _, last = rnn(chunk, state.unsqueeze(0))
                state = last[0]
        return state
