-- name: state_transitions
-- what: Changes of state that a framework reported.
-- key: session_id String, started_ns Int64, row_key String

SELECT session_id, row_key, name, `before`, `after`, started_ns, trace_id, span_id
FROM evidence.state_transitions FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({name:String} = '' OR name = {name:String})
  AND ({trace_id:String} = '' OR trace_id = {trace_id:String})
  AND ({service:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.sessions FINAL
      WHERE tenant = {tenant:String} AND service = {service:String}))
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, started_ns, row_key) > ({after_session_id:String}, {after_started_ns:Int64}, {after_row_key:String}))
ORDER BY session_id, started_ns, row_key
LIMIT {limit:UInt32}
