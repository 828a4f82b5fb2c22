-- name: sessions
-- what: Sessions, newest first.
-- key: started_ns Int64, session_id String

SELECT session_id, row_key, service, basis, claims, aliases, agents, models, started_ns, ended_ns,
       turns, calls, effects, sealed, gaps
FROM evidence.sessions FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({model:String} = '' OR has(models, {model:String}))
  AND ({agent:String} = '' OR has(agents, {agent:String}))
  AND ({claim:String} = '' OR has(claims, {claim:String}))
  AND ({gap:String} = '' OR has(gaps, {gap:String}))
  AND ({service:String} = '' OR service = {service:String})
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (started_ns, session_id) < ({after_started_ns:Int64}, {after_session_id:String}))
ORDER BY started_ns DESC, session_id DESC
LIMIT {limit:UInt32}
