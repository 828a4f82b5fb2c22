-- name: ux
-- what: Summaries and thinking. NOT EVIDENCE.
-- key: session_id String, started_ns Int64, row_key String

SELECT session_id, row_key, turn_id, direction, position, ux_kind, ux_reasoning_summary,
       ux_commit, size, started_ns
FROM ux.summaries FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({turn_id:String} = '' OR turn_id = {turn_id:String})
  AND ({ux_kind:String} = '' OR ux_kind = {ux_kind:String})
  AND ({direction:String} = '' OR direction = {direction:String})
  AND ({service:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.sessions FINAL
      WHERE tenant = {tenant:String} AND service = {service:String}))
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, started_ns, row_key) > ({after_session_id:String}, {after_started_ns:Int64}, {after_row_key:String}))
ORDER BY session_id, started_ns, row_key
LIMIT {limit:UInt32}
