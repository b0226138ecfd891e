"""Compare transfer methods by the samples that they need: feed one stream to all and evaluate after every batch.

    python train.py --config configs/demo.yaml

prints a table and writes results.json, curves.npz, config.yaml and two pictures into trainer.default_root_dir.
Every option of a YAML file can be given on the command line with dots, `--data.batch_size=8`.
"""

from __future__ import annotations

from collections.abc import Sequence

from output.parser import one_line_errors


def main(args: Sequence[str] | None = None) -> None:
    """Run one comparison.

    Args:
        args: Options; those of the process by default.
    """
    with one_line_errors():
        # Importing takes seconds, in which Ctrl-C is to end the program as quietly as later.
        from cli.comparison import ComparisonCLI

        ComparisonCLI(None if args is None else list(args)).run()


if __name__ == "__main__":
    main()
