"""Loading the genuine STL client: what it takes, what it must leave alone, what is said when it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import scapy
import yaml
import zmq
from verbs import python

from trexbench.core.errors import GeneratorError
from trexbench.generator.trex.client import TREX_DIR_VARIABLE, load_client

pytestmark = pytest.mark.portable


def test_our_libraries_stay_ours() -> None:
    before = {"yaml": yaml.__file__, "zmq": zmq.__file__, "scapy": scapy.__file__}
    path, hooks, environment = list(sys.path), list(sys.meta_path), dict(os.environ)
    client = load_client()
    with client.namespace():
        import scapy as theirs

        assert Path(theirs.__file__).is_relative_to(client.external)
        assert hasattr(theirs, "__path__")
    assert {name: sys.modules[name].__file__ for name in before} == before
    assert (sys.path, sys.meta_path, dict(os.environ)) == (path, hooks, environment)
    assert not {"trex", "trex_stl_lib", "lbr_trex_client"} & set(sys.modules)
    assert load_client() is client, "it is loaded once"


LOADED = "from trexbench.generator.trex.client import load_client\nclient = load_client()\nimport sys\n"


@pytest.mark.parametrize(
    "code",
    [
        LOADED + "import yaml, zmq\n"
        "assert yaml.__version__[0] >= '6' and zmq.zmq_version_info() >= (4,)\n"
        "assert str(client.external) not in ' '.join([yaml.__file__, zmq.__file__])\n"
        "pair = zmq.Context.instance().socket(zmq.PAIR), zmq.Context.instance().socket(zmq.PAIR)\n"
        "pair[0].bind('inproc://a'); pair[1].connect('inproc://a'); pair[0].send(b'x')\n"
        "assert pair[1].recv() == b'x'\n"
        "assert not any('external_libs' in str(getattr(m, '__file__', '')) for m in sys.modules.values())\n"
        "assert 'matplotlib' not in sys.modules\nimport matplotlib.pyplot\n",
        "import sys, trexbench.generator.trex.connect, trexbench.session.opening\n"
        "assert not {'scapy', 'pyroute2'} & set(sys.modules)",
    ],
    ids=["our libraries and plots after the client", "imported only where it is used"],
)
def test_a_fresh_process_loads(code: str) -> None:
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_namespace_nests_and_survives_an_exception() -> None:
    client = load_client()
    with pytest.raises(KeyError), client.namespace(), client.namespace():
        raise KeyError
    assert sys.modules["yaml"] is yaml


def test_a_directory_without_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TREX_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(GeneratorError, match=r"no TRex client in .*t-rex-64"):
        load_client()


def trex_directory(tmp_path: Path, api: str) -> Path:
    stl = tmp_path / "automation" / "trex_control_plane" / "interactive" / "trex" / "stl"
    stl.mkdir(parents=True)
    (stl.parent / "__init__.py").write_text("")
    (stl / "__init__.py").write_text("")
    (stl / "api.py").write_text(api)
    (tmp_path / "external_libs").mkdir()
    (tmp_path / "VERSION").write_text("v9.99\n")
    return tmp_path


@pytest.mark.parametrize(
    ("api", "said"),
    [
        ("raise RuntimeError('broken\\nin many\\nlines')", "RuntimeError: broken in many lines"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("class STLClient: pass", "lacks the API that trexbench uses"),
    ],
)
def test_a_client_that_does_not_load_is_one_line(tmp_path: Path, api: str, said: str) -> None:
    with pytest.raises(GeneratorError) as caught:
        load_client(trex_directory(tmp_path, api))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert sys.modules["yaml"] is yaml


def test_an_installation_is_preferred_to_the_package(tmp_path: Path) -> None:
    api = "class STLClient: pass\nSTLProfile = STLStream = STLPktBuilder = STLClient"
    client = load_client(trex_directory(tmp_path, api))
    assert (client.origin, client.version) == (str(tmp_path), "v9.99")
    sources = trex_directory(tmp_path / "scripts", api)
    (sources / "VERSION").rename(tmp_path / "VERSION")
    assert str(load_client(sources)) == f"{sources} v9.99"


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "trex_stl_lib").mkdir()
    (tmp_path / "trex_stl_lib" / "__init__.py").write_text("")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import trexbench.generator.trex.client as client\n"
        "client._FROM_PYPI = 'a_package_that_nobody_has'\n"
        "try: client.load_client()\n"
        "except client.GeneratorError as err: print(err)"
    )
    said = python(code).stdout
    assert "not installed" in said and "dead fork" in said and "pip install lbr-trex-client" in said
