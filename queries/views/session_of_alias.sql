-- name: session_of_alias
-- what: The session that a merged id now belongs to.
-- key: session_id String

SELECT session_id
FROM evidence.sessions FINAL
WHERE tenant = {tenant:String} AND has(aliases, {alias:String})
ORDER BY session_id
LIMIT 1
