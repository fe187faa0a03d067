"""Lua 5.1 scripts that the store runs.

`RESERVE` does for one request what `policy.reservations` does. For each limit it stores the seconds
until all reserved units are earned, and the time at which this number was written. It does not
store one moment in time, so rounding loses nothing, and no process has to wait because a clock was
set back or another server has another clock.

Times are whole microseconds of the server's clock, which doubles represent exactly. Numbers in
replies are written as text with all their digits, because Redis would truncate them to integers.
"""

from __future__ import annotations

from hashlib import sha1
from typing import NamedTuple

from gateway.policy.reservations import ACTIVE, RESERVATION_SECONDS

PRESENT = 3.0
"""Seconds after its last heartbeat that a process still counts: two heartbeats may be lost."""


class Script(NamedTuple):
    """A Lua script. `digest`: its SHA-1, by which clients name a script that the server has
    loaded."""

    text: str
    digest: str


def _script(text: str) -> Script:
    constants = f"""
local ACTIVE, PRESENT = {ACTIVE * 1e6:.0f}, {PRESENT * 1e6:.0f}
local RESERVATION_SECONDS = {RESERVATION_SECONDS!r}
"""
    text = constants + _COMMON + text
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


_COMMON = """
local function clock(given)
    if given ~= '' then return tonumber(given) end
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

local function whole(number) return string.format('%.0f', number) end
local function exact(number) return string.format('%.17g', number) end

-- Rounds up to milliseconds. Keys do not expire by the server's clock where a test gives the time.
local function expire(key, seconds, given)
    if given == '' then redis.call('PEXPIRE', key, whole(math.ceil(seconds * 1000))) end
end

-- Counts the members of a set seen lately, this one included. A future time is another clock's.
local function count(key, process, now, lately, given)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now - lately))
    redis.call('ZREMRANGEBYSCORE', key, '(' .. whole(now), '+inf')
    redis.call('ZADD', key, whole(now), process)
    expire(key, lately / 1000000, given)
    return redis.call('ZCARD', key)
end
"""

RESERVE = _script("""
local process, given = ARGV[1], ARGV[2]
local rate, burst = tonumber(ARGV[3]), tonumber(ARGV[4])
local wanted, owed = tonumber(ARGV[5]), tonumber(ARGV[6])
local call, heard = tonumber(ARGV[7]), tonumber(ARGV[8])

local now = clock(given)
local function passed(since) return math.max(0, now - tonumber(since)) / 1000000 end

local kept = redis.call('HMGET', KEYS[1], 'at', 'behind')
local behind = kept[1] and math.max(0, tonumber(kept[2]) - passed(kept[1])) or 0

-- Undo an earlier call whose reply was not heard, except for what was earned since: without that
-- call the limit may have been idle meanwhile, and an idle limit saves up no more than its burst.
local last = redis.call('GET', KEYS[3])
if last then
    local called, heard_then, took, at = string.match(last, '(%S+) (%S+) (%S+) (%S+)')
    called = tonumber(called)
    if called > call then return {'0', '0'} end  -- the caller gave this call up
    took = tonumber(took)
    if took > 0 then took = math.max(0, took - passed(at)) end
    if called > heard and tonumber(heard_then) == heard then
        behind = math.max(0, behind - took)
    end
end

local before = behind
behind = math.max(0, behind + owed / rate)

local units = 0
if wanted > 0 then
    local active = count(KEYS[2], process, now, ACTIVE, given)
    local room = burst - behind * rate
    local most = math.max(1, math.max(rate * RESERVATION_SECONDS, room) / active)
    units = math.min(math.max(1, wanted), most)
    behind = behind + units / rate
else
    redis.call('ZREM', KEYS[2], process)
end

redis.call('HSET', KEYS[1], 'at', whole(now), 'behind', exact(behind))
expire(KEYS[1], behind + 1, given)
local note = ARGV[7] .. ' ' .. ARGV[8] .. ' ' .. exact(behind - before) .. ' ' .. whole(now)
redis.call('SET', KEYS[3], note)
expire(KEYS[3], behind + 1, given)
return {exact(units), exact(math.max(0, behind - burst / rate))}
""")
"""Keys: the meter, the set of processes by time of request, this process's last call. Arguments:
process, time ('' is the server's), rate, burst, units, debt, number of this call, number of the
last call whose response arrived."""

BEAT = _script("""
return count(KEYS[1], ARGV[1], clock(ARGV[2]), PRESENT, ARGV[2])
""")
"""Key: the set of processes by time of heartbeat. Arguments: process, time. Returns the size."""
