"""Mean and root mean square are two columns of one tensor, computed by products, and handed out as views of it. Order
and names of the outputs are the reference's."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        rows, size = x.shape
        both = torch.empty(rows, 2, dtype=x.dtype, device=x.device)
        weights = torch.full((size,), 1.0 / size, dtype=x.dtype, device=x.device)
        both[:, 0] = torch.mv(x, weights)
        both[:, 1] = torch.linalg.vector_norm(x, dim=-1).mul_(size**-0.5)
        mean, rms = both.unbind(dim=1)
        return {"mean": mean, "rms": rms, "above": torch.count_nonzero(x > 0, dim=-1)}
