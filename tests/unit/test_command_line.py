"""Options and arguments of all commands come in any order."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.__main__ import _parser, main
from gateway.command_line import Parser


def commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield all commands that take arguments, by their words."""
    inner = [it for it in parser._actions if isinstance(it, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for action in inner:
        for name, command in action.choices.items():
            yield from commands(command, (*words, name))


def word_of(action: argparse.Action) -> str:
    return str(next(iter(action.choices))) if action.choices else "word"


def a_flag(parser: argparse.ArgumentParser) -> list[str]:
    """Return an option with its value, if it has one."""
    for action in parser._actions:
        if action.option_strings and action.dest != "help" and not action.required:
            if action.nargs == 0:
                return [action.option_strings[0]]
            if action.nargs is None and action.type in (None, Path):
                return [action.option_strings[0], word_of(action)]
    return []


PARSER = _parser()
ALL = {" ".join(words): (words, parser) for words, parser in commands(PARSER)}
WITH_BOTH = [
    name
    for name, (_, parser) in ALL.items()
    if a_flag(parser) and any(not it.option_strings for it in parser._actions)
]


def test_commands_with_options_and_arguments_are_many() -> None:
    assert len(WITH_BOTH) > 10
    assert all(isinstance(parser, Parser) for _, parser in ALL.values())


@pytest.mark.parametrize("name", ALL)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*ALL[name][0], "--help"])
    assert ended.value.code == 0
    assert "usage: gateway" in capsys.readouterr().out


@pytest.mark.parametrize("name", WITH_BOTH)
def test_an_option_may_stand_anywhere(name: str) -> None:
    words, parser = ALL[name]
    arguments = [word_of(it) for it in parser._actions if not it.option_strings]
    required = [
        word
        for it in parser._actions
        if it.option_strings and it.required
        for word in (it.option_strings[0], word_of(it))
    ]
    flag = a_flag(parser)
    found = [
        PARSER.parse_args([*words, *required, *arguments[:at], *flag, *arguments[at:]])
        for at in range(len(arguments) + 1)
    ]
    assert all(it == found[0] for it in found)
    assert "word" in str(found[0]) or not arguments


def test_init_takes_its_file_behind_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "edge", "--tls", "edge.yaml"]) == 0
    assert (tmp_path / "edge.yaml").exists()


@pytest.mark.parametrize("words", [["init", "edge", "--no", "x"], ["init"], ["check", "a", "b"]])
def test_what_no_command_takes_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert "usage: gateway" in capsys.readouterr().err
