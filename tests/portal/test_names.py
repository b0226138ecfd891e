"""Names of teams and people that are refused, and those that are not."""

import unicodedata

import pytest

from headstart.output.errors import UserError
from headstart.portal.records.names import check_name, index_names

# Pairs of the examples in Unicode Technical Standard 39, section 4, and of what is seen on leaderboards.
ALIKE = (
    *(("alice", "ALICE"), ("owls", "ｏｗｌｓ"), ("Team 1", "Team l"), ("Team 1", "Team I"), ("Team 0", "team o")),
    *(("coco", "сосо"), ("COCO", "сосо"), ("HAPPY", "НАРРУ"), ("Night owls", "Night  owls"), ("corn", "com")),
    *(("soap", "ѕоар"), ("TOKYO", "ΤΟΚΥΟ"), ("Café", "Cafe\u0301"), ("𝐨𝐰𝐥𝐬", "owls")),
)
DIFFERENT = (
    ("owls", "owl"),
    ("Team 1", "Team 2"),
    ("Café", "Cafe"),
    ("сова", "coba"),
    ("müller", "muller"),
    ("Team I", "Team L"),
)


# Words in which a letter of another script looks like none of ASCII, or stands alone; words with marks of their script.
FOREIGN = ("Ωmega", "Σigma", "ΔNet", "β-VAE", "α-Go", "AI4Всех", "Иван/Ivan", "हिन्दी", "ကြွှော်", "Đà Nẵng", "ısı")


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_refused(one: str, other: str) -> None:
    for new, there in ((one, other), (other, one)):
        with pytest.raises(UserError, match="looks like a team that exists"):
            check_name(new, index_names(["Larks", there]), "a team")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_that_differ_visibly_stand_side_by_side(one: str, other: str) -> None:
    check_name(one, index_names([other]), "a team")
    check_name(other, index_names([one]), "a team")


@pytest.mark.parametrize("name", ["аlice", "night оwls", "Ρaul", "Αθήνα и Мoсква"])
def test_words_of_mixed_scripts_are_refused(name: str) -> None:
    assert {unicodedata.name(letter).split()[0] for letter in name if letter.isalpha()} > {"LATIN"}
    with pytest.raises(UserError, match="mixes Latin, Greek or Cyrillic letters in one word"):
        check_name(name, {}, "a team")


@pytest.mark.parametrize(
    "name", ["Москва owls", "Αθήνα 2", "東京 owls", "Ünïcode", "team-7 β", "<b>", "مرحبا", *FOREIGN]
)
def test_words_of_one_script_each_are_names(name: str) -> None:
    check_name(name, index_names(["Larks"]), "a team")


@pytest.mark.parametrize("name", ["", " x", "x" * 65, "\ufdfa" * 64, "x" * 100_000])
def test_long_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="is not valid"):
        check_name(name, {}, "a team")


@pytest.mark.parametrize(
    "name", ["a\u202eb", "a\nb", "\u3164", "Owl \u2764\ufe0f", "東京\u3000大学", "a\u00a0b", "\u2800"]
)
def test_characters_that_nobody_sees_are_named(name: str) -> None:
    (unseen,) = (each for each in name if each not in "ab 東京大学Owl\u2764")
    with pytest.raises(UserError, match=rf"is not valid; leave out the invisible .* U\+{ord(unseen):04X}"):
        check_name(name, {}, "a team")


@pytest.mark.parametrize("name", ["\u0301owls", "o" + "\u0301" * 5 + "wls"])
def test_marks_that_cover_other_text_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="use at most 4 marks per letter"):
        check_name(name, {}, "a team")
