// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"crypto/fips140"

	"github.com/redis/rueidis"
)

// source sets the names of the process of Redis that runs the script, and of the history of its data, which is a new one when the
// process becomes the master. A process that was the master, became a replica, and is the master again may lack the last nonces
// that it had.
const source = `local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
`

// Answers of the scripts. beginScript answers with the eviction policy of Redis if that is not noeviction.
const (
	done    = "done"
	ended   = "ended"
	refused = "refused"
	busy    = "busy"
	full    = "full"
)

// The keys in Redis that scripts use are the session, its nonces, and the sessions of its caller.
var (
	// beginScript adds a session. Arguments: record, wrapped key, version of the wrapping key, lifetime in
	// milliseconds, id, begin, end, and the maximum number of sessions in one part of the caller's sessions.
	//
	// The sessions of the caller are a sorted set by their ends. The set also has the names of the process and of the history, without
	// an end, because sessions that another process began, or that are of another history, have ended. Here and in the scripts below,
	// the first write is a command that Redis refuses when it is out of memory.
	beginScript = script(source + `
local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:(%S+)')
if policy ~= 'noeviction' then return policy end
redis.call('ZADD', KEYS[3], ARGV[7], ARGV[5])
if not redis.call('ZSCORE', KEYS[3], run) or not redis.call('ZSCORE', KEYS[3], history) then
  redis.call('DEL', KEYS[3])
  redis.call('ZADD', KEYS[3], 'inf', run, 'inf', history, ARGV[7], ARGV[5])
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[6])
if redis.call('ZCARD', KEYS[3]) > tonumber(ARGV[8]) + 2 then
  redis.call('ZREM', KEYS[3], ARGV[5])
  return 'full'
end
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[3], ARGV[4]) end
redis.call('HSET', KEYS[1], 'record', ARGV[1], 'key', ARGV[2], 'version', ARGV[3], 'run', run, 'history', history, 'opened', 0, 'sealed', 0, 'nonces', 0, 'floor', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 'done'`)

	// acceptScript accepts a request once. Arguments: nonce, time of the request, earliest time in the
	// window, most messages, most nonces. If there are fewer nonces than the session has counted, somebody
	// has removed some, so the session ends. Sessions of brokers of version 0.1 have no history.
	//
	// The first write is a command that Redis refuses when it is out of memory. Redis does not refuse later writes of the same script.
	acceptScript = script(source + `
local s = redis.call('HMGET', KEYS[1], 'run', 'opened', 'nonces', 'floor', 'history')
if not s[1] then return 'ended' end
if s[1] ~= run or s[5] and s[5] ~= history or redis.call('ZCARD', KEYS[2]) ~= tonumber(s[3]) then
  redis.call('DEL', KEYS[1], KEYS[2])
  return 'ended'
end
if tonumber(s[2]) >= tonumber(ARGV[4]) or tonumber(ARGV[2]) < tonumber(s[4]) then return 'refused' end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 'refused' end
local floor = ARGV[3]
if tonumber(floor) < tonumber(s[4]) then floor = s[4] end
redis.call('HSET', KEYS[1], 'floor', floor)
local nonces = tonumber(s[3]) - redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. floor)
if nonces >= tonumber(ARGV[5]) then
  redis.call('HSET', KEYS[1], 'nonces', nonces)
  return 'busy'
end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
if nonces == 0 then redis.call('PEXPIRE', KEYS[2], redis.call('PTTL', KEYS[1])) end
redis.call('HSET', KEYS[1], 'nonces', nonces + 1)
redis.call('HINCRBY', KEYS[1], 'opened', 1)
return 'done'`)

	// replyScript counts a reply. Argument: most replies.
	replyScript = script(source + `
local s = redis.call('HMGET', KEYS[1], 'run', 'sealed', 'history')
if not s[1] or s[1] ~= run or s[3] and s[3] ~= history or tonumber(s[2]) >= tonumber(ARGV[1]) then return 'ended' end
redis.call('HINCRBY', KEYS[1], 'sealed', 1)
return 'done'`)

	// endScript ends a session. Argument: id.
	endScript = script(`
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return 'done'`)
)

// script returns a script. Redis names scripts by their SHA-1, which protects nothing here.
func script(text string) (lua *rueidis.Lua) {
	fips140.WithoutEnforcement(func() { lua = rueidis.NewLuaScript(text) })
	return lua
}
