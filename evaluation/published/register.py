"""The register of published tables: where each is, how it is read, and which figures are expected of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headstart.evaluation.published.reshape import Reshaped, linear_and_knn, one_column_a_target, scores_and_records


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published table.

    Attributes:
        name: Its name here.
        url: Its address.
        sha256: SHA-256 of the version in the register, with line feeds as line ends, hexadecimal. For a file of Python
            code, it is that of the CSV file made of it. Empty for a file that grows.
        variable: Name of the dictionary that holds the table, in a file of Python code: performances by target and
            source.
    """

    name: str
    url: str
    sha256: str = ""
    variable: str = ""


@dataclass(frozen=True)
class Expected:
    """Figures of a table as the register knows it.

    Attributes:
        sources: Number of sources that are compared.
        targets: Number of targets.
        cells: Number of performances.
        mean_rank: Mean over targets of the weighted Kendall of the mean rank on the other targets.
        metrics: The same of the metrics.
    """

    sources: int
    targets: int
    cells: int
    mean_rank: float
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedTable:
    """A published table.

    Attributes:
        title: Its content in words.
        citation: Authors, title, venue and year.
        file: Its file.
        options: Options with which `headstart audit` reads it.
        expected: Figures that are expected of it.
        reshape: Returns its rows and a note from the paths of its files, where the audit does not read its layout.
        second: A second file that `reshape` takes.
    """

    title: str
    citation: str
    file: PublishedFile
    options: Mapping[str, Any]
    expected: Expected
    reshape: Callable[..., Reshaped] | None = None
    second: PublishedFile | None = None

    @property
    def files(self) -> list[PublishedFile]:
        """The files that are read."""
        return [self.file] if self.second is None else [self.file, self.second]


RAW = "https://raw.githubusercontent.com"
_PARC = f"{RAW}/dbolya/parc/b05d06288203905d2a57f19ddb83edddc80c182c/oracles"
_PARC_CITATION = (
    "Daniel Bolya, Rohit Mittapalli and Judy Hoffman, Scalable Diverse Model Selection for Accessible Transfer "
    "Learning, NeurIPS 2021"
)
_PARC_OPTIONS = {
    "columns": {"source": ["Architecture", "Source Dataset"], "performance": "Oracle", "own": "Source Dataset"},
}
_TRANSFER_GRAPH = (
    f"{RAW}/TransferGraph/transfergraph/0458aff3ae6832926bed0bac515f243f99a98df0/resources/experiments/"
    "image_classification"
)
_TRANSFER_GRAPH_CITATION = (
    "Ziyu Li, Hilco van der Wilk, Danning Zhan, Megha Khosla, Alessandro Bozzon and Rihan Hai, Model Selection with "
    "Model Zoo via Graph Learning, ICDE 2024"
)
_TRANSFER_GRAPH_RECORDS = PublishedFile(
    "transfergraph_image_records.csv",
    f"{_TRANSFER_GRAPH}/records.csv",
    "0850df5da3bfd8ac3bf730ab985cac37362b68bcd16c4fc88eb7cdb5914861de",
)
_SFDA_CITATION = (
    "Wenqi Shao, Xun Zhao, Yixiao Ge, Zhaoyang Zhang, Lei Yang, Xiaogang Wang, Ying Shan and Ping Luo, Not All Models "
    "Are Equal: Predicting Model Transferability in a Self-challenging Fisher Space, ECCV 2022"
)
_SFDA = f"{RAW}/TencentARC/SFDA/eb1eee0a7e02883842d2e9fe387edb34345f202d"
_STABLE = (
    f"{RAW}/google-research/google-research/4963f325fe8bf41c69aeb2717d0ef408f623500e/stable_transfer/transferability/"
    "results_analysis"
)
_STABLE_CITATION = (
    "Andrea Agostinelli, Michal Pándy, Jasper Uijlings, Thomas Mensink and Vittorio Ferrari, How stable are "
    "transferability metrics evaluations?, ECCV 2022"
)

