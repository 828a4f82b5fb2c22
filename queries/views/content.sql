-- name: content
-- what: A content of the evidence lane by its commitment.
-- key: commit String

SELECT commit, salt, sha256, size, text
FROM evidence.content FINAL
WHERE tenant = {tenant:String} AND commit = {commit:String}
LIMIT 1
