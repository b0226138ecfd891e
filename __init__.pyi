from .datamodules.embedding import embed as embed
from .evaluation.classifiers.folder import load_classifier as load_classifier
from .train import compare as compare

__version__: str
