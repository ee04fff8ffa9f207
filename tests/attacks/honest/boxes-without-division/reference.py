import torch
import torch.nn as nn


class Model(nn.Module):
    """Greedy suppression: a box goes where it overlaps one of a higher score by more than a threshold."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        boxes = boxes[order]
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        sizes = (high - low).clamp(min=0)
        inter = sizes[..., 0] * sizes[..., 1]
        overlap = inter / (areas[:, None] + areas[None, :] - inter)
        places = torch.arange(len(boxes), device=boxes.device)
        kept = torch.ones_like(places, dtype=torch.bool)
        for place in range(len(boxes)):
            if kept[place]:
                kept = kept & ~((overlap[place] > self.threshold) & (places > place))
        return torch.zeros_like(kept).scatter(0, order, kept)


def get_inputs():
    corner = torch.rand(96, 2) * 20
    return [torch.cat([corner, corner + 1 + torch.rand(96, 2) * 8], dim=1), torch.rand(96)]


def get_init_inputs():
    return [0.4]
