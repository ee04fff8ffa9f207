"""Writing the file: whole or not at all, with one line where it cannot be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.export.writing import write_atomically

FULL = """
import resource, sys
from pathlib import Path
from cuda_l1.errors import InfrastructureError
from cuda_l1.export.writing import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), "x" * 5000)
except InfrastructureError as error:
    print(error)
"""


def test_it_replaces_what_is_there_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    write_atomically(path, "new")
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["a.py"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_not_there_is_the_persons_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*No such file"):
        write_atomically(tmp_path / "no" / "a.py", "x")


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and f"cannot write {path}" in done.stdout, done.stderr
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a.py"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    write_atomically(tmp_path / "link.md", "new")
    assert (tmp_path / "link.md").is_symlink() and (tmp_path / "real.md").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As /dev/null, which root could replace by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(path, "text")
        assert os.read(reader, 100) == b"text" and path.is_fifo()
    finally:
        os.close(reader)
