-- name: sightings_of_sessions
-- what: Sealed values as seen, one row per place in the turn that first showed it; the API unfolds them.
-- key: session_id String, row_key String

SELECT session_id, row_key, turn_id, direction, position, item, prefix_hash, kind, state, size,
       sha256, sha256_decoded, alphabet, sealed_by, confidence, place, observers
FROM evidence.sightings FINAL
WHERE tenant = {tenant:String}
  AND session_id = {session_id:String}
ORDER BY item, length(position), position, row_key
