"""Attackers: the attacks of the table `abuse`, and who else is concerned by a rule against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.abuse import NOBODY, homes
from gateway.pipeline.kinds import Kind
from gateway.pipeline.limits.denying import MOST_NAMES, MOST_RULES, Attacker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def attackers(events: DataFrame, findings: DataFrame, since_ms: int) -> list[Attacker]:
    """Return the attacks that went on at `since_ms` or later: the latest `MOST_RULES`. `events`:
    those that the findings are of; they tell who is at home where."""
    late = findings.where(F.col("is_attack") & (F.col("end_ms") > since_ms))
    order = Window.orderBy(F.desc("end_ms"), "kind", "network", "principal", "start_ms")
    numbered = late.withColumn("number", F.row_number().over(order))
    attacks = F.broadcast(numbered.where(F.col("number") <= MOST_RULES))
    there = homes(events).where(F.col("who") != NOBODY).withColumnRenamed("network", "place")
    there = there.select("place", "who", F.col("since_ms").alias("home_ms"))
    whole = attacks.join(_residents(attacks, there), "number", "left")
    for part in (_tried(attacks, events, there), _strange(attacks, there)):
        whole = whole.join(part, "number", "left")
    return [
        Attacker(
            *(row.kind, row.principal, row.network, row.start_ms, row.end_ms),
            *(row.failures, row.principals, row.networks, row.residents or 0),
            *(tuple(row.tried or ()), row.known or 0, tuple(row.strange or ())),
        )
        for row in whole.orderBy("number").collect()
    ]


def _residents(attacks: DataFrame, there: DataFrame) -> DataFrame:
    """Return `residents` by number of the attack."""
    others = F.col("principal").isNull() | (F.col("who") != F.col("principal"))
    before = F.col("home_ms") < F.col("start_ms")
    found = attacks.join(there, (F.col("network") == F.col("place")) & others & before)
    return found.groupBy("number").agg(F.count(F.lit(1)).alias("residents"))


def _tried(attacks: DataFrame, events: DataFrame, there: DataFrame) -> DataFrame:
    """Return whom a network `tried` that is strange to it, by number of the attack."""
    failures = events.where(
        (F.col("event") == "unauthenticated") & F.col("principal").isNotNull()
    ).select(F.col("client_net").alias("from"), F.col("principal").alias("whom"), "time_ms")
    within = (F.col("time_ms") >= F.col("start_ms")) & (F.col("time_ms") < F.col("end_ms"))
    spraying = attacks.where(F.col("kind") == Kind.SPRAYING)
    tries = spraying.join(failures, (F.col("network") == F.col("from")) & within)
    known = (
        (F.col("network") == F.col("place"))
        & (F.col("whom") == F.col("who"))
        & (F.col("home_ms") < F.col("start_ms"))
    )
    strangers = tries.join(there, known, "left_anti").select("number", "whom").distinct()
    return _listed(strangers, "whom", "tried")


def _strange(attacks: DataFrame, there: DataFrame) -> DataFrame:
    """Return networks of a shared credential that are `strange`, and how many others are `known`,
    by number of the attack."""
    shared = attacks.where(F.col("kind") == Kind.SHARED_CREDENTIAL)
    own = shared.join(there, F.col("principal") == F.col("who"))
    known = own.groupBy("number").agg(
        F.count_if(F.col("home_ms") < F.col("start_ms")).alias("known")
    )
    new = (F.col("home_ms") >= F.col("start_ms")) & (F.col("home_ms") < F.col("end_ms"))
    strange = own.where(new & F.col("place").isNotNull()).select("number", "place")
    return known.join(_listed(strange, "place", "strange"), "number", "left")


def _listed(rows: DataFrame, column: str, name: str) -> DataFrame:
    """Return lists by number of the attack, of one more than `MOST_NAMES` at most."""
    place = F.row_number().over(Window.partitionBy("number").orderBy(column))
    some = rows.withColumn("place_in_list", place).where(F.col("place_in_list") <= MOST_NAMES + 1)
    return some.groupBy("number").agg(F.sort_array(F.collect_list(column)).alias(name))
