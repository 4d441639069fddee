import sys
from importlib import import_module

import pytest

from datakit.absent import absent

MODULE = """
from dataclasses import dataclass
import slow.deep as deep
from slow import Base, decorated, generic

class Mine(Base, generic[int]):
    @decorated(1)
    def method(self): ...

@dataclass
class Config:
    rows: int = 3
    device: deep.Device | None = None
"""


def test_a_module_is_read_without_its_slow_library_and_then_forgotten(tmp_path, monkeypatch):
    (tmp_path / "owned").mkdir()
    (tmp_path / "owned" / "__init__.py").write_text("")
    (tmp_path / "owned" / "part.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    owned = import_module("owned")
    with absent(("slow",), "owned"):
        assert import_module("owned.part").Config().rows == 3
    assert not {"slow", "slow.deep", "owned.part"} & set(sys.modules) and not hasattr(owned, "part")
    with pytest.raises(ModuleNotFoundError, match="slow"):
        import_module("owned.part")
    del sys.modules["owned"]
