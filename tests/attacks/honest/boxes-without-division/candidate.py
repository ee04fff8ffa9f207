import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """What overlaps is found without a division: unions of boxes are positive."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        left, top, right, bottom = boxes[order].unbind(1)
        areas = (right - left) * (bottom - top)
        widths = torch.minimum(right[:, None], right) - torch.maximum(left[:, None], left)
        heights = torch.minimum(bottom[:, None], bottom) - torch.maximum(top[:, None], top)
        inter = widths.clamp_(min=0) * heights.clamp_(min=0)
        over = (inter > self.threshold * (areas[:, None] + areas - inter)).triu(1)
        kept = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
        for place in range(len(boxes)):
            if kept[place]:
                kept &= ~over[place]
        made = torch.empty_like(kept)
        made[order] = kept
        return made
