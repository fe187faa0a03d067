"""Failures of Spark in one line, by what it says of them."""

from __future__ import annotations

import pytest

from gateway.pipeline.failures import ended, explain

TRACE = "\tat org.apache.hadoop.fs.FileSystem.create(FileSystem.java:1234)\n"
ABORTED = (
    "An error occurred while calling o808.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 "
    "failed 1 times, most recent failure: Lost task 0.0 in stage 5.0 (TID 5): "
)
WRITING = (
    ABORTED + "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows "
    "to {}. SQLSTATE: 58030\n" + TRACE
)
FULL = "Caused by: java.io.IOException: No space left on device\n" + TRACE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            WRITING.format("file:/data/my tables/data/usage/1-a") + FULL,
            "/data/my tables/data/usage/1-a: the disk is full; make space",
        ),
        (WRITING.format("s3a://b/tables/usage") + FULL, "s3a://b/tables/usage: the disk is full"),
        (ABORTED + "java.io.IOException: No space left on device\n", "make space in /scratch"),
        (ABORTED + "java.lang.OutOfMemoryError: Java heap space\n", "has run out of memory"),
        (
            WRITING.format("file:/a/b")
            + "Caused by: java.io.IOException: Mkdirs failed to create file:/a/b/_temporary/0 "
            "(exists=false, cwd=file:/)\n",
            "/a/b: cannot be made; let this user write there",
        ),
        (
            ": org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: "
            "file:/a/file\n" + TRACE,
            "/a/file: is a file; name a folder",
        ),
        (
            ABORTED + "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
            "file:///a/x.jsonl. File does not exist. It is possible\n"
            + TRACE
            + "Caused by: java.io.FileNotFoundException: /a/x.jsonl (Permission denied)\n",
            "/a/x.jsonl: permission denied; let this user read",
        ),
        (
            ": java.nio.file.AccessDeniedException: /a/dt=2026-11-20: Permission denied\n" + TRACE,
            "/a/dt=2026-11-20: permission denied",
        ),
        (
            (
                "Caused by: org.apache.hadoop.security.AccessControlException: Permission denied: "
                'user=x, inode="/a"\n'
            ),
            'permission denied: user=x, inode="/a"',
        ),
        (
            ABORTED + "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
            "file:///a/x.jsonl. File does not exist. It is possible\n",
            "/a/x.jsonl: has vanished while it was read",
        ),
        (
            (
                ": java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
                "org.apache.hadoop.fs.s3a.S3AFileSystem not found\n"
            ),
            "Spark has no org.apache.hadoop.fs.s3a.S3AFileSystem",
        ),
        ('UnsupportedFileSystemException: No FileSystem for scheme "x"\n', "x:// is no filesystem"),
        (
            ABORTED + "something\n" + TRACE + "Caused by: a.b.OddException: of its own\n" + TRACE,
            "the job failed in Spark: of its own; all of it: --trace",
        ),
        ("[DIVIDE_BY_ZERO] Division by zero.", "failed in Spark: [DIVIDE_BY_ZERO] Division by"),
        ("", "the job failed in Spark: no reason"),
    ],
)
def test_a_failure_is_one_line_with_its_place_and_what_to_do(text: str, said: str) -> None:
    found = explain(text, "/scratch")
    assert said in found
    assert "\n" not in found
    assert "\tat" not in found


@pytest.mark.parametrize(
    ("status", "said"),
    [(52, "out of memory"), (-9, "was killed"), (1, "ended with status 1"), (None, "has ended;")],
)
def test_a_process_that_has_gone_tells_by_its_status(status: int | None, said: str) -> None:
    assert said in ended(status)
