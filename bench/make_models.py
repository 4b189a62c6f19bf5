"""Write the programs that the benchmarks run: ``python -m bench.make_models`` (nybble[export])."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bench.mobilenet_network import MobileNetV2
from nybble.export import export

SEED = 0


def main() -> None:
    """Export MobileNetV2 in int8 with random weights, one image, and the eager answer to it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "models")
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    network = MobileNetV2().train()
    # Random weights in batch norms that have seen data keep activations in a range worth testing.
    with torch.no_grad():
        for _ in range(3):
            network(torch.randn(8, 3, 224, 224))
    network.eval()
    batches = [torch.randn(1, 3, 224, 224) for _ in range(4)]
    path = directory / "mobilenet_v2_int8.pte"
    report = export(network, batches[0], path, quantize="int8", calibration=batches)
    image = batches[0]
    with torch.no_grad():
        logits = report.reference(image)
    np.savez_compressed(path.with_suffix(".npz"), input_0=image.numpy(), output_0=logits.numpy())
    print(report)


if __name__ == "__main__":
    main()