TABLES: dict[str, PublishedTable] = {
    "parc_controlled": PublishedTable(
        "PARC, controlled: four architectures pre-trained on eight data sets",
        _PARC_CITATION,
        PublishedFile(
            "parc_controlled.csv",
            f"{_PARC}/controlled.csv",
            "0467a4b590e03ec4480608bfe41c9d8a728206ab72df03a50d4f7efb62499d0e",
        ),
        _PARC_OPTIONS,
        Expected(32, 7, 196, 0.688),
    ),
    "parc_all": PublishedTable(
        "PARC, all: the same and networks from detection, segmentation and self-supervision",
        _PARC_CITATION,
        PublishedFile(
            "parc_all.csv", f"{_PARC}/all.csv", "a05f8eb0d384b1b14f89d60a441b428f6abddc7b005d108c9e54a50aa6a80992"
        ),
        {**_PARC_OPTIONS, "missing_value": -1.0, "missing": "complete"},
        Expected(67, 7, 441, 0.731),
    ),
    "transfergraph": PublishedTable(
        "TransferGraph: image models of a hub, fine-tuned",
        _TRANSFER_GRAPH_CITATION,
        _TRANSFER_GRAPH_RECORDS,
        {
            "columns": {"source": "model", "target": "finetuned_dataset", "performance": "eval_accuracy"},
            "missing": "complete",
        },
        Expected(176, 12, 2112, 0.580),
    ),
    "transfergraph_scores": PublishedTable(
        "TransferGraph: those with LogME and regularised H-score",
        _TRANSFER_GRAPH_CITATION,
        PublishedFile(
            "transfergraph_image_scores.csv",
            f"{_TRANSFER_GRAPH}/transferability_score_records.csv",
            "5803e4e3c08c53d95a6e451fc1509eb2a83494ea3ff1094db278e0f0a1875de9",
        ),
        {"missing": "complete"},
        Expected(135, 8, 1080, 0.432, {"log_me": 0.365, "h_score_shrunk": 0.367}),
        scores_and_records,
        _TRANSFER_GRAPH_RECORDS,
    ),
    "open_clip": PublishedTable(
        "OpenCLIP: contrastive models, zero-shot",
        "Gabriel Ilharco et al., OpenCLIP, 2021; results of the repository mlfoundations/open_clip, 2026",
        PublishedFile(
            "open_clip_results.csv",
            f"{RAW}/mlfoundations/open_clip/main/docs/openclip_results.csv",
            "6b3f9313e2e24691b31ab69b534b2553165be1a975dd149ee9b4a7facb384d21",
        ),
        {"columns": {"source": ["name", "pretrained"]}},
        Expected(121, 38, 4598, 0.696),
        one_column_a_target,
    ),
    "torchgeo_bench": PublishedTable(
        "TorchGeo-Bench: networks for satellite images, linear probes and kNN",
        "torchgeo-bench, results of the repository torchgeo/torchgeo-bench, 2026",
        PublishedFile("torchgeo_bench_linear_knn.csv", f"{RAW}/torchgeo/torchgeo-bench/main/results/all_results.csv"),
        {"missing": "complete"},
        Expected(30, 10, 300, 0.716, {"knn": 0.721}),
        linear_and_knn,
    ),
    "supervised_full": PublishedTable(
        "supervised networks, fine-tuned as a whole",
        _SFDA_CITATION,
        PublishedFile(
            "supervised_full.csv",
            f"{_SFDA}/tw_group1.py",
            "91a9ade653fabe5a8518deba59e993181efeff7f078562155a5fa6829c1981ef",
            "finetune_acc",
        ),
        {},
        Expected(11, 11, 121, 0.837),
    ),
    "supervised_head": PublishedTable(
        "supervised networks, the head trained alone",
        "results of the repository alizkzm/pert_robust_platform, 2025",
        PublishedFile(
            "supervised_head.csv",
            f"{RAW}/alizkzm/pert_robust_platform/52bce30df746aee4460b0d8b022d38b0af3e7786/tw_group1.py",
            "05ed7423746abfcf1ab494a1b134f05dcdb6a9c6c192afc51f16c83a7f8b5381",
            "head_training_acc",
        ),
        {},
        Expected(11, 11, 121, 0.616),
    ),
    "self_supervised_full": PublishedTable(
        "self-supervised networks, fine-tuned as a whole",
        _SFDA_CITATION,
        PublishedFile(
            "self_supervised_full.csv",
            f"{_SFDA}/tw_group2.py",
            "24bbfff4d6170f0051a0d2ea96de252ddf81f244cb9156c3c93732e14a3aee97",
            "finetune_acc",
        ),
        {},
        Expected(12, 11, 132, 0.685),
    ),
    "source_datasets": PublishedTable(
        "stability, scenario 1: source data sets for semantic segmentation",
        _STABLE_CITATION,
        PublishedFile(
            "source_datasets_table.csv",
            f"{_STABLE}/source_datasets_table.csv",
            "d1099d566361a660dea3c52485d31ab6c534154f44888b8d7a17b82247c7ecbe",
        ),
        {},
        Expected(17, 17, 272, 0.470, {"gbc": 0.593, "leep": 0.517, "nleep": 0.565, "logme": 0.638, "hscore": 0.403}),
    ),
    "source_architectures": PublishedTable(
        "stability, scenario 2: architectures for image classification",
        _STABLE_CITATION,
        PublishedFile(
            "source_model_architectures_table.csv",
            f"{_STABLE}/source_model_architectures_table.csv",
            "fb96320ae92cb504eb816eb7575e94163bcede1f5f3a5bb6c738e4c4845d1f51",
        ),
        {},
        Expected(19, 9, 171, 0.693, {"gbc": 0.427, "leep": -0.068, "nleep": 0.612, "logme": 0.409, "hscore": -0.017}),
    ),
}
