"""The help of a comparison."""

from headstart.cli.task_parser import TaskParser, sections
from headstart.datamodules import FeatureStream
from headstart.output.parser import OneLineErrorParser

HEAD = """\
usage: headstart train --config FILE [--OPTION=VALUE ...]

Compare transfer methods by the number of samples that they need.
configs/base.yaml is read first, then each --config and option in turn. Later
values win. --task=source_training and --task=target_accuracy train one model
instead; add --help for their options. A file can also set the key task.
"""
FOOT = """\
Options of a class:      --data.help=headstart.datamodules.PhotoStream,
                         --data.photos.help=headstart.datamodules.CatsAndDogs,
                         --model.baseline.help=headstart.modules.Replay
Options of the trainer:  --trainer.help
Available names:         headstart list methods; datasets; configs
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
