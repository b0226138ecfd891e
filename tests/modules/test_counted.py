import torch

from headstart.modules.counted import Counted

INFINITY = float("inf")


def test_infinite_logits() -> None:
    logits = torch.tensor([[[INFINITY, 0], [0, INFINITY], [-INFINITY, -INFINITY], [float("nan"), 0], [2, 1]]])
    counted = Counted(torch.zeros(2, 1, dtype=torch.int64), [])
    counted.add(logits, torch.zeros(5, dtype=torch.int64), None)
    # Right are the first and the last; of those before it, none has a finite logit as its greatest.
    assert counted.counts.tolist() == [[2], [4]]
