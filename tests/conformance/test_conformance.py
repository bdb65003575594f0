# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Every case of cases/, with every runner that can run it, on every kind of server it asks for."""

from __future__ import annotations

import os
import re
import signal
from itertools import permutations, product
from pathlib import Path

import pytest
from support.servers import Server, available_kinds, has_tls
from support.wait import LIMIT

from . import case as case_module
from .case import BadCase, Case, load, parse
from .conftest import Peers
from .driver import CaseFailed, assignments, is_by_tls, run_case
from .runners import PREPARE, Runner, capabilities

SPEC = Path(__file__).parent / "SPEC.md"
CASES = load()
KINDS = available_kinds()
IS_LONG = bool(os.environ.get("REDLATCH_TEST_LONG"))


# What Python and Java do of their own is above the library, which sees to the kinds of servers.
ONE_KIND = ({"python"}, {"python-aio"}, {"java"})


def chosen(case: Case) -> list[dict[str, str]]:
    """Of a copy in another format the mixed one only, in which all languages have their turn."""
    all_of_them = assignments(case, capabilities())
    return all_of_them[-1:] if case.is_copy and not IS_LONG else all_of_them


def combinations() -> list[tuple[Case, str, dict[str, str]]]:
    found = []
    for case in CASES:
        for kind in KINDS if case.every_server else KINDS[:1]:
            if is_by_tls(case) and not has_tls(kind):
                continue
            found += [
                (case, kind, players)
                for players in chosen(case)
                if kind == KINDS[0] or set(players.values()) not in ONE_KIND
            ]
    return found


def identify(combination: tuple[Case, str, dict[str, str]]) -> str:
    case, kind, players = combination
    languages = sorted(set(players.values()), key=list(players.values()).index)
    return f"{case.name}-{kind}-{'+'.join(languages)}"


@pytest.mark.parametrize("combination", combinations(), ids=identify)
def test_case(
    combination: tuple[Case, str, dict[str, str]],
    servers: dict[str, Server],
    commands: dict[str, list[str]],
    peers: Peers,
) -> None:
    case, kind, players = combination
    others = peers(kind, case.node_count - 1)
    run_case(servers[kind], case, commands, players, peers=others)


