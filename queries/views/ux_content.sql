-- name: ux_content
-- what: A content of the ux lane by its commitment.
-- key: commit String

SELECT commit, salt, sha256, size, text
FROM ux.content FINAL
WHERE tenant = {tenant:String} AND commit = {commit:String}
LIMIT 1
