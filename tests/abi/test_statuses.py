# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""One list of statuses, statuses.def, is what the header, the library and the page say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

from .library import ROOT, declared_constants, has_status_form, loaded

GENERATOR = ROOT / "tools/gen_docs.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("gen_docs", GENERATOR)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["gen_docs"] = module  # dataclasses look it up there
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listed(generator: ModuleType) -> list[tuple[str, int, int, str]]:
    """Name, number, traits and text of each status of statuses.def."""
    constants = declared_constants()
    entries = generator.read_statuses(generator.SOURCE.read_text())
    return [
        (f"RL_{e.name}", e.number, sum(constants[t] for t in e.traits), e.text) for e in entries
    ]


def test_header_has_the_same_statuses(listed: list[tuple[str, int, int, str]]) -> None:
    header = {n: v for n, v in declared_constants().items() if has_status_form(n)}
    assert header == {name: number for name, number, _, _ in listed}
    assert len(set(header.values())) == len(header)


def test_library_knows_names_texts_and_traits(listed: list[tuple[str, int, int, str]]) -> None:
    library = loaded()
    for name, number, traits, text in listed:
        assert library.rl_status_name(number).decode() == name
        assert library.rl_status_text(number).decode() == text
        for trait in (1, 2, 4):
            assert library.rl_status_is(number, trait) == bool(traits & trait), (name, trait)


def test_library_knows_no_others(listed: list[tuple[str, int, int, str]]) -> None:
    numbers = {number for _, number, _, _ in listed}
    for number in set(range(-300, 300)) - numbers:
        assert loaded().rl_status_name(number) == b"RL_UNKNOWN"
        assert loaded().rl_status_is(number, -1) == 0


def test_every_constant_is_answered() -> None:
    constants = declared_constants()
    assert len(constants) > 50
    for name, value in constants.items():
        data = name.encode()
        assert loaded().rl_constant(data, len(data), 123456789) == value, name
        # By its length, not by a NUL; and whole.
        assert loaded().rl_constant(data + b"_NO", len(data), 123456789) == value, name
        assert loaded().rl_constant(data, len(data) - 1, 123456789) == 123456789, name


def test_page_is_fresh() -> None:
    done = subprocess.run([sys.executable, str(GENERATOR), "--check"], check=False)
    assert done.returncode == 0


def test_stale_page_is_found(
    generator: ModuleType, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = generator.TOP / "docs" / "errors.md"
    text = stale.read_text().replace("RL_E_LOST", "RL_E_LOSS")
    monkeypatch.setattr(generator, "RESULT", FakePage(text))
    monkeypatch.setattr(sys, "argv", ["gen_docs.py", "--check"])
    assert generator.main() == 1


class FakePage:
    """Stands for docs/errors.md, so that no test writes into the tree."""

    def __init__(self, text: str) -> None:
        self._text = text

    def exists(self) -> bool:
        return True

    def read_text(self) -> str:
        return self._text

    def relative_to(self, _: object) -> str:
        return "docs/errors.md"
