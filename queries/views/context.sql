-- name: context
-- what: Items that a turn added to its context: of the request from the first new one on, of the response all.
-- key: session_id String, row_key String

SELECT session_id, row_key, turn_id, direction, position, prefix_hash, role, item_id, parts
FROM evidence.context FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({turn_id:String} = '' OR turn_id = {turn_id:String})
  AND ({direction:String} = '' OR direction = {direction:String})
  AND ({role:String} = '' OR role = {role:String})
  AND ({service:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.sessions FINAL
      WHERE tenant = {tenant:String} AND service = {service:String}))
  AND (({since:Int64} = 0 AND {until:Int64} = 0) OR turn_id IN (
      SELECT turn_id FROM evidence.turns FINAL
      WHERE tenant = {tenant:String} AND started_ns >= {since:Int64}
        AND ({until:Int64} = 0 OR started_ns < {until:Int64})))
  AND ({first_page:Bool} OR (session_id, row_key) > ({after_session_id:String}, {after_row_key:String}))
ORDER BY session_id, row_key
LIMIT {limit:UInt32}
