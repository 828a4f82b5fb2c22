-- name: chain_of_turns
-- what: How the turns of a session continue each other's context.
-- key: session_id String, ordinal UInt32, row_key String

SELECT turn_id, ordinal, context_of, context_kept, started_ns
FROM evidence.turns FINAL
WHERE tenant = {tenant:String} AND session_id = {session_id:String}
ORDER BY ordinal, row_key
