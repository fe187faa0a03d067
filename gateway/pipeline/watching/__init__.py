"""Watching: incidents as they happen, from files of records as gateways close them.

Each run takes the files that no earlier run has taken, by Spark's streaming (`availableNow`), in
batches by their age, and judges slots as `neighbours` does:

1. *New records* are those within the watermark, which is some minutes behind the newest record so
   far. Older ones are late: counted, not judged. A record that came before, by its number, is
   dropped. Clocks ahead of this machine's do not move the watermark beyond it.
2. *Open slots* are those that records within the watermark may still change. Their sums are kept,
   as records of a whole slot (`neighbours.slot_sums`), and new records are added to them.
3. A slot is judged once a record is seen that reaches its end, and again with each batch while it
   is open. What is usual is learnt from the records of past weeks that `ingest` has taken, once a
   day, and not from the stream. Of closed slots signs are kept, for a day: who grew, who suffered.
4. Signs make incidents. One that no alert of its culprit overlaps is a new alert; one that ends
   later than its alert, or has more victims, replaces it. Alerts are never taken back:
   `neighbours`, which sees all records, is right.

One commit of a batch shows its sums, signs, numbers, counts and alerts, and names the batch. A run
that is killed before its commit has done nothing, and Spark gives the next run the same batch; if
it is killed after its commit, the next run sees that and passes over the batch. Alerts are given
once they are in the table, and then marked as given: after a kill between the two they are given
again, but not to a file, which is seen to have them.

All of this is in a folder below that of the tables, which is a `Lake` of its own: a commit a minute
would compete with those of jobs that take longer. Whoever removes it begins anew, as a first run
does: with the records of the last day.

    TABLES/watch/checkpoint/        what Spark has taken
    TABLES/watch/data/, commits/    what batches gave
    TABLES/watch/beside/            what is usual, and which alerts were given
"""
