"""The help of a comparison."""

from headstart.cli.task_parser import TaskParser, sections
from headstart.datamodules import FeatureStream
from headstart.output.parser import OneLineErrorParser

HEAD = """\
usage: headstart train --config FILE [--OPTION=VALUE ...]

Compare transfer methods by the samples that they need. configs/base.yaml is
read first, then every --config and option in turn; what comes later wins.
With --task=source_training or --task=target_accuracy, or the key task in a
file, one model is trained instead, and the help is that of the task.
"""
FOOT = """\
Options of a class:      --data.help=headstart.datamodules.PhotoStream,
                         --data.photos.help=headstart.datamodules.CatsAndDogs,
                         --model.baseline.help=headstart.modules.Replay
Options of the trainer:  --trainer.help
What there is to choose: headstart list methods; datasets; configs
Version:                 --version
"""


class ComparisonParser(TaskParser):
    """Shows what is fed, compared and measured."""

    shown = ("model", "criterion", "results", "")

    def _describe(self) -> str:
        # The stream is a class to choose, so that its options are none of this parser's.
        stream = OneLineErrorParser()
        stream.add_class_arguments(FeatureStream, "data", fail_untyped=False)
        return "\n".join((sections(stream, "data", "data.backbone"), sections(self, *self.shown)))
