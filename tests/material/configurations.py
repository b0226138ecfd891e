"""A configuration, others that give the same results, and others that do not."""

from typing import Any

import yaml

CONFIG = (
    "trainer: {default_root_dir: a, logger: true, max_epochs: 1}\ndata: {batch_size: 8}\nresults: {overwrite: false}"
)


def edited(**changes: Any) -> str:
    content = yaml.safe_load(CONFIG)
    for key, value in changes.items():
        section, _, name = key.partition("__")
        content[section][name] = value
    return yaml.safe_dump(content)


SAME = [
    edited(),
    edited(trainer__default_root_dir="b"),
    edited(trainer__logger=False),
    edited(results__overwrite=True),
]
OTHER = [edited(data__batch_size=4), edited(trainer__max_epochs=2), edited(data__seed=1)]
