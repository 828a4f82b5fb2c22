-- name: refusals
-- what: What could not be read: a gap with the size and hash of the raw bytes.
-- key: session_id String, started_ns Int64, row_key String

SELECT session_id, row_key, reason, place, size, sha256, service, started_ns, trace_id, span_id
FROM evidence.refusals FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({reason:String} = '' OR reason = {reason:String})
  AND ({sha256:String} = '' OR sha256 = {sha256:String})
  AND ({trace_id:String} = '' OR trace_id = {trace_id:String})
  AND ({service:String} = '' OR service = {service:String})
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, started_ns, row_key) > ({after_session_id:String}, {after_started_ns:Int64}, {after_row_key:String}))
ORDER BY session_id, started_ns, row_key
LIMIT {limit:UInt32}
