-- name: tool_calls
-- what: Tool calls with arguments and results, one row per call.
-- key: session_id String, started_ns Int64, row_key String

SELECT session_id, row_key, turn_id, call_id, tool, arguments, arguments_commit,
       arguments_canonical, arguments_observer, result, result_commit, result_observer,
       result_turn_id, status, error, started_ns, duration_ns, observers, conflict, alternatives,
       flags, trace_id, span_id
FROM evidence.tool_calls FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({turn_id:String} = '' OR turn_id = {turn_id:String})
  AND ({call_id:String} = '' OR call_id = {call_id:String})
  AND ({tool:String} = '' OR tool = {tool:String})
  AND ({status:String} = '' OR status = {status:String})
  AND ({trace_id:String} = '' OR trace_id = {trace_id:String})
  AND ({service:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.sessions FINAL
      WHERE tenant = {tenant:String} AND service = {service:String}))
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, started_ns, row_key) > ({after_session_id:String}, {after_started_ns:Int64}, {after_row_key:String}))
ORDER BY session_id, started_ns, row_key
LIMIT {limit:UInt32}
