"""Records that tests of schemas send."""

from pulsar.schema import (  # type: ignore[import-untyped, unused-ignore]
    Array,
    Integer,
    Record,
    String,
)


class Reading(Record):  # type: ignore[misc, unused-ignore]
    sensor = String()
    values = Array(Integer())


class Unlike(Record):  # type: ignore[misc, unused-ignore]
    sensor = Integer(required=True)
    other = Integer(required=True)


# A record of some hundred fields: its definition alone is tens of kilobytes in one PRODUCER
# command.
Wide = type(
    "Wide",
    (Record,),
    {f"a_field_with_a_rather_long_name_{number:03}": String() for number in range(400)},
)
