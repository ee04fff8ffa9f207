"""Files that the parent writes for a guest."""

from __future__ import annotations

import os
from pathlib import Path

from cuda_l1.evaluator.processes import MOUNTED_WORK, Guest
from cuda_l1.evaluator.work_folders import remove_tree


def put_file(guest: Guest, rung: str, name: str, text: str) -> str:
    """Write a file into a guest's work directory; the path as the guest sees it."""
    (guest.work_dir / name).write_text(text, encoding="utf-8")
    _hand_over(guest)
    seen = MOUNTED_WORK if rung == "R2" else str(guest.work_dir)
    return f"{seen}/{name}"


def _hand_over(guest: Guest) -> None:
    """Give what the parent wrote to the guest, who may have another user id and no right to pass over ours."""
    guest.wait_until_started()  # only then has it taken that id
    if guest.uid in (None, os.getuid()):
        return
    for folder, _, files in os.walk(guest.work_dir):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            os.chown(path, guest.uid, guest.uid, follow_symlinks=False)


def emptied(path: Path) -> Path:
    """The folder, made anew."""
    remove_tree(path)
    path.mkdir(parents=True)
    return path
