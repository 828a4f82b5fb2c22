-- name: effects
-- what: What was done to the world outside, and how that is known.
-- key: session_id String, started_ns Int64, row_key String

SELECT session_id, row_key, call_id, turn_id, operation, target, status, basis, observer, service,
       started_ns, ended_ns, flags, alternatives, trace_id, span_id
FROM evidence.effects FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({turn_id:String} = '' OR turn_id = {turn_id:String})
  AND ({call_id:String} = '' OR call_id = {call_id:String})
  AND ({operation:String} = '' OR operation = {operation:String})
  AND ({target:String} = '' OR target = {target:String})
  AND ({status:String} = '' OR status = {status:String})
  AND ({basis:String} = '' OR basis = {basis:String})
  AND ({trace_id:String} = '' OR trace_id = {trace_id:String})
  AND ({service:String} = '' OR service = {service:String})
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, started_ns, row_key) > ({after_session_id:String}, {after_started_ns:Int64}, {after_row_key:String}))
ORDER BY session_id, started_ns, row_key
LIMIT {limit:UInt32}
