"""What a candidate's compilers wrote is kept for it alone, and links lead nowhere."""

from __future__ import annotations

import os
import traceback

import pytest

from cuda_l1.evaluator import build_cache
from cuda_l1.evaluator.build_cache import BuildCache
from cuda_l1.evaluator.guest.privileges import drop_capabilities
from cuda_l1.evaluator.watch import UNCOUNTED, folder_bytes
from cuda_l1.evaluator.work_folders import remove_tree


@pytest.fixture
def cache(tmp_path):
    return BuildCache(tmp_path / "cache")


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    (folder / "extensions" / "kernel").mkdir(parents=True)
    (folder / "extensions" / "kernel" / "kernel.so").write_text("compiled")
    (folder / "notes.txt").write_text("not a cache")
    return folder


def folder(tmp_path, name):
    made = tmp_path / name
    made.mkdir()
    return made


def test_caches_come_back_writable_with_their_times(cache, work, tmp_path):
    os.utime(work / "extensions" / "kernel" / "kernel.so", (1e9, 1e9))
    assert not cache.has("a")
    cache.keep("a", work)
    runner = folder(tmp_path, "runner")
    cache.copy_to("a", runner)
    copy = runner / "extensions" / "kernel" / "kernel.so"
    assert copy.read_text() == "compiled" and copy.stat().st_mtime == 1e9 and not (runner / "notes.txt").exists()
    copy.write_text("changed by one runner")
    other = folder(tmp_path, "other")
    cache.copy_to("a", other)
    assert (other / "extensions" / "kernel" / "kernel.so").read_text() == "compiled"


def test_another_key_gets_nothing(cache, work, tmp_path):
    cache.keep("a", work)
    runner = folder(tmp_path, "runner")
    cache.copy_to("b", runner)
    assert not cache.has("b") and list(runner.iterdir()) == []


def test_an_entry_without_files_counts_and_is_empty(cache, work, tmp_path):
    cache.keep("nothing", folder(tmp_path, "bare"))
    cache.keep("something", work)
    assert cache.has("nothing") and cache.is_empty("nothing") and cache.is_empty("unknown")
    assert not cache.is_empty("something")


def test_a_later_result_replaces_an_earlier_one(cache, work, tmp_path):
    cache.keep("a", work)
    (work / "extensions" / "kernel" / "kernel.so").write_text("newer")
    (work / "triton").mkdir()
    (work / "triton" / "x").write_text("x")
    cache.keep("a", work)
    runner = folder(tmp_path, "runner")
    cache.copy_to("a", runner)
    assert (runner / "extensions" / "kernel" / "kernel.so").read_text() == "newer" and (
        runner / "triton" / "x"
    ).exists()
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == ["a"]  # no leftovers


def test_links_are_not_followed(cache, work, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("token")
    (work / "extensions" / "file").symlink_to(secret)
    (work / "extensions" / "folder").symlink_to(tmp_path)
    (work / "triton").symlink_to(tmp_path)
    os.mkfifo(work / "extensions" / "pipe")
    cache.keep("a", work)
    runner = folder(tmp_path, "runner")
    cache.copy_to("a", runner)
    kept = {os.fspath(p.relative_to(runner)) for p in runner.rglob("*")}
    assert kept == {"extensions", "extensions/kernel", "extensions/kernel/kernel.so"}


def test_a_cache_folder_that_is_a_link_is_not_taken(cache, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    work = folder(tmp_path, "linked")
    (work / "extensions").symlink_to(tmp_path / "private")
    cache.keep("a", work)
    assert cache.is_empty("a")


def test_what_is_too_large_is_left(cache, work, monkeypatch):
    monkeypatch.setattr(build_cache, "MAX_ENTRY_BYTES", 100)
    cache.keep("a", work)
    assert not cache.has("a")


def test_a_file_that_changes_its_user_becomes_a_plain_one(cache, work, tmp_path):
    (work / "extensions" / "tool").write_text("#!/bin/sh")
    (work / "extensions" / "tool").chmod(0o6755)
    cache.keep("a", work)
    assert (tmp_path / "cache" / "a" / "extensions" / "tool").stat().st_mode & 0o7777 == 0o755


def test_a_copy_that_fails_leaves_nothing_behind(cache, work, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build_cache, "_copy_file", full)
    cache.keep("a", work)
    assert not cache.has("a") and list((tmp_path / "cache").iterdir()) == []


def test_holes_of_a_file_count_as_what_their_copy_takes(cache, work, monkeypatch):
    with open(work / "extensions" / "sparse", "wb") as file:
        file.truncate(1 << 22)
    assert folder_bytes(work) < 1 << 20 < folder_bytes(work, with_holes=True)
    monkeypatch.setattr(build_cache, "MAX_ENTRY_BYTES", 1 << 20)
    cache.keep("a", work)
    assert not cache.has("a")


def test_what_cannot_be_looked_into_is_not_kept(cache, work):
    home = os.getcwd()
    os.chdir(work / "extensions")
    try:
        for _ in range(2200):
            os.mkdir("a")
            os.chdir("a")
    finally:
        os.chdir(home)
    assert folder_bytes(work) == UNCOUNTED
    cache.keep("a", work)
    assert not cache.has("a")
    remove_tree(work)
    assert not work.exists()


@pytest.mark.parametrize(("name", "depth"), [("a", 300), ("a" * 200, 15)])
def test_what_lies_too_deep_to_be_copied_anywhere_else_is_not_kept(cache, work, name, depth):
    (work / "triton").joinpath(*[name] * depth).mkdir(parents=True)
    cache.keep("a", work)
    assert not cache.has("a")
    (work / "triton").joinpath(*[name] * 2, "deepest").write_text("within")
    remove_tree((work / "triton").joinpath(*[name] * 3))
    cache.keep("a", work)
    assert cache.has("a")


def test_a_folder_that_is_shut_is_not_kept_and_is_removed(cache, work):
    (work / "extensions").chmod(0)
    child = os.fork()
    if child == 0:  # nothing is shut to a superuser who has all capabilities
        try:
            drop_capabilities()
            assert folder_bytes(work) == UNCOUNTED
            work.chmod(0)
            cache.keep("a", work)
            assert not cache.has("a")
            remove_tree(work)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not work.exists()
