"""What Spark says of failures, and the line that is told of each."""

from __future__ import annotations

from typing import NamedTuple

SCRATCH = "/scratch"
"""The folder in which Spark keeps what does not fit into memory."""


class Case(NamedTuple):
    """`text`: all that Spark said. `message`: what is told."""

    text: str
    message: str


AGAIN = "; then run the job again: the tables are as before"
TRACE = "\tat org.apache.hadoop.fs.FileSystem.create(FileSystem.java:1234)\n"
ABORTED = (
    "An error occurred while calling o808.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 "
    "failed 1 times, most recent failure: Lost task 0.0 in stage 5.0 (TID 5): "
)
FULL = "Caused by: java.io.IOException: No space left on device\n" + TRACE
GONE = (
    "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
    "file:///a/x.jsonl. File does not exist. It is possible\n" + TRACE
)


def writing(place: str, cause: str) -> str:
    """Return what Spark says of a task that cannot write."""
    what = f"Task failed while writing rows to {place}. SQLSTATE: 58030"
    return f"{ABORTED}org.apache.spark.SparkException: [TASK_WRITE_FAILED] {what}\n{TRACE}{cause}"


CASES = [
    Case(
        writing("file:/data/my tables/data/usage/1-a", FULL),
        f"/data/my tables/data/usage/1-a: the disk is full; make space{AGAIN}",
    ),
    Case(
        writing("s3a://b/tables/usage", FULL),
        f"s3a://b/tables/usage: the disk is full; make space{AGAIN}",
    ),
    Case(
        f"{ABORTED}java.io.IOException: No space left on device\n{TRACE}",
        "the disk is full on which Spark keeps what does not fit into memory; make space in "
        f"{SCRATCH}, or name another folder: SPARK_LOCAL_DIRS{AGAIN}",
    ),
    Case(
        f"{ABORTED}java.lang.OutOfMemoryError: Java heap space\n",
        f"Spark has run out of memory; more: --memory 4g{AGAIN}",
    ),
    Case(
        writing(
            "file:/a/b",
            "Caused by: java.io.IOException: Mkdirs failed to create file:/a/b/_temporary/0 "
            "(exists=false, cwd=file:/)\n",
        ),
        "/a/b: cannot be made; let this user write there, and see that the disk has space",
    ),
    Case(
        ": org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: "
        f"file:/a/file\n{TRACE}",
        "/a/file: is a file; name a folder",
    ),
    Case(
        f"{ABORTED}{GONE}Caused by: java.io.FileNotFoundException: /a/x.jsonl (Permission denied)",
        f"/a/x.jsonl: permission denied; let this user read and write there{AGAIN}",
    ),
    Case(
        f": java.nio.file.AccessDeniedException: /a/dt=2026-11-20: Permission denied\n{TRACE}",
        f"/a/dt=2026-11-20: permission denied; let this user read and write there{AGAIN}",
    ),
    Case(
        "Caused by: org.apache.hadoop.security.AccessControlException: Permission denied: "
        'user=x, inode="/a"\n',
        f'permission denied: user=x, inode="/a"{AGAIN}',
    ),
    Case(ABORTED + GONE, "/a/x.jsonl: has vanished while it was read; run the job again"),
    Case(
        "[CANNOT_READ_FILE_FOOTER] Could not read footer for file: file:/a/b/part-0.parquet. "
        "Please ensure that the file is in either ORC or Parquet format.\n",
        "/a/b/part-0.parquet: is damaged; restore it, or begin new tables from the records",
    ),
    Case(
        f"{TRACE}Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: "
        "file:/a/b/part-0.parquet at 2560 exp: 1517067743 got: -746964851\n",
        "/a/b/part-0.parquet: is damaged; restore it, or begin new tables from the records",
    ),
    Case(
        "[PATH_NOT_FOUND] Path does not exist: file:/a/b/dt=2026-11-21. SQLSTATE: 42K03",
        "/a/b/dt=2026-11-21: is gone; restore it, or begin new tables from the records",
    ),
    Case(
        ": java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
        "org.apache.hadoop.fs.s3a.S3AFileSystem not found\n",
        "Spark has no org.apache.hadoop.fs.s3a.S3AFileSystem, which this URL needs; name its "
        "package: --conf spark.jars.packages=...",
    ),
    Case(
        "[STREAM_FAILED] Query [id = 1e26841d, runId = 3be59310] terminated with exception: "
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs "
        "detected for 0.",
        "another run watches these tables; let it end, or have one look again and again: "
        "--every 1m",
    ),
    Case(
        'UnsupportedFileSystemException: No FileSystem for scheme "x"\n',
        "x:// is no filesystem that Spark knows; a folder, or a URL such as s3a://...",
    ),
    Case(
        f"{ABORTED}something\n{TRACE}Caused by: a.b.OddException: of its own\n{TRACE}",
        "the job failed in Spark: of its own; all of it: --trace; the tables are as before",
    ),
    Case(
        "[DIVIDE_BY_ZERO] Division by zero.",
        "the job failed in Spark: [DIVIDE_BY_ZERO] Division by zero.; all of it: --trace; "
        "the tables are as before",
    ),
    Case("", "the job failed in Spark: no reason; all of it: --trace; the tables are as before"),
]

ENDED = [
    (52, f"Spark has run out of memory; more: --memory 4g{AGAIN}"),
    (
        -9,
        (
            "Spark's process was killed, as by the system when memory is short; "
            f"less: --memory 1g, or a larger machine{AGAIN}"
        ),
    ),
    (1, f"Spark's process has ended with status 1; what it says: --trace{AGAIN}"),
    (None, f"Spark's process has ended with an unknown status; what it says: --trace{AGAIN}"),
]
"""What is told of a process that has gone, by its exit status."""

OTHERS = [
    # tests/pipeline/test_ingest.py and test_topic.py cause these.
    "/a: there is no such folder, or no right to see it; name the one that usage.folder names",
    "pulsar://a/b: is no topic; pulsar://host:port/tenant/namespace/topic",
    "pulsar://a/b/c/d: cannot be read: Timeout",
    # tests/pipeline/test_keeping.py causes these.
    "--unread: jobs may still read younger files; 24h at least",
    "--month 2025-02: its days before 2025-03-01 are gone, which retain let go; name a later month",
    # tests/pipeline/test_chargeback.py causes this.
    (
        "2025-10 cannot be closed: 3 records are missing, on 2025-10-03 (1), 2025-10-06 (2); "
        "ingest what is left, or close it without them: --accept-missing 3"
    ),
]

MESSAGES = [*(it.message for it in CASES), *(message for _, message in ENDED), *OTHERS]
