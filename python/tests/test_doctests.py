"""The documentation is complete and correct: every example of the package and of its pages runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import maxmargin

ROOT = Path(__file__).parents[1]

MODULES = [maxmargin] + [
    importlib.import_module(f"maxmargin.{module.name}") for module in pkgutil.iter_modules(maxmargin.__path__)
]

PAGES = [ROOT / "README.md", *(ROOT.parent / "docs" / name for name in ("own-oracle.md", "python.md", "structured.md"))]


def own(module: ModuleType) -> dict[str, object]:
    """Public classes and functions that a module of the package defines."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    defined = (module.__name__, "maxmargin") if module.__name__ == "maxmargin._core" else (module.__name__,)
    return {
        name: value
        for name, value in found.items()
        if (inspect.isclass(value) or inspect.isroutine(value))
        and (value.__module__ in defined or inspect.isbuiltin(value))
    }


def exported() -> dict[str, object]:
    """Classes and functions that users import."""
    found = {}
    for module in (maxmargin, maxmargin.metrics):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                found[f"{module.__name__}.{name}"] = value
    return found


def run(tests: list[doctest.DocTest]) -> tuple[int, str]:
    """The number of examples, and their failures."""
    said: list[str] = []
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test, out=said.append)
    return runner.summarize(verbose=False).attempted, "".join(said)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_of_a_module_run(module):
    _, wrong = run(doctest.DocTestFinder().find(module))
    assert not wrong, wrong


def test_examples_are_found():
    assert sum(len(test.examples) for module in MODULES for test in doctest.DocTestFinder().find(module)) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        assert block.startswith(">>> "), f"no session, so that nobody would run it:\n{block}"
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    attempted, wrong = run([session])
    assert attempted == len(session.examples)
    assert not wrong, wrong


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_has_a_docstring(module):
    assert module.__doc__ or module.__name__ == "maxmargin._core"
    bare = [name for name, value in own(module).items() if not inspect.getdoc(value)]
    for owner, value in own(module).items():
        if inspect.isclass(value):
            members = {name: member for name, member in vars(value).items() if not name.startswith("_")}
            bare += [
                f"{owner}.{name}"
                for name, member in members.items()
                if (callable(member) or isinstance(member, property | staticmethod) or inspect.isdatadescriptor(member))
                and not (inspect.getdoc(member) or "")
            ]
    assert not bare


@pytest.mark.parametrize(("name", "value"), exported().items(), ids=exported().keys())
def test_every_class_and_function_that_users_import_has_an_example(name, value):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""), f"{name} has no example"
