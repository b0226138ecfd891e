"""Names of teams and people that are refused, and those that are not."""

import unicodedata

import pytest

from headstart.output.errors import UserError
from headstart.portal.records.names import check_name

# Pairs of the examples in Unicode Technical Standard 39, section 4, and of what is seen on leaderboards.
ALIKE = (
    *(("alice", "ALICE"), ("owls", "ｏｗｌｓ"), ("Team 1", "Team l"), ("Team 1", "Team I"), ("Team 0", "team o")),
    *(("coco", "сосо"), ("COCO", "сосо"), ("HAPPY", "НАРРУ"), ("Night owls", "Night  owls"), ("corn", "com")),
    *(("soap", "ѕоар"), ("TOKYO", "ΤΟΚΥΟ"), ("Café", "Cafe\u0301"), ("𝐨𝐰𝐥𝐬", "owls")),
)
DIFFERENT = (("owls", "owl"), ("Team 1", "Team 2"), ("Café", "Cafe"), ("сова", "coba"), ("müller", "muller"))


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_refused(one: str, other: str) -> None:
    for new, there in ((one, other), (other, one)):
        with pytest.raises(UserError, match="name: there is a team"):
            check_name(new, ["Larks", there], "a team")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_that_differ_visibly_stand_side_by_side(one: str, other: str) -> None:
    check_name(one, [other], "a team")
    check_name(other, [one], "a team")


@pytest.mark.parametrize("name", ["аlice", "night оwls", "Ρaul", "Αθήνα и Мoсква"])
def test_words_of_mixed_scripts_are_refused(name: str) -> None:
    assert {unicodedata.name(letter).split()[0] for letter in name if letter.isalpha()} > {"LATIN"}
    with pytest.raises(UserError, match="mixes Latin, Greek or Cyrillic letters in one word"):
        check_name(name, [], "a team")


@pytest.mark.parametrize("name", ["Москва owls", "Αθήνα 2", "東京 owls", "Ünïcode", "team-7 β", "<b>", "مرحبا"])
def test_words_of_one_script_each_are_names(name: str) -> None:
    check_name(name, ["Larks"], "a team")


@pytest.mark.parametrize("name", ["", " x", "a\u202eb", "x" * 65, "a\nb", "\u3164", "\ufdfa" * 64, "x" * 100_000])
def test_invisible_and_long_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="is not valid"):
        check_name(name, [], "a team")
