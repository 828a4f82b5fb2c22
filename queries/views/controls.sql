-- name: controls
-- what: What a scan of controls found.
-- key: session_id String, row_key String

SELECT session_id, row_key, rule, path, line, class, severity
FROM evidence.controls FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({rule:String} = '' OR rule = {rule:String})
  AND ({path:String} = '' OR path = {path:String})
  AND ({class:String} = '' OR class = {class:String})
  AND ({severity:String} = '' OR severity = {severity:String})
  AND ({first_page:Bool} OR (session_id, row_key) > ({after_session_id:String}, {after_row_key:String}))
ORDER BY session_id, row_key
LIMIT {limit:UInt32}