def by_name(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def run_with_c(server: Server, case: Case, commands: dict[str, list[str]], defect: str) -> None:
    run_case(server, case, commands, dict.fromkeys(case.clients, "c"), defect)


# Runs that must fail: a suite that cannot is no evidence. A defect, the case that finds it, and the
# runners that have it.
DEFECTS = [
    ("cut_at_nul", "names-all-bytes", "c go java"),
    ("cut_at_nul", "names-binary", "c python python-aio go java"),
    ("ignore_release", "misuse-second-release", "c python go java"),
    ("ignore_release", "mutex-exclusive", "c c-queue python python-aio go java"),
    ("ignore_release", "mutex-key", "c"),
    ("ignore_release", "redlock-exclusive", "c"),
    ("early_answer", "lost-taken-over", "c-queue"),
    ("early_answer", "mutex-exclusive", "c-queue"),
    ("ignore_cancel", "redlock-cancelled", "python-aio go java"),
    ("ignore_cancel", "wait-cancelled", "python-aio go java"),
    ("wrong_status", "lost-taken-over", "python python-aio go java"),
    ("wrong_status", "mutex-exclusive", "python go java"),
    ("wrong_status", "reentrant-counts", "c"),
    ("wrong_status", "rw-owner-misuse", "c-queue python-aio"),
    ("wrong_status", "rw-upgrade-deadlock", "c python go java"),
    ("own_owner", "reentrant-in-two-processes", "c python python-aio go java"),
    ("forget_count", "reentrant-counts", "python python-aio go java"),
    ("read_as_write", "rw-shared-or-alone", "c c-queue python python-aio go java"),
    ("write_as_read", "rw-shared-or-alone", "c c-queue python python-aio go java"),
    ("forget_id", "election-lock", "c c-queue python python-aio go java"),
    ("forget_position", "election-no-change", "c c-queue"),
    ("ignore_release", "election-order", "c c-queue python python-aio go java"),
    ("deaf", "recall-heard", "c c-queue python python-aio go java"),
    ("deaf", "recall-leader", "c c-queue python python-aio go java"),
    ("forget_retain", "retain-again", "c c-queue python python-aio go java"),
    ("forget_retain", "retain-shutdown", "c c-queue python python-aio go java"),
    ("one_node", "redlock-exclusive", "c c-queue python python-aio go java"),
]


@pytest.mark.parametrize(
    ("language", "defect", "name"),
    [(language, defect, name) for defect, name, all_of in DEFECTS for language in all_of.split()],
)
def test_planted_defect_is_found(
    language: str,
    defect: str,
    name: str,
    servers: dict[str, Server],
    commands: dict[str, list[str]],
    peers: Peers,
) -> None:
    server, case = servers[KINDS[0]], by_name(name)
    others = peers(KINDS[0], case.node_count - 1)
    players = dict.fromkeys(case.clients, language)
    run_case(server, case, commands, players, peers=others)
    with pytest.raises(CaseFailed):
        run_case(server, case, commands, players, defect, others)


@pytest.mark.parametrize("language", capabilities())
def test_a_runner_that_has_ended_may_be_killed(
    language: str, commands: dict[str, list[str]]
) -> None:
    """Goal: as its last call ends, a test need not know whether its process has ended too."""
    runner = Runner(commands[language])
    process = runner._process
    os.kill(runner.pid, signal.SIGKILL)
    process.wait(LIMIT)
    process.kill()
    runner.kill()


def statuses_of(command: list[str], defect: str = "") -> dict[str, str]:
    """Name, number and traits of each status, as a language has them."""
    runner = Runner(command, defect)
    try:
        assert runner.call("- open url=redis://localhost") == "OK"
        status, *words = runner.call("- statuses").split()
        assert status == "OK"
        runner.end()
    finally:
        runner.kill()
    return dict(word.split("=") for word in words)


@pytest.mark.parametrize("language", capabilities())
def test_every_language_has_the_same_statuses(
    language: str, commands: dict[str, list[str]]
) -> None:
    assert statuses_of(commands[language]) == statuses_of(commands["c"])


@pytest.mark.parametrize("language", capabilities())
def test_urls_of_sentinels_are_checked(language: str, commands: dict[str, list[str]]) -> None:
    """An open touches no network, so that no sentinel is needed."""
    runner = Runner(commands[language], "")
    try:
        for url, status in (
            ("redis-sentinel://h1,h2:1,[::1]/main/0?sentinel_user=u", "OK"),
            ("redis+sentinel://h1/main", "OK"),
            ("redis-sentinel://h1,h2", "E_INVALID"),
            ("redis-sentinel://h1,h1:26379/main", "E_INVALID"),
            ("redis-sentinel://h1/main?tls_verify=ca", "E_INVALID"),
            ("redis://h1?sentinel_user=u", "E_INVALID"),
        ):
            answer = runner.call(f"- open url={case_module.encode(url.encode())}")
            assert answer.split()[0] == status, (url, answer)
    finally:
        runner.kill()


@pytest.mark.parametrize("language", ["go", "java"])
def test_another_status_is_found(language: str, commands: dict[str, list[str]]) -> None:
    assert statuses_of(commands[language], "wrong_status") != statuses_of(commands["c"])


# Expectations that are wrong on purpose, each in another way.
@pytest.mark.parametrize(
    "line",
    [
        "a.m acquire wait_ms=0 -> BUSY",
        "a.m acquire wait_ms=0 -> OK token=nonsense",
        "a.m acquire wait_ms=0 -> OK no_such_value=1",
        "a.m acquire wait_ms=0 -> OK fence=1..2",
        "a.m acquire wait_ms=0 -> OK fence<1",
        "a.m acquire wait_ms=0 -> OK at_least_ms=9000",
        "@ exists x -> 1",
        "@ get x -> *",
        "@ get x -> OK",
        "@ nonsense -> OK",
        "until @ exists x -> 1 within_ms=50",
        "a.m show -> OK state=HELD",
        "a.m nonsense -> OK",
        "a.other acquire wait_ms=0 -> OK",
    ],
)
def test_wrong_expectation_is_found(
    line: str, servers: dict[str, Server], commands: dict[str, list[str]]
) -> None:
    text = f"case planted\nclient a\nlock a.m mutex name=x\n{line}\n"
    with pytest.raises(CaseFailed):
        run_with_c(servers[KINDS[0]], parse(text)[0], commands, "")


def test_immortal_key_is_found(servers: dict[str, Server], commands: dict[str, list[str]]) -> None:
    text = "case planted\nclient a\n@ incr left-behind -> 1\n"
    with pytest.raises(CaseFailed, match="left-behind"):
        run_with_c(servers[KINDS[0]], parse(text)[0], commands, "")


@pytest.mark.parametrize(
    "text",
    [
        "a.m acquire -> OK",
        "case x\na.m acquire -> OK",
        "case x\nclient a\nlock a.m permit name=x",
        "case x\nclient a\na.m acquire ->",
        "case x\nclient a\na.m acquire wait_ms=0",
        "case x\nclient a\n@ del x",
        "case x\nclient a\na.m acquire -> OK nonsense",
        "case x\nclient a\nuntil a inspect name=x",
        "case x\nquorum 3\nclient a\n@4 get x -> nil",
    ],
)
def test_mistake_in_a_case_is_an_error(text: str) -> None:
    with pytest.raises(BadCase):
        parse(text)


def test_every_sentence_has_a_case() -> None:
    numbered = re.findall(r"^- \*\*(S\d+)\*\*", SPEC.read_text(), re.MULTILINE)
    assert len(numbered) == len(set(numbered)) > 50
    cited = {sentence for case in CASES for sentence in case.sentences}
    assert sorted(set(numbered) - cited) == []
    assert sorted(cited - set(numbered)) == []


def test_the_word_must_stands_in_sentences_only() -> None:
    text = SPEC.read_text().replace("word *must*", "")
    sentence = re.compile(r"^- \*\*S\d+\*\* .*\n(?:  .*\n)*", re.MULTILINE)
    assert [found for found in sentence.findall(text) if "must" not in found] == []
    assert "must" not in sentence.sub("", text)


def test_every_case_cites_sentences_and_has_a_name_of_its_own() -> None:
    assert [case.name for case in CASES if not case.sentences] == []
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert case_module.CASES.is_dir()


def test_every_pair_of_runners_meets() -> None:
    met = {pair for _, _, players in combinations() for pair in permutations(players.values(), 2)}
    assert met == set(product(capabilities(), repeat=2))


def test_every_runner_has_capabilities() -> None:
    folders = {path.name for path in (Path(__file__).parent / "runners").iterdir() if path.is_dir()}
    assert set(capabilities()) == set(PREPARE)
    assert folders == {name.partition("-")[0] for name in PREPARE}
